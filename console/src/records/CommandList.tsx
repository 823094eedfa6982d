// The table of commands to hosts, newest first, and the result of one command.
import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { commands as commandsQuery } from "../api/queries.ts";
import type { CommandRow } from "../api/types.ts";
import { percent, plain, took, words } from "../parts/format.ts";
import { Empty, Facts } from "../parts/page.tsx";
import { Subject } from "../parts/Subject.tsx";
import { State } from "../parts/state.tsx";
import { figure, identity, moment, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";

const COLUMNS: readonly Column<CommandRow>[] = [
  {
    id: "kind",
    name: "Command",
    value: (row) => row.kind,
    facet: true,
    cell: (row) => (
      <Link className="wr-link" to="/commands/$commandId" params={{ commandId: row.id }}>
        {words(row.kind)}
      </Link>
    ),
  },
  {
    id: "host_name",
    name: "Host",
    value: (row) => row.host_name ?? row.host_id,
    cell: (row) => <Subject id={row.host_id} name={row.host_name ?? undefined} />,
  },
  state("State", (row) => row.state, undefined, {
    cell: (row) => (
      <>
        <State state={row.state} />
        {row.error && (
          <Text size="xs" className="wr-break wr-quiet" maw={320}>
            {plain(row.error)}
          </Text>
        )}
      </>
    ),
  }),
  { id: "step", name: "Step", value: (row) => row.step },
  figure("progress", "Progress", (row) => row.progress, percent),
  moment("created_at", "Asked", (row) => row.created_at),
  {
    id: "took",
    name: "Took",
    value: (row) => (row.done_at ? (Date.parse(row.done_at) - Date.parse(row.created_at)) / 1000 : null),
    cell: (row) => took(row.created_at, row.done_at),
  },
  identity((row) => row.id),
  { ...moment<CommandRow>("sent_at", "Sent", (row) => row.sent_at), optional: true },
  { ...moment<CommandRow>("done_at", "Done", (row) => row.done_at), optional: true },
  {
    id: "subject",
    name: "About",
    value: (row) => row.subject,
    cell: (row) => <Subject id={row.subject} />,
    optional: true,
  },
  { id: "error", name: "Error", value: (row) => row.error, optional: true },
  { id: "result", name: "Result", value: (row) => (row.result ? JSON.stringify(row.result) : null), optional: true },
];
const OF_HOST: readonly Column<CommandRow>[] = COLUMNS.map((column) =>
  column.id === "host_name" ? { ...column, optional: true } : column,
);

/** address: the search is kept there. */
export function CommandList({ hostId, address = false }: { hostId?: string; address?: boolean }) {
  const list = usePaged(commandsQuery(hostId), (row) => row.id);
  return (
    <DataTable
      of={["command", "commands"]}
      columns={hostId ? OF_HOST : COLUMNS}
      {...list}
      address={address}
      file={hostId}
      empty={
        <Empty title="No commands yet" command={hostId ? `windrow command ls --host ${hostId}` : "windrow command ls"}>
          Each order the Master gives a host is listed here, with how far it got and what came back.
        </Empty>
      }
    />
  );
}

/** The whole result of a command: texts as they were printed, the rest as names and values. */
export function Result({ result }: { result: unknown }) {
  if (result === null || result === undefined)
    return (
      <Text size="sm" className="wr-quiet">
        Nothing came back yet, or there was nothing to say.
      </Text>
    );
  if (typeof result !== "object")
    return (
      <pre className="wr-output" tabIndex={0} role="region" aria-label="Result">
        {plain(String(result))}
      </pre>
    );
  const entries = Object.entries(result as Record<string, unknown>);
  const long = entries.filter(([, value]) => typeof value === "string" && (value.includes("\n") || value.length > 120));
  const short = entries.filter((entry) => !long.includes(entry));
  return (
    <>
      {short.length > 0 && (
        <Facts
          rows={short.map(
            ([name, value]) =>
              [
                words(name),
                <span key={name} className="wr-break">
                  {plain(typeof value === "string" ? value : JSON.stringify(value))}
                </span>,
              ] as const,
          )}
        />
      )}
      {long.map(([name, value]) => (
        <pre key={name} className="wr-output" tabIndex={0} role="region" aria-label={words(name)}>
          {String(value)
            .split("\n")
            .map((line) => (line ? plain(line) : ""))
            .join("\n")}
        </pre>
      ))}
    </>
  );
}
