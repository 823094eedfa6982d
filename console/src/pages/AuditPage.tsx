// Who did what to which thing and why, and whether nobody has changed the record since.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { type AuditWanted, auditBefore, audit as auditQuery, auditVerdict } from "../api/queries.ts";
import type { AuditRow, AuditVerdict } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { count, DASH, plain } from "../format.ts";
import { CsvButton } from "../parts/Csv.tsx";
import { ListFoot } from "../parts/ListFoot.tsx";
import { useOlder } from "../parts/older.ts";
import { Empty, Facts, Loaded, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Actor, Subject } from "../parts/Subject.tsx";
import { State, When } from "../parts/state.tsx";
import { quoted } from "../request.ts";

const COLUMNS: readonly CsvColumn<AuditRow>[] = [
  { name: "number", value: (row) => row.number },
  { name: "at", value: (row) => row.at },
  { name: "term", value: (row) => row.epoch },
  { name: "actor", value: (row) => row.actor },
  { name: "action", value: (row) => row.action },
  { name: "subject", value: (row) => row.subject },
  { name: "reason", value: (row) => row.reason },
  { name: "fields", value: (row) => JSON.stringify(row.fields) },
  { name: "chain", value: (row) => row.chain },
];

const FIELDS: readonly (readonly [keyof AuditWanted, string, string])[] = [
  ["actor", "Actor", "account/account_…"],
  ["action", "Action", "host. or token.make"],
  ["subject", "Subject", "host_… or token_…"],
  ["since", "From", "2026-01-31"],
  ["until", "Until", "2026-02-01"],
];

/** A day alone is its first moment, in UTC. */
const moment = (text: string): string => (/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);

export function AuditPage() {
  const search = useSearch({ from: "/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const given = Object.fromEntries(
    FIELDS.flatMap(([name]) => (search[name] ? [[name, search[name]]] : [])),
  ) as AuditWanted;
  const wanted: AuditWanted = {
    ...given,
    since: given.since && moment(given.since),
    until: given.until && moment(given.until),
  };
  const narrowed = Object.keys(given).length > 0;
  const go = (next: AuditWanted) => void navigate({ to: "/audit", search: next as never, replace: true });
  return (
    <div className="wr-page">
      <PageHead title="Audit" />
      <div className="wr-stack">
        <Verify />
        <Panel bare label="Entries">
          <Search key={JSON.stringify(given)} given={given} go={go} narrowed={narrowed} />
          <Entries wanted={wanted} narrowed={narrowed} />
        </Panel>
        <Same method="GET" path={`/audit${queryOf(wanted)}`} command={commandOf(wanted)} />
      </div>
    </div>
  );
}

function queryOf(wanted: AuditWanted): string {
  const words = new URLSearchParams(
    Object.entries(wanted).filter((entry): entry is [string, string] => Boolean(entry[1])),
  ).toString();
  return words ? `?${words}` : "";
}

function commandOf(wanted: AuditWanted): string {
  const flags = FIELDS.filter(([name]) => wanted[name]).map(([name]) => ` --${name} ${quoted(wanted[name] ?? "")}`);
  return `windrow audit ls${flags.join("")}`;
}

function Search({ given, go, narrowed }: { given: AuditWanted; go: (wanted: AuditWanted) => void; narrowed: boolean }) {
  const [draft, setDraft] = useState<AuditWanted>(given);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    go(
      Object.fromEntries(
        Object.entries(draft).flatMap(([name, value]) => (value?.trim() ? [[name, value.trim()]] : [])),
      ),
    );
  };
  return (
    <form onSubmit={submit} role="search" aria-label="Entries">
      <Group gap={8} p={10} align="flex-end">
        {FIELDS.map(([name, label, example]) => (
          <TextInput
            key={name}
            size="xs"
            w={name === "since" || name === "until" ? 130 : 190}
            label={label}
            placeholder={example}
            value={draft[name] ?? ""}
            onChange={(event) => setDraft({ ...draft, [name]: event.currentTarget.value })}
          />
        ))}
        <Button type="submit">Search</Button>
        {narrowed && (
          <Button variant="subtle" color="gray" onClick={() => go({})}>
            Clear
          </Button>
        )}
      </Group>
    </form>
  );
}

