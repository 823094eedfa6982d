// Orders the Master gave to hosts, newest first: how far each came, what it answered, why it failed.
import { Group, NativeSelect, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { commandsBefore, commands as commandsQuery } from "../api/queries.ts";
import type { CommandRow } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { percent, plain, took, words } from "../format.ts";
import { CsvButton } from "./Csv.tsx";
import { FilterBox } from "./FilterBox.tsx";
import { ListFoot } from "./ListFoot.tsx";
import { useOlder } from "./older.ts";
import { Empty, Facts, Id, Loaded } from "./page.tsx";
import { Subject } from "./Subject.tsx";
import { State, When } from "./state.tsx";

const COLUMNS: readonly CsvColumn<CommandRow>[] = [
  { name: "id", value: (row) => row.id },
  { name: "host_id", value: (row) => row.host_id },
  { name: "kind", value: (row) => row.kind },
  { name: "subject", value: (row) => row.subject },
  { name: "state", value: (row) => row.state },
  { name: "step", value: (row) => row.step },
  { name: "progress", value: (row) => row.progress },
  { name: "error", value: (row) => row.error },
  { name: "created_at", value: (row) => row.created_at },
  { name: "sent_at", value: (row) => row.sent_at },
  { name: "done_at", value: (row) => row.done_at },
  { name: "result", value: (row) => (row.result ? JSON.stringify(row.result) : null) },
];

export interface CommandSearch {
  q: string;
  state: string;
}

export function CommandList({
  hostId,
  search: given,
  onSearch,
}: {
  hostId?: string;
  search?: CommandSearch;
  onSearch?: (search: CommandSearch) => void;
}) {
  const query = useQuery(commandsQuery(hostId));
  const older = useOlder(
    hostId ?? "",
    query.data,
    (cursor) => commandsBefore(hostId, cursor),
    (row) => row.id,
  );
  const [own, setOwn] = useState<CommandSearch>({ q: "", state: "" });
  const search = given ?? own;
  const change = onSearch ?? setOwn;
  const shown = useMemo(() => older.rows.filter(matching(search)), [older.rows, search]);
  const states = useMemo(
    () => [...new Set([...older.rows.map((row) => row.state), ...(search.state ? [search.state] : [])])].sort(),
    [older.rows, search.state],
  );
  return (
    <Loaded query={query}>
      {() =>
        older.rows.length === 0 ? (
          <Empty
            title="No commands yet"
            command={hostId ? `windrow command ls --host ${hostId}` : "windrow command ls"}
          >
            Each order the Master gives a host is listed here, with how far it got and what came back.
          </Empty>
        ) : (
          <>
            <Group gap={6} p={10} justify="space-between">
              <Group gap={6}>
                <FilterBox
                  label="Filter commands"
                  value={search.q}
                  onChange={(q) => change({ ...search, q })}
                  placeholder="Kind, step, error, id"
                  restMs={120}
                />
                <NativeSelect
                  size="xs"
                  aria-label="State of commands"
                  value={search.state}
                  onChange={(event) => change({ ...search, state: event.currentTarget.value })}
                  data={[
                    { value: "", label: "Every state" },
                    ...states.map((state) => ({ value: state, label: words(state) })),
                  ]}
                />
              </Group>
              <CsvButton
                of="commands"
                name={`windrow-commands${hostId ? `-${hostId}` : ""}`}
                columns={COLUMNS}
                rows={() => shown}
                disabled={shown.length === 0}
              />
            </Group>
            {shown.length === 0 ? (
              <Empty title="No command matches">Older commands are matched once they were read.</Empty>
            ) : (
              <Table rows={shown} ofHost={hostId !== undefined} />
            )}
            <ListFoot older={older} shown={shown.length} />
          </>
        )
      }
    </Loaded>
  );
}

function matching({ q, state }: CommandSearch): (row: CommandRow) => boolean {
  const wanted = q.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => {
    if (state && row.state !== state) return false;
    const text = (
      `${row.kind} ${words(row.kind)} ${row.step ?? ""} ${row.error ?? ""} ${row.id} ` +
      `${row.host_id} ${row.subject ?? ""}`
    ).toLowerCase();
    return wanted.every((word) => text.includes(word));
  };
}

function Table({ rows, ofHost }: { rows: readonly CommandRow[]; ofHost: boolean }) {
  return (
    <div className="wr-scroll" tabIndex={0} role="region" aria-label="Table of commands">
      <table className="wr-table">
        <thead>
          <tr>
            <th scope="col">Command</th>
            {!ofHost && <th scope="col">Host</th>}
            <th scope="col">State</th>
            <th scope="col">Step</th>
            <th scope="col" className="num">
              Progress
            </th>
            <th scope="col">Asked</th>
            <th scope="col">Took</th>
            <th scope="col">Id</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <td>
                <Link className="wr-link" to="/commands/$commandId" params={{ commandId: row.id }}>
                  {words(row.kind)}
                </Link>
              </td>
              {!ofHost && (
                <td>
                  <Subject id={row.host_id} />
                </td>
              )}
              <td>
                <State state={row.state} />
                {row.error && (
                  <Text size="xs" className="wr-break wr-quiet" maw={320}>
                    {plain(row.error)}
                  </Text>
                )}
              </td>
              <td>{plain(row.step)}</td>
              <td className="num">{percent(row.progress)}</td>
              <td>
                <When at={row.created_at} />
              </td>
              <td>{took(row.created_at, row.done_at)}</td>
              <td>
                <Id id={row.id} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What came back, in full: texts as they were printed, the rest as names and values. */
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
