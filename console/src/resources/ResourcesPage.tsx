// The registry of compute resources: a list, where operators register, change and remove.
import { Button, Checkbox, Group, NativeSelect, Stack, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { post, put, remove } from "../api/client.ts";
import { REGISTRY } from "../api/paths.ts";
import {
  bindings as bindingsQuery,
  hosts as hostsQuery,
  me as meQuery,
  resources as resourcesQuery,
} from "../api/queries.ts";
import type { Binding, Resource } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { count, DASH, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Command, Empty, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand } from "../parts/shell.ts";
import { actions, figure, moment, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { BLANK, gpusOf, placeOf, type ResourceDraft, STATUSES, TYPES, toResource } from "./resources.ts";

interface Asked {
  /** null: the hosts behind them are not known yet. */
  bind: ((resource: Resource) => void) | null;
  change: (resource: Resource) => void;
  remove: (resource: Resource) => void;
}

type Bindings = ReadonlyMap<string, Binding>;

const columnsFor = (ask: Asked | null, bindings: Bindings): readonly Column<Resource>[] => [
  {
    id: "resource_id",
    name: "Resource",
    value: (row) => row.resource_id,
    cell: (row) => <span className="wr-mono">{plain(row.resource_id)}</span>,
  },
  { id: "resource_type", name: "Type", value: (row) => row.resource_type, facet: true },
  state("Status", (row) => row.status),
  {
    id: "host",
    name: "Host",
    value: (row) => bindings.get(row.resource_id)?.host_name ?? "none",
    cell: (row) => {
      const bound = bindings.get(row.resource_id);
      if (!bound?.host) return <span className="wr-quiet">none</span>;
      return (
        <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: bound.host }}>
          {plain(bound.host_name ?? bound.host)}
          {bound.dedicated && " (dedicated)"}
        </Link>
      );
    },
  },
  { id: "gpus", name: "GPUs", value: gpusOf },
  { id: "place", name: "Place", value: placeOf },
  {
    id: "provider",
    name: "Provider",
    value: (row) => row.provider,
    facet: (row) => row.provider ?? "none",
    optional: true,
  },
  {
    id: "frameworks",
    name: "Frameworks",
    value: (row) => row.supported_frameworks.join(" ") || "not said",
    optional: true,
  },
  figure("running", "Running", (row) => bindings.get(row.resource_id)?.running ?? null, count),
  figure("max_parallel_jobs", "Jobs at once", (row) => row.max_parallel_jobs, count),
  figure(
    "cost_per_hour_usd",
    "USD per hour",
    (row) => row.cost_per_hour_usd,
    (cost) => (cost === null ? DASH : cost.toFixed(2)),
  ),
  moment("updated_at", "Changed", (row) => row.updated_at ?? row.created_at),
  ...(ask
    ? [
        actions<Resource>((row) => (
          <Group gap={4} wrap="nowrap" justify="flex-end">
            <Button
              variant="subtle"
              disabled={!ask.bind}
              onClick={() => ask.bind?.(row)}
              aria-label={`Host of ${plain(row.resource_id)}`}
            >
              Host
            </Button>
            <Button variant="subtle" onClick={() => ask.change(row)} aria-label={`Status of ${plain(row.resource_id)}`}>
              Status
            </Button>
            <Button
              variant="subtle"
              color="red"
              onClick={() => ask.remove(row)}
              aria-label={`Remove ${plain(row.resource_id)}`}
            >
              Remove
            </Button>
          </Group>
        )),
      ]
    : []),
];