function Entries({ wanted, narrowed }: { wanted: AuditWanted; narrowed: boolean }) {
  const query = useQuery(auditQuery(wanted));
  const older = useOlder(
    JSON.stringify(wanted),
    query.data,
    (cursor) => auditBefore(wanted, cursor),
    (row) => String(row.number),
  );
  return (
    <Loaded query={query} lines={8}>
      {() =>
        older.rows.length === 0 ? (
          <Empty title={narrowed ? "No entry matches" : "Nothing was decided yet"} command="windrow audit ls">
            {narrowed
              ? "Actor and subject must be whole; an action may be a beginning that ends with a dot, such as host."
              : "Whoever changes anything here is written down with the reason."}
          </Empty>
        ) : (
          <>
            <div className="wr-scroll" tabIndex={0} role="region" aria-label="Table of entries">
              <table className="wr-table">
                <thead>
                  <tr>
                    <th scope="col" className="num">
                      No.
                    </th>
                    <th scope="col">When</th>
                    <th scope="col">Actor</th>
                    <th scope="col">Action</th>
                    <th scope="col">Subject</th>
                    <th scope="col">Reason</th>
                    <th scope="col">Fields</th>
                  </tr>
                </thead>
                <tbody>
                  {older.rows.map((row) => (
                    <tr key={row.number}>
                      <td className="num" title={`chain ${row.chain}`}>
                        {count(row.number)}
                      </td>
                      <td className="wr-quiet">
                        <When at={row.at} />
                      </td>
                      <td>
                        <Actor actor={row.actor} />
                      </td>
                      <td className="wr-mono">{plain(row.action)}</td>
                      <td>
                        <Subject id={row.subject} />
                      </td>
                      <td className="wr-break">{row.reason ? plain(row.reason) : DASH}</td>
                      <td className="wr-break wr-quiet">
                        {Object.entries(row.fields)
                          .map(([name, value]) => `${plain(name)}=${plain(value)}`)
                          .join(", ") || DASH}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <Group justify="flex-end" px={12} pt={8}>
              <CsvButton of="the audit entries" name="windrow-audit" columns={COLUMNS} rows={() => older.rows} />
            </Group>
            <ListFoot older={older as never} shown={older.rows.length} />
          </>
        )
      }
    </Loaded>
  );
}

function Verify() {
  const check = useMutation({ mutationFn: auditVerdict });
  return (
    <Panel
      title="Is it whole?"
      label="Verification"
      actions={
        <Button variant="default" loading={check.isPending} onClick={() => check.mutate()}>
          Verify now
        </Button>
      }
    >
      <Stack gap="sm">
        {!check.data && (
          <Text size="sm" className="wr-quiet">
            Each entry holds a hash over itself and the one before: whoever changes or removes one breaks the chain from
            there on. Verifying computes all of it again.
          </Text>
        )}
        {check.data && <Verdict verdict={check.data} />}
        {check.error && <ProblemNote error={check.error} retry={() => check.mutate()} />}
      </Stack>
    </Panel>
  );
}

function Verdict({ verdict }: { verdict: AuditVerdict }) {
  return (
    <div role="status" data-testid="verdict">
      <Stack gap="xs">
        {verdict.intact ? (
          <State state={`Intact: ${count(verdict.entries)} entries`} tone="ok" />
        ) : (
          <State
            state={
              verdict.first_broken === null
                ? "Not intact"
                : `Not intact: entry ${count(verdict.first_broken)} is the first that does not fit`
            }
            tone="bad"
          />
        )}
        {verdict.problem && (
          <Text size="sm" className="wr-break">
            {plain(verdict.problem)}
          </Text>
        )}
        <Facts
          rows={[
            [
              "Head",
              verdict.head ? (
                <span key="h" className="wr-mono wr-break">
                  {verdict.head.number} {verdict.head.chain}
                </span>
              ) : (
                DASH
              ),
            ],
            [
              "Anchor",
              verdict.anchor ? (
                <span key="a">
                  entry {count(verdict.anchor.number)}, <When at={verdict.anchor.at} />
                </span>
              ) : (
                "none yet"
              ),
            ],
          ]}
        />
      </Stack>
    </div>
  );
}
