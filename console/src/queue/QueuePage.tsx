// The page of the queue: what waits for a place in the order in which it starts, and the shares and quotas that decide.
import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { me as meQuery, queue as queueQuery } from "../api/queries.ts";
import type { Queued, QueueList } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { count, plain, words } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Figure, PageHead, Panel } from "../parts/page.tsx";
import { State, useNow } from "../parts/state.tsx";
import { Tabbed } from "../parts/Tabbed.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { EntryMenu } from "./EntryActs.tsx";
import { Quotas } from "./Quotas.tsx";
import { classText, heldText, startText, stateName, stateTone, whyText } from "./queue.ts";
import { Shares } from "./Shares.tsx";

export function QueuePage() {
  const make = (
    <PageButton to="/new" search={{ what: "job" }} icon={<PlusIcon />}>
      New job
    </PageButton>
  );
  return (
    <div className="wr-page">
      <Tabbed
        head={<PageHead title="Queue" actions={make} />}
        tabs={[
          { value: "waiting", name: "Waiting", content: <Waiting /> },
          { value: "shares", name: "Shares", content: <Shares /> },
          { value: "quotas", name: "Quotas", content: <Quotas /> },
        ]}
      />
    </div>
  );
}

function Start({ entry }: { entry: Queued }) {
  return <span className="wr-nowrap">{startText(entry.estimate, useNow())}</span>;
}

export function EntryLink({ entry }: { entry: Queued }) {
  const name = plain(entry.name);
  return entry.kind === "job" ? (
    <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: entry.id }}>
      {name}
    </Link>
  ) : (
    <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: entry.id }}>
      {name}
    </Link>
  );
}

const columnsFor = (overseen: boolean, acts: boolean): readonly Column<Queued>[] => [
  {
    id: "place",
    name: "Place",
    value: (row) => row.place,
    cell: (row) =>
      row.state === "ready" ? (
        <strong>{row.place === null ? "over 1,000" : count(row.place)}</strong>
      ) : (
        <State state={stateName(row.state)} tone={stateTone(row.state)} />
      ),
  },
  { id: "name", name: "Name", value: (row) => row.name, cell: (row) => <EntryLink entry={row} /> },
  { id: "project", name: "Project", value: (row) => row.project, facet: true, facetName: plain, optional: !overseen },
  { id: "asks", name: "Asks for", value: (row) => row.asks, cell: (row) => plain(row.asks) },
  {
    id: "class",
    name: "Class",
    value: (row) => row.priority_class,
    facet: true,
    cell: classText,
  },
  moment("submitted_at", "Submitted", (row) => row.submitted_at),
  {
    id: "start_at",
    name: "Expected start",
    value: (row) => row.estimate?.start_at,
    cell: (row) => <Start entry={row} />,
  },
  {
    id: "why",
    name: "Why it waits",
    value: (row) => row.why,
    cell: (row) => <span className="wr-break">{whyText(row.why)}</span>,
  },
  {
    id: "state",
    name: "State",
    value: (row) => row.state,
    facet: true,
    facetName: stateName,
    cell: (row) => <State state={stateName(row.state)} tone={stateTone(row.state)} />,
    optional: true,
  },
  { id: "kind", name: "Kind", value: (row) => row.kind, facet: true, cell: (row) => words(row.kind), optional: true },
  { id: "priority", name: "Priority", value: (row) => row.priority, number: true, optional: true },
  identity((row) => row.id, { optional: true }),
  ...(acts ? [actions<Queued>((row) => <EntryMenu entry={row} />)] : []),
];

/** Entries that are read at first, and at most: those behind have no place and no expected start yet. */
const FIRST = 100;
const MOST = 1_000;

function Waiting() {
  const [limit, read] = useState(FIRST);
  const query = useQuery(queueQuery(limit));
  const roles = useQuery(meQuery).data?.roles ?? [];
  const overseen = roles.includes("operator") || roles.includes("auditor");
  const acts = roles.includes("operator") || roles.includes("renter");
  const columns = useMemo(() => columnsFor(overseen, acts), [overseen, acts]);
  const list = query.data;
  const rows = list?.items;
  return (
    <>
      {list && <Totals list={list} overseen={overseen} />}
      <Panel bare label="Waiting">
        <DataTable
          of={["entry", "entries of the queue"]}
          columns={columns}
          id={(row) => row.id}
          rows={rows}
          query={query}
          older={{
            more: limit < MOST && list?.next_cursor != null,
            loading: query.isPlaceholderData,
            error: null,
            load: () => read(MOST),
            word: "later",
          }}
          address
          placeholder="Filter the queue"
          empty={
            <Empty title="Nothing waits" command="windrow job submit --gpu 1 -- python train.py">
              Jobs, and machines that are created with a wait, stand here in order while no host is free for them. What
              runs is under{" "}
              <Link className="wr-link wr-underlined" to="/jobs">
                Jobs
              </Link>{" "}
              and{" "}
              <Link className="wr-link wr-underlined" to="/clusters">
                Machines
              </Link>
              .
            </Empty>
          }
        />
      </Panel>
      {(rows?.length ?? 0) > 0 && (
        <Text size="xs" className="wr-quiet" mt="xs">
          Order: class, then who has used less of their share, then priority and time waited. Expected starts are in
          your time; in 4 of 5 cases the start should fall within the ± shown. By command: windrow queue ls
        </Text>
      )}
    </>
  );
}

function Totals({ list, overseen }: { list: QueueList; overseen: boolean }) {
  return (
    <Group className="wr-figures" mb="md">
      <Figure label={overseen ? "waiting, all projects" : "waiting in this project"} value={count(list.waiting)} />
      <Figure label="running" value={count(list.running)} />
      <Figure
        label={
          list.estimates_scored
            ? `of ${count(list.estimates_scored)} expected starts held (aim: 80 %)`
            : "no expected start has passed yet"
        }
        value={heldText(list)}
      />
    </Group>
  );
}
