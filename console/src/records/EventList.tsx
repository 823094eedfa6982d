// The table of events, newest first, of the whole market or about one thing; new rows appear by themselves.
import { Group, NativeSelect, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { onEvents } from "../api/feed.ts";
import { type EventsWanted, events as eventsQuery } from "../api/queries.ts";
import type { EventRow, Page } from "../api/types.ts";
import { count } from "../parts/format.ts";
import { Empty } from "../parts/page.tsx";
import { Actor, Subject } from "../parts/Subject.tsx";
import { State, When } from "../parts/state.tsx";
import type { SearchWords } from "../tables/address.ts";
import { identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import {
  type EventGroup,
  grouped,
  isAtLeast,
  RANGES,
  SEVERITIES,
  SEVERITY_NAMES,
  SEVERITY_TONES,
  severityFrom,
  textOf,
} from "./events.ts";

const SHOWN_MOST = 300;

const EVENT_COLUMNS: readonly Column<EventGroup>[] = [
  { ...moment<EventGroup>("at", "When", (event) => event.at), width: 96 },
  {
    id: "kind",
    name: "What",
    width: 190,
    value: (event) => event.title,
    facet: true,
    cell: (event) => <State state={event.title} tone={SEVERITY_TONES[event.severity]} />,
  },
  { id: "text", name: "Message", value: textOf, cell: (event) => <Message event={event} /> },
  {
    id: "actor",
    name: "Who",
    width: 130,
    value: (event) => event.actor,
    cell: (event) => <Actor actor={event.actor} names={event.names} />,
  },
  {
    id: "subjects",
    name: "Related",
    width: 170,
    value: (event) => event.subjects.map((one) => event.names[one] ?? one).join(" "),
    cell: (event) =>
      namedOf(event).map((one) => (
        <div key={one}>
          <Subject id={one} name={event.names[one]} />
        </div>
      )),
  },
  { id: "severity", name: "Severity", value: (event) => event.severity, optional: true },
  identity((event) => event.id, { optional: true }),
];
const OF_ONE: readonly Column<EventGroup>[] = EVENT_COLUMNS.map((column) =>
  column.id === "subjects" ? { ...column, optional: true } : column,
);

/** Two of the things that it is about, those with a name first. */
const namedOf = ({ subjects, names }: EventGroup): readonly string[] =>
  subjects.toSorted((one, other) => Number(other in names) - Number(one in names)).slice(0, 2);

function Message({ event }: { event: EventGroup }) {
  const { others } = event;
  return (
    <>
      <span className="wr-break">{textOf(event)}</span>
      {others.length > 0 && (
        <details className="wr-details">
          <summary>{count(others.length)} more like this</summary>
          {others.map((one) => (
            <div key={one.id} className="wr-break">
              <When at={one.at} />: {textOf(one)}
            </div>
          ))}
        </details>
      )}
    </>
  );
}

interface EventListProps {
  subject?: string | undefined;
  follow?: boolean;
  /** The search is kept in the address. */
  address?: boolean;
}

type Words = { severity?: string | undefined; range?: string | undefined };

/** The chosen severity and range, in the address or by themselves. */
function useWords(address: boolean): readonly [Words, (words: Words) => void] {
  const given: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  const [own, change] = useState<Words>({});
  if (!address) return [own, (words) => change({ ...own, ...words })];
  return [
    given,
    (words) => void navigate({ to: ".", search: (now: SearchWords) => ({ ...now, ...words }), replace: true }),
  ];
}

export function EventList({ subject, follow = false, address = false }: EventListProps) {
  const [given, choose] = useWords(address);
  const severity = severityFrom(given.severity, subject);
  const range = given.range !== undefined && given.range in RANGES ? given.range : "all";
  const seconds = RANGES[range]?.seconds ?? null;
  const since = useMemo(
    () => (seconds === null ? undefined : new Date(Date.now() - seconds * 1000).toISOString()),
    [seconds],
  );
  const wanted = useMemo(() => ({ subject, severity, since }), [subject, severity, since]);
  useFollowed(wanted, follow);
  const list = usePaged(eventsQuery(wanted), (event) => event.id);
  const rows = useMemo(() => list.rows && grouped(list.rows), [list.rows]);
  return (
    <>
      <Group gap={8} className="wr-tools wr-no-print">
        <NativeSelect
          size="xs"
          aria-label="Severity"
          value={severity}
          onChange={(event) => choose({ severity: event.currentTarget.value })}
          data={SEVERITIES.map((value) => ({ value, label: SEVERITY_NAMES[value] }))}
        />
        <NativeSelect
          size="xs"
          aria-label="Range of time"
          value={range}
          onChange={(event) => choose({ range: event.currentTarget.value })}
          data={Object.entries(RANGES).map(([value, { name }]) => ({ value, label: name }))}
        />
        {severity !== "info" && (
          <Text size="xs" className="wr-quiet">
            Everyday work, such as measurements and commands, is left out.
          </Text>
        )}
      </Group>
      <DataTable
        of={["event", "events"]}
        columns={subject ? OF_ONE : EVENT_COLUMNS}
        {...list}
        rows={rows}
        each={(group) => [{ ...group, others: [] }, ...group.others.map((one) => ({ ...one, others: [] }))]}
        address={address}
        file={subject}
        empty={
          <Empty
            title={severity === "info" && range === "all" ? "Nothing has happened yet" : "Nothing of note"}
            command={subject ? `windrow event ls --subject ${subject}` : "windrow event ls --watch"}
          >
            {severity === "info" && range === "all"
              ? "Each change of state is listed here with who caused it and why."
              : "Choose Everything and All times above to see each change of state."}
          </Empty>
        }
      />
    </>
  );
}

function useFollowed(wanted: EventsWanted, follow: boolean) {
  const client = useQueryClient();
  useEffect(() => {
    if (!follow) return;
    const { subject, severity } = wanted;
    const { queryKey } = eventsQuery(wanted).first;
    const take = (event: EventRow) => {
      if ((subject && !event.subjects.includes(subject)) || !isAtLeast(event, severity)) return;
      client.setQueryData<Page<EventRow>>(queryKey, (page) =>
        page && !page.items.some((one) => one.id === event.id)
          ? { ...page, items: [event, ...page.items].slice(0, SHOWN_MOST) }
          : page,
      );
    };
    return onEvents(subject, { heard: take, opened: () => void client.invalidateQueries({ queryKey }) });
  }, [client, wanted, follow]);
}