export function ResourcesPage() {
  const query = useQuery(resourcesQuery);
  const mayChange = useQuery(meQuery).data?.roles.includes("operator") ?? false;
  const [making, setMaking] = useState(false);
  const [changing, setChanging] = useState<Resource | null>(null);
  const [removing, setRemoving] = useState<Resource | null>(null);
  const [binding, setBinding] = useState<Resource | null>(null);
  const bound = useQuery(bindingsQuery).data;
  const bindings = useMemo(() => new Map(bound?.map((one) => [one.resource_id, one])), [bound]);
  const columns = useMemo(
    () =>
      columnsFor(
        mayChange ? { bind: bound ? setBinding : null, change: setChanging, remove: setRemoving } : null,
        bindings,
      ),
    [mayChange, bindings, bound],
  );
  return (
    <div className="wr-page">
      <PageHead
        title="Resources"
        actions={
          mayChange && (
            <Button leftSection={<PlusIcon />} onClick={() => setMaking(true)}>
              Register a resource
            </Button>
          )
        }
      />
      <Panel bare label="Resources">
        <DataTable
          of={["resource", "resources"]}
          columns={columns}
          id={(row) => row.resource_id}
          rows={query.data}
          query={query}
          address
          empty={
            <Empty title="No resources" command="windrow resource add lab-01 --type on-premise --gpu-count 1">
              The registry says what a team can compute on: its own machines, machines of a cloud, and small ones at the
              edge.
            </Empty>
          }
        />
      </Panel>
      {making && <Register close={() => setMaking(false)} />}
      {binding && bound && (
        <Bind resource={binding} bound={bindings.get(binding.resource_id)} close={() => setBinding(null)} />
      )}
      {changing && <SetStatus resource={changing} close={() => setChanging(null)} />}
      {removing && <Remove resource={removing} close={() => setRemoving(null)} />}
    </div>
  );
}

/** Does what is asked, says so, and reads the list again. */
function useAct(act: () => Promise<unknown>, said: string, close: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: () => {
      notifications.show({ message: said });
      void client.invalidateQueries({ queryKey: resourcesQuery.queryKey });
      void client.invalidateQueries({ queryKey: bindingsQuery.queryKey });
      close();
    },
  });
}

const pathOf = (resource: Resource) => `${REGISTRY}/${encodeURIComponent(resource.resource_id)}`;

