// Silences: what is not told for a while, the form that adds one, and the alerts that are silenced now.
import { Autocomplete, Button, NativeSelect, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import { alertRules, alerts as alertsQuery, hostsFound, me as meQuery, silences as query } from "../api/queries.ts";
import type { Alert, AlertRules, Silence } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Panel, TYPING_MS } from "../parts/page.tsx";
import { Actor } from "../parts/Subject.tsx";
import { showUndo } from "../parts/undo.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import { AlertActs } from "./AlertActs.tsx";
import { hasPage, mayAct, SPANS } from "./alerts.ts";
import { NamedSubject } from "./NamedSubject.tsx";
import { useNames } from "./names.ts";

const PATH = "/alert-silences";
const LISTS = [query, { queryKey: ["alerts"] }];
const WEEK: (typeof SPANS)[number] = [7 * 86_400, "7 days"];

const isId = (text: string): boolean => text === "" || text === "master" || /^([a-z]{2,16}_|GPU-)./.test(text);

/** A rule by its title where it has one. */
const titleOf = (rules: AlertRules | undefined, code: string): string =>
  rules?.built_in.find((one) => one.code === code)?.title ?? rules?.items.find((one) => one.id === code)?.name ?? code;

const columnsFor = (
  rules: AlertRules | undefined,
  names: Record<string, string>,
  acts: boolean,
): readonly Column<Silence>[] => [
  { id: "rule", name: "Rule", value: (row) => (row.rule === null ? "Any" : titleOf(rules, row.rule)) },
  {
    id: "cause",
    name: "About",
    value: (row) => row.cause ?? "Anything",
    cell: (row) => (row.cause && hasPage(row.cause) ? <NamedSubject id={row.cause} /> : plain(row.cause ?? "Anything")),
  },
  moment("starts_at", "From", (row) => row.starts_at),
  moment("ends_at", "Until", (row) => row.ends_at),
  { id: "reason", name: "Reason", value: (row) => row.reason },
  {
    id: "by",
    name: "By",
    value: (row) => row.created_by,
    cell: (row) => <Actor actor={row.created_by} names={names} />,
  },
  identity((row) => row.id, { optional: true }),
  ...(acts ? [actions<Silence>((row) => <End silence={row} />)] : []),
];

export function Silences() {
  const found = useQuery(query);
  const rules = useQuery(alertRules).data;
  const me = useQuery(meQuery).data;
  const names = useNames();
  const acts = mayAct(me?.roles ?? []);
  const [adding, setAdding] = useState(false);
  const columns = useMemo(() => columnsFor(rules, names, acts), [rules, names, acts]);
  const add = (
    <Button leftSection={<PlusIcon size={14} />} onClick={() => setAdding(true)}>
      Add a silence
    </Button>
  );
  return (
    <Panel title="Silences" bare actions={acts && (found.data?.length ?? 0) > 0 && add}>
      <DataTable
        of={["silence", "silences"]}
        columns={columns}
        id={(row) => row.id}
        rows={found.data}
        query={found}
        bare={(found.data?.length ?? 0) < 12}
        empty={
          <Empty
            title="Nothing is silenced"
            command="windrow alert silences add --host gpu-7 --for 2h --reason 'new fans'"
            action={acts && add}
          >
            While you work on a host, a silence keeps its alerts from being told. What still holds when it ends is told
            then.
          </Empty>
        }
      />
      {adding && <Add rules={rules} close={() => setAdding(false)} />}
    </Panel>
  );
}

const SILENCED: readonly Column<Alert>[] = [
  {
    id: "title",
    name: "Alert",
    value: (row) => row.title,
    cell: (row) => (
      <Link className="wr-link wr-break" to="/alerts/$alertId" params={{ alertId: row.id }}>
        {plain(row.title)}
      </Link>
    ),
  },
  moment("until", "Until", (row) => row.silenced_until),
];

