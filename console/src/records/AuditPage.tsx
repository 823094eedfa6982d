// The audit page: the entries, searched by the Master, and the check of their chain of hashes.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { type AuditWanted, audit as auditQuery, auditVerdict } from "../api/queries.ts";
import type { AuditRow, AuditVerdict } from "../api/types.ts";
import { count, DASH, plain, words } from "../parts/format.ts";
import { Empty, Facts, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Actor, Subject } from "../parts/Subject.tsx";
import { quoted } from "../parts/shell.ts";
import { State, When } from "../parts/state.tsx";
import { figure, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import { named } from "./events.ts";

/** A code, such as link_closed, as words. */
const reasonText = (text: string): string => (/^[a-z]+(_[a-z]+)+$/.test(text) ? words(text) : text);

const COLUMNS: readonly Column<AuditRow>[] = [
  figure("number", "No.", (row) => row.number, count, {
    cell: (row) => <span title={`chain ${row.chain}`}>{count(row.number)}</span>,
  }),
  moment("at", "When", (row) => row.at),
  {
    id: "actor",
    name: "Actor",
    width: 150,
    value: (row) => row.actor,
    cell: (row) => <Actor actor={row.actor} names={row.names} />,
  },
  {
    id: "action",
    name: "Action",
    value: (row) => row.action,
    cell: (row) => <span title={plain(row.action)}>{plain(row.title)}</span>,
  },
  {
    id: "subject",
    name: "Subject",
    value: (row) => row.names[row.subject] ?? row.subject,
    cell: (row) => <Subject id={row.subject} name={row.names[row.subject]} />,
  },
  { id: "reason", name: "Reason", value: (row) => row.reason && reasonText(named(row.reason, row.names)) },
  {
    id: "fields",
    name: "Fields",
    value: (row) => JSON.stringify(row.fields),
    cell: (row) => (
      <span className="wr-fields wr-quiet">
        {Object.entries(row.fields)
          .map(([name, value]) => `${words(name)}: ${named(value, row.names)}`)
          .join(", ") || DASH}
      </span>
    ),
  },
  { id: "term", name: "Term", value: (row) => row.epoch, optional: true },
  { id: "chain", name: "Chain", value: (row) => row.chain, optional: true },
];

const FIELDS: readonly (readonly [keyof AuditWanted, string, string])[] = [
  ["actor", "Actor", "user/user_…"],
  ["action", "Action", "host. or token.make"],
  ["subject", "Subject", "host_… or token_…"],
  ["since", "From", "2026-01-31"],
  ["until", "Until", "2026-02-01"],
];

/** A day alone is its first moment, in UTC. */
const instant = (text: string): string => (/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);

export function AuditPage() {
  const search = useSearch({ from: "/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const given = Object.fromEntries(
    FIELDS.flatMap(([name]) => (search[name] ? [[name, search[name]]] : [])),
  ) as AuditWanted;
  const wanted: AuditWanted = {
    ...given,
    since: given.since && instant(given.since),
    until: given.until && instant(given.until),
  };
  const narrowed = Object.keys(given).length > 0;
  const go = (next: AuditWanted) => void navigate({ to: "/audit", search: { ...next }, replace: true });
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
  const list = usePaged(auditQuery(wanted), (row) => String(row.number));
  return (
    <DataTable
      of={["audit entry", "audit entries"]}
      columns={COLUMNS}
      {...list}
      empty={
        <Empty title={narrowed ? "No entry matches" : "Nothing was decided yet"} command="windrow audit ls">
          {narrowed
            ? "Actor and subject are whole ids, as their tooltips show; an action may be a beginning such as host."
            : "Whoever changes anything here is written down with the reason."}
        </Empty>
      }
    />
  );
}

function Verify() {
  const check = useMutation({ mutationFn: auditVerdict });
  return (
    <Panel
      title="Integrity"
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
            Each entry holds a hash over itself and the entry before it, so that tampering shows.
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