function Register({ close }: { close: () => void }) {
  const [draft, setDraft] = useState<ResourceDraft>(BLANK);
  const [tried, setTried] = useState(false);
  const { request, command, faults } = toResource(draft);
  const make = useAct(() => post(REGISTRY, request), `${plain(request.resource_id)} is registered`, close);
  const field = (name: keyof ResourceDraft) => ({
    value: draft[name],
    error: tried ? faults[name] : undefined,
    autoComplete: "off",
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  return (
    <Dialog onClose={close} title="Register a resource" size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (Object.keys(faults).length === 0) make.mutate();
        }}
        noValidate
      >
        <Stack gap="sm">
          <TextInput label="Resource ID" placeholder="lab-a100-01" {...field("id")} data-autofocus />
          <NativeSelect label="Type" data={[...TYPES]} {...field("type")} />
          {draft.type === "cloud" ? (
            <Group grow align="flex-start">
              <TextInput label="Provider" placeholder="AWS" {...field("provider")} />
              <TextInput label="Region" placeholder="us-east-1" {...field("region")} />
            </Group>
          ) : (
            <TextInput label="Location" placeholder="Building A" {...field("location")} />
          )}
          <Group grow align="flex-start">
            <TextInput label="GPUs" placeholder="8" inputMode="numeric" {...field("gpus")} />
            <TextInput label="GPU model" placeholder="NVIDIA A100" {...field("gpuType")} />
          </Group>
          <Group grow align="flex-start">
            <TextInput label="CPU cores" placeholder="128" inputMode="numeric" {...field("cores")} />
            <TextInput label="Memory in GB" placeholder="1024" inputMode="decimal" {...field("memory")} />
          </Group>
          <TextInput
            label="Frameworks"
            description="Empty: not said, the image decides."
            placeholder="pytorch, sklearn"
            {...field("frameworks")}
          />
          <Group grow align="flex-start">
            <TextInput label="Jobs at once" inputMode="numeric" {...field("jobs")} />
            <TextInput label="USD per hour" placeholder="0.00" inputMode="decimal" {...field("cost")} />
          </Group>
          {make.error && <ProblemNote error={make.error} />}
          <Same method="POST" path={REGISTRY} body={request} command={command} />
          <DialogFoot close={close} loading={make.isPending}>
            Register
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

const NO_HOST = "";

/** Chooses the host that runs a resource's work, or none. */
function Bind({ resource, bound, close }: { resource: Resource; bound: Binding | undefined; close: () => void }) {
  const own = useQuery(meQuery).data?.account.id;
  const hosts = useQuery(hostsQuery).data ?? [];
  const [host, setHost] = useState(bound?.host ?? NO_HOST);
  const [dedicated, setDedicated] = useState(bound?.dedicated ?? false);
  const path = `/resources/${encodeURIComponent(resource.resource_id)}/binding`;
  const name = plain(resource.resource_id);
  const request = host === NO_HOST ? undefined : { host, dedicated };
  const act = useAct(
    () => (request ? put(path, request) : remove(path)),
    request ? `${name} is bound` : `${name} is bound to no host`,
    close,
  );
  const id = operand(resource.resource_id);
  return (
    <Dialog onClose={close} title={`Host of ${name}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate();
        }}
      >
        <Stack gap="sm">
          <NativeSelect
            label="Host"
            description="One of your own. It runs at most as many jobs at once as the resource allows."
            data={[
              { value: NO_HOST, label: "none" },
              ...hosts
                .filter((one) => one.owner_account === own && one.admin_state !== "retired" && !one.simulated)
                .map((one) => ({ value: one.id, label: plain(one.name) })),
              ...(bound?.host && !hosts.some((one) => one.id === bound.host && one.owner_account === own)
                ? [{ value: bound.host, label: `${plain(bound.host_name ?? bound.host)} (of another account)` }]
                : []),
            ]}
            value={host}
            onChange={(event) => setHost(event.currentTarget.value)}
            data-autofocus
          />
          <Checkbox
            label="Dedicated"
            description="The host takes no work but yours."
            checked={dedicated}
            disabled={host === NO_HOST}
            onChange={(event) => setDedicated(event.currentTarget.checked)}
          />
          {act.error && <ProblemNote error={act.error} />}
          <Same
            method={request ? "PUT" : "DELETE"}
            path={path}
            body={request}
            command={
              request
                ? `windrow resource bind ${id} --host ${host}${dedicated ? " --dedicated" : ""}`
                : `windrow resource unbind ${id}`
            }
          />
          <Command text={`windrow resource bind ${id} --ssh root@HOST`} label="a machine that is no host yet" />
          <DialogFoot close={close} loading={act.isPending}>
            Set host
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

function SetStatus({ resource, close }: { resource: Resource; close: () => void }) {
  const [status, setStatus] = useState<string>(resource.status);
  const change = useAct(
    () => put(pathOf(resource), { status }),
    `${plain(resource.resource_id)} is now: ${status}`,
    close,
  );
  return (
    <Dialog onClose={close} title={`Status of ${plain(resource.resource_id)}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <Stack gap="sm">
          <NativeSelect
            label="Status"
            data={[...STATUSES]}
            value={status}
            onChange={(event) => setStatus(event.currentTarget.value)}
            data-autofocus
          />
          {change.error && <ProblemNote error={change.error} />}
          <Same
            method="PUT"
            path={pathOf(resource)}
            body={{ status }}
            command={`windrow resource set ${operand(resource.resource_id)} --status ${status}`}
          />
          <DialogFoot close={close} loading={change.isPending}>
            Set status
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

function Remove({ resource, close }: { resource: Resource; close: () => void }) {
  const act = useAct(() => remove(pathOf(resource)), `${plain(resource.resource_id)} is removed`, close);
  return (
    <ConfirmByName
      title={`Remove ${plain(resource.resource_id)}`}
      name={resource.resource_id}
      button="Remove resource"
      act={act}
      close={close}
      text="It is no longer in the registry. The machine itself goes on."
    >
      <Same
        method="DELETE"
        path={pathOf(resource)}
        command={`windrow resource rm ${operand(resource.resource_id)} --yes`}
      />
    </ConfirmByName>
  );
}
