// What happened, newest first, to one thing or to all; new rows appear by themselves; words and a kind narrow it.
import { Group, NativeSelect } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { eventsBefore, events as eventsQuery } from "../api/queries.ts";
import { openStream } from "../api/streams.ts";
import type { EventRow, Page } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { compareTexts, count, exact, plain, words } from "../format.ts";
import { CsvButton } from "./Csv.tsx";
import { FilterBox } from "./FilterBox.tsx";
import { ListFoot } from "./ListFoot.tsx";
import { useOlder } from "./older.ts";
import { Empty, Loaded } from "./page.tsx";
import { Actor, Subject } from "./Subject.tsx";
import { When } from "./state.tsx";

const SHOWN_MOST = 300;

export const EVENT_CSV: readonly CsvColumn<EventRow>[] = [
  { name: "at", value: (event) => event.at },
  { name: "kind", value: (event) => event.kind },
  { name: "text", value: (event) => event.text },
  { name: "actor", value: (event) => event.actor },
  { name: "subjects", value: (event) => event.subjects.join(" ") },
  { name: "id", value: (event) => event.id },
];

export interface EventSearch {
  q: string;
  kind: string;
}

interface EventListProps {
  subject?: string | undefined;
  follow?: boolean;
  /** Where the search is kept outside, say in the address. */
  search?: EventSearch;
  onSearch?: (search: EventSearch) => void;
}

export function EventList({ subject, follow = false, search: given, onSearch }: EventListProps) {
  const query = useQuery(eventsQuery(subject));
  useFollowed(subject, follow);
  const older = useOlder(
    subject ?? "",
    query.data,
    (cursor) => eventsBefore(subject, cursor),
    (event) => event.id,
  );
  const [own, setOwn] = useState<EventSearch>({ q: "", kind: "" });
  const search = given ?? own;
  const change = onSearch ?? setOwn;
  const shown = useMemo(() => older.rows.filter(matching(search)), [older.rows, search]);
  return (
    <Loaded query={query}>
      {() =>
        older.rows.length === 0 ? (
          <Empty
            title="Nothing has happened yet"
            command={subject ? `windrow event ls --subject ${subject}` : "windrow event ls --watch"}
          >
            Each change of state is listed here with who caused it and why.
          </Empty>
        ) : (
          <>
            <Group gap={6} p={10} justify="space-between">
              <Group gap={6}>
                <FilterBox
                  label="Filter events"
                  value={search.q}
                  onChange={(q) => change({ ...search, q })}
                  placeholder="Words in what happened, who, to what"
                  restMs={120}
                />
                <Kinds rows={older.rows} value={search.kind} onChange={(kind) => change({ ...search, kind })} />
              </Group>
              <CsvButton
                of="events"
                name={`windrow-events${subject ? `-${subject}` : ""}`}
                columns={EVENT_CSV}
                rows={() => shown}
                disabled={shown.length === 0}
              />
            </Group>
            {shown.length === 0 ? (
              <Empty title="No event matches">
                Words must all be in an event's text, kind, actor or subjects. Older events are matched once they were
                read.
              </Empty>
            ) : (
              <EventTable rows={shown} about={!subject} />
            )}
            <ListFoot older={older} shown={shown.length} />
          </>
        )
      }
    </Loaded>
  );
}

export function EventTable({ rows, about }: { rows: readonly EventRow[]; about: boolean }) {
  return (
    <div className="wr-scroll" tabIndex={0} role="region" aria-label="Table of events">
      <table className="wr-table">
        <thead>
          <tr>
            <th scope="col" style={{ width: 96 }}>
              When
            </th>
            <th scope="col" style={{ width: 170 }}>
              What
            </th>
            <th scope="col">Says</th>
            <th scope="col" style={{ width: 130 }}>
              By
            </th>
            {about && (
              <th scope="col" style={{ width: 150 }}>
                About
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((event) => (
            <tr key={event.id}>
              <td className="wr-quiet">
                <When at={event.at} />
              </td>
              <td>{words(event.kind)}</td>
              <td className="wr-break">{plain(event.text)}</td>
              <td>
                <Actor actor={event.actor} />
              </td>
              {about && (
                <td>
                  {event.subjects.slice(0, 2).map((one) => (
                    <div key={one}>
                      <Subject id={one} />
                    </div>
                  ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Kinds({
  rows,
  value,
  onChange,
}: {
  rows: readonly EventRow[];
  value: string;
  onChange: (kind: string) => void;
}) {
  const kinds = useMemo(() => {
    const counts = new Map<string, number>();
    for (const event of rows) counts.set(event.kind, (counts.get(event.kind) ?? 0) + 1);
    if (value && !counts.has(value)) counts.set(value, 0);
    return [...counts].sort((a, b) => compareTexts(a[0], b[0]));
  }, [rows, value]);
  return (
    <NativeSelect
      size="xs"
      aria-label="Kind of event"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[
        { value: "", label: "Every kind" },
        ...kinds.map(([kind, n]) => ({ value: kind, label: `${words(kind)} (${count(n)})` })),
      ]}
    />
  );
}

function matching({ q, kind }: EventSearch): (event: EventRow) => boolean {
  const wanted = q.toLowerCase().split(/\s+/).filter(Boolean);
  return (event) => {
    if (kind && event.kind !== kind) return false;
    const text = (
      `${event.text} ${event.kind} ${words(event.kind)} ${event.actor ?? ""} ` +
      `${event.subjects.join(" ")} ${exact(event.at)}`
    ).toLowerCase();
    return wanted.every((word) => text.includes(word));
  };
}

function useFollowed(subject: string | undefined, follow: boolean) {
  const client = useQueryClient();
  const key = subject ?? "";
  useEffect(() => {
    if (!follow) return;
    const take = (event: EventRow) => {
      if (key && !event.subjects.includes(key)) return;
      client.setQueryData<Page<EventRow>>(["events", key], (page) =>
        page && !page.items.some((one) => one.id === event.id)
          ? { ...page, items: [event, ...page.items].slice(0, SHOWN_MOST) }
          : page,
      );
    };
    return openStream(
      "/events/stream",
      {
        on: { event: take, message: take },
        opened: () => void client.invalidateQueries({ queryKey: ["events", key] }),
      },
      () => ({ subject }),
    );
  }, [client, key, subject, follow]);
}
