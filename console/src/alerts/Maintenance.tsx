// Maintenance windows: the list, the form that declares one, and the line on a host's page.
import { Button, NativeSelect, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { post, remove } from "../api/client.ts";
import { maintenance, maintenanceOf, maintenancePlan, me as meQuery } from "../api/queries.ts";
import type { MaintenanceWindow } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf, isAtFields } from "../parts/faults.ts";
import { count, exact, listed, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Panel, ProblemNote, TYPING_MS } from "../parts/page.tsx";
import { Subject } from "../parts/Subject.tsx";
import { State } from "../parts/state.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { SPANS } from "./alerts.ts";

const FIELDS = ["hosts", "starts_at", "ends_at", "reason"];
const PATH = "/maintenance-windows";
const LISTS = [maintenance, { queryKey: ["alerts"] }, { queryKey: ["hosts"] }];

const namesIn = (text: string): string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);

const COLUMNS: readonly Column<MaintenanceWindow>[] = [
  {
    id: "hosts",
    name: "Hosts",
    value: (row) => listed(row.names),
    cell: (row) =>
      row.hosts.length === 1 ? <Subject id={row.hosts[0]!} name={row.names[0]} /> : plain(listed(row.names)),
  },
  moment("starts_at", "From", (row) => row.starts_at),
  moment("ends_at", "Until", (row) => row.ends_at),
  {
    id: "state",
    name: "State",
    value: (row) => row.state,
    cell: (row) => <State state={row.state} tone={row.state === "running" ? "busy" : "off"} />,
  },
  { id: "reason", name: "Reason", value: (row) => row.reason },
  identity((row) => row.id, { optional: true }),
];

export function Maintenance() {
  const found = useQuery(maintenance);
  const me = useQuery(meQuery).data;
  const [adding, setAdding] = useState(false);
  const isOperator = me?.roles.includes("operator") ?? false;
  const acts = isOperator || (me?.roles.includes("provider") ?? false);
  const isOwn = (row: MaintenanceWindow) => isOperator || row.owner === me?.account.id;
  const end = actions<MaintenanceWindow>((row) => isOwn(row) && <End window={row} />);
  const add = (
    <Button leftSection={<PlusIcon size={14} />} onClick={() => setAdding(true)}>
      Plan maintenance
    </Button>
  );
  return (
    <Panel title="Maintenance" bare actions={acts && (found.data?.length ?? 0) > 0 && add}>
      <DataTable
        of={["window", "windows"]}
        columns={acts ? [...COLUMNS, end] : COLUMNS}
        id={(row) => row.id}
        rows={found.data}
        query={found}
        bare={(found.data?.length ?? 0) < 12}
        empty={
          <Empty
            title="No maintenance is planned"
            command="windrow maintenance add gpu-7 --from 2d --for 4h --reason 'new fans'"
            action={acts && add}
          >
            Renters and owners of the hosts are told ahead. While it lasts nothing new starts there and no alert about
            the hosts is told.
          </Empty>
        }
      />
      {adding && <Add close={() => setAdding(false)} />}
    </Panel>
  );
}

function End({ window }: { window: MaintenanceWindow }) {
  const act = useChange(() => remove(`${PATH}/${encodeURIComponent(window.id)}`), {
    lists: LISTS,
    said: "The maintenance is over",
  });
  return (
    <Button
      variant="subtle"
      color="red"
      size="compact-sm"
      loading={act.isPending}
      {...(act.error ? { title: act.error.message } : {})}
      onClick={() => act.mutate()}
      aria-label={`End the maintenance of ${plain(listed(window.names))}`}
    >
      {window.state === "running" ? "End" : "Remove"}
    </Button>
  );
}

function Add({ close }: { close: () => void }) {
  const [draft, setDraft] = useState({ hosts: "", starts: "", seconds: SPANS[0]![0], reason: "" });
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part });
  const [typed] = useDebouncedValue(draft.hosts, TYPING_MS);
  const plan = useQuery({ ...maintenancePlan(namesIn(typed)), enabled: namesIn(typed).length > 0 });
  const body = () => {
    const starts = draft.starts ? new Date(draft.starts) : new Date();
    const ends_at = new Date(starts.getTime() + draft.seconds * 1000).toISOString();
    const starts_at = draft.starts ? starts.toISOString() : null;
    return { hosts: namesIn(draft.hosts), starts_at, ends_at, reason: draft.reason };
  };
  const said = draft.starts ? "The maintenance is planned" : "The maintenance has begun";
  const act = useChange(() => post(PATH, body()), { lists: LISTS, said, close });
  const told = { ...faultsOf(plan.error), ...faultsOf(act.error) };
  const ready = namesIn(draft.hosts).length > 0 && plan.error === null;
  return (
    <FormDialog
      title="Plan maintenance"
      close={close}
      act={act}
      ready={ready}
      fields={FIELDS}
      submit={draft.starts ? "Plan it" : "Begin now"}
    >
      <TextInput
        label="Hosts"
        description="Names or ids, with commas between them."
        value={draft.hosts}
        error={told.hosts}
        onChange={(event) => change({ hosts: event.currentTarget.value })}
        data-autofocus
      />
      {plan.error && !isAtFields(plan.error, FIELDS) && <ProblemNote error={plan.error} />}
      {plan.data && (
        <Text size="sm">
          {plan.data.earliest_start === null
            ? `${count(plan.data.open_ended)} of ${count(plan.data.leases)} leases there have no duration.`
            : `Nothing runs there any more, by its duration, from ${exact(plan.data.earliest_start)} on.`}
        </Text>
      )}
      <TextInput
        label="From"
        description="Empty: now"
        type="datetime-local"
        value={draft.starts}
        error={told.starts_at}
        onChange={(event) => change({ starts: event.currentTarget.value })}
      />
      <NativeSelect
        label="For"
        value={String(draft.seconds)}
        error={told.ends_at}
        onChange={(event) => change({ seconds: Number(event.currentTarget.value) })}
        data={SPANS.map(([seconds, name]) => ({ value: String(seconds), label: name }))}
      />
      <TextInput
        label="Reason"
        description="Renters and owners read it."
        maxLength={300}
        value={draft.reason}
        error={told.reason}
        onChange={(event) => change({ reason: event.currentTarget.value })}
      />
    </FormDialog>
  );
}

/** On the page of a host: the times of its maintenance. */
export function HostMaintenance({ hostId }: { hostId: string }) {
  const found = useQuery(maintenanceOf(hostId)).data?.items ?? [];
  return found.map((one) => (
    <Text key={one.id} size="sm" mb={12} className="wr-break">
      Maintenance from {exact(one.starts_at)} until {exact(one.ends_at)}
      {one.reason && `: ${plain(one.reason)}`}
    </Text>
  ));
}
