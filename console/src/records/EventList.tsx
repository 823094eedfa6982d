// The table of events, newest first, of the whole market or about one thing; new rows appear by themselves.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { events as eventsQuery } from "../api/queries.ts";
import { openStream } from "../api/streams.ts";
import type { EventRow, Page } from "../api/types.ts";
import { plain, words } from "../parts/format.ts";
import { Empty } from "../parts/page.tsx";
import { Actor, Subject } from "../parts/Subject.tsx";
import { identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";

const SHOWN_MOST = 300;

export const EVENT_COLUMNS: readonly Column<EventRow>[] = [
  { ...moment<EventRow>("at", "When", (event) => event.at), width: 96 },
  {
    id: "kind",
    name: "What",
    width: 170,
    value: (event) => event.kind,
    facet: true,
    cell: (event) => words(event.kind),
  },
  {
    id: "text",
    name: "Says",
    value: (event) => event.text,
    cell: (event) => <span className="wr-break">{plain(event.text)}</span>,
  },
  {
    id: "actor",
    name: "By",
    width: 130,
    value: (event) => event.actor,
    cell: (event) => <Actor actor={event.actor} />,
  },
  {
    id: "subjects",
    name: "About",
    width: 150,
    value: (event) => event.subjects.join(" "),
    cell: (event) =>
      event.subjects.slice(0, 2).map((one) => (
        <div key={one}>
          <Subject id={one} />
        </div>
      )),
  },
  identity((event) => event.id, { optional: true }),
];
const OF_ONE: readonly Column<EventRow>[] = EVENT_COLUMNS.map((column) =>
  column.id === "subjects" ? { ...column, optional: true } : column,
);

interface EventListProps {
  subject?: string | undefined;
  follow?: boolean;
  /** The search is kept in the address. */
  address?: boolean;
}

export function EventList({ subject, follow = false, address = false }: EventListProps) {
  useFollowed(subject, follow);
  const list = usePaged(eventsQuery(subject), (event) => event.id);
  return (
    <DataTable
      of={["event", "events"]}
      columns={subject ? OF_ONE : EVENT_COLUMNS}
      {...list}
      address={address}
      file={subject}
      empty={
        <Empty
          title="Nothing has happened yet"
          command={subject ? `windrow event ls --subject ${subject}` : "windrow event ls --watch"}
        >
          Each change of state is listed here with who caused it and why.
        </Empty>
      }
    />
  );
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