/** Each by itself, or by a silence above. */
export function SilencedAlerts() {
  const acts = mayAct(useQuery(meQuery).data?.roles ?? []);
  const list = usePaged(alertsQuery("silenced"), (row) => row.id);
  const columns = acts ? [...SILENCED, actions<Alert>((row) => <AlertActs alert={row} isSmall />)] : SILENCED;
  return (
    <Panel title="Alerts that are silenced now" bare>
      <DataTable
        of={["silenced alert", "silenced alerts"]}
        columns={columns}
        {...list}
        bare={list.rows !== undefined && list.rows.length < 12}
        empty={<Empty title="No alert is silenced">To silence one alert, press Silence beside it under Open.</Empty>}
      />
    </Panel>
  );
}

function End({ silence }: { silence: Silence }) {
  const client = useQueryClient();
  const again = () => {
    for (const { queryKey } of LISTS) void client.invalidateQueries({ queryKey });
  };
  const { rule, cause, ends_at, reason } = silence;
  const undo = async () => {
    await post(PATH, { rule, cause, ends_at, reason });
    again();
  };
  const act = useMutation({
    mutationFn: () => remove(`${PATH}/${encodeURIComponent(silence.id)}`),
    onSuccess: () => {
      again();
      showUndo("The silence is over", undo);
    },
  });
  return (
    <Button
      variant="subtle"
      color="red"
      size="compact-sm"
      loading={act.isPending}
      {...(act.error ? { title: act.error.message } : {})}
      onClick={() => act.mutate()}
      aria-label={`End the silence of ${plain(cause ?? rule ?? "all")}`}
    >
      End
    </Button>
  );
}

function Add({ rules, close }: { rules: AlertRules | undefined; close: () => void }) {
  const [draft, setDraft] = useState({ rule: "", about: "", seconds: SPANS[0]![0], reason: "" });
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part });
  const [typed] = useDebouncedValue(draft.about.trim(), TYPING_MS);
  const found = useQuery({ ...hostsFound(typed), enabled: typed !== "" }).data?.items;
  const hosts = found ?? [];
  const about = draft.about.trim();
  const isUnknown = found !== undefined && about === typed && !isId(about) && !found.some(({ name }) => name === about);
  const body = () => ({
    rule: draft.rule || null,
    cause: hosts.find((one) => one.name === about)?.id ?? (about || null),
    ends_at: new Date(Date.now() + draft.seconds * 1000).toISOString(),
    reason: draft.reason.trim(),
  });
  const act = useChange(() => post(PATH, body()), { lists: LISTS, said: "It is silenced", close });
  const told = faultsOf(act.error);
  const all = [...(rules?.items ?? []).map(({ id, name }) => ({ value: id, label: plain(name) }))].concat(
    (rules?.built_in ?? []).map(({ code, title }) => ({ value: code, label: plain(title) })),
  );
  return (
    <FormDialog
      title="Add a silence"
      close={close}
      act={act}
      ready={!isUnknown && (draft.rule !== "" || about !== "")}
      fields={["cause", "ends_at", "rule"]}
      submit="Silence it"
    >
      <Autocomplete
        label="Host, job, relay or machine"
        description="The name of a host, or any id. Empty: all of them, by one rule."
        data={[...new Set(hosts.map((one) => one.name))]}
        value={draft.about}
        error={told.cause ?? (isUnknown && "No host has this name. Anything else is named by its id, as job_...")}
        onChange={(value) => change({ about: value })}
        data-autofocus
      />
      <NativeSelect
        label="Rule"
        value={draft.rule}
        error={told.rule}
        onChange={(event) => change({ rule: event.currentTarget.value })}
        data={[{ value: "", label: "Any" }, ...all]}
      />
      <NativeSelect
        label="For"
        value={String(draft.seconds)}
        error={told.ends_at}
        onChange={(event) => change({ seconds: Number(event.currentTarget.value) })}
        data={[...SPANS, WEEK].map(([seconds, name]) => ({ value: String(seconds), label: name }))}
      />
      <TextInput
        label="Reason"
        maxLength={300}
        value={draft.reason}
        onChange={(event) => change({ reason: event.currentTarget.value })}
      />
    </FormDialog>
  );
}
