// The service accounts of a project, and the dialogs that add one, rotate its token, and remove it.
import { Button, Checkbox, Group, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import { limits as limitsQuery, serviceAccounts as query } from "../api/queries.ts";
import type { Me, ServiceAccount, ServiceMade } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { TokenShown } from "../parts/ShownOnce.tsx";
import { operand } from "../parts/shell.ts";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { limitsColumn, MoreLimits, SetLimits, useLimits } from "./Limits.tsx";
import { isEmpty, limitWords, NO_LIMITS, toLimits } from "./limits.ts";
import { lastUse, manages, serviceCommand, serviceRoles } from "./members.ts";
import { roleName, roleNames } from "./roles.ts";

type Deed = "limit" | "rotate" | "remove";
type Asked = { deed: "add" } | { deed: Deed; service: ServiceAccount };
type Limits = ReturnType<typeof useLimits>;

const pathOf = (service: ServiceAccount): string => `/service-accounts/${encodeURIComponent(service.id)}`;

const columnsFor = (me: Me, limits: Limits, ask: (asked: Asked) => void): readonly Column<ServiceAccount>[] => [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "roles", name: "Roles", value: (row) => roleNames(row.roles) },
  limitsColumn(limits, (row) => row.id),
  moment("expires_at", "Token expires", (row) => row.tokens.at(-1)?.expires_at ?? null, "no token"),
  moment("last_used_at", "Last used", (row) => lastUse(row)?.last_used_at ?? null, "never"),
  { id: "address", name: "From", value: (row) => lastUse(row)?.last_used_address ?? null },
  identity((row) => row.id, { optional: true }),
  ...(manages(me) ? [actions<ServiceAccount>((row) => <Deeds service={row} ask={ask} />)] : []),
];

function Deeds({ service, ask }: { service: ServiceAccount; ask: (asked: Asked) => void }) {
  const button = (deed: Deed, label: string, color: string) => (
    <Button
      variant="subtle"
      color={color}
      size="compact-sm"
      onClick={() => ask({ deed, service })}
      aria-label={`${label}: ${plain(service.name)}`}
    >
      {label}
    </Button>
  );
  return (
    <Group gap={4} justify="flex-end">
      {button("limit", "Limits", "gray")}
      {button("rotate", "New token", "gray")}
      {button("remove", "Remove", "red")}
    </Group>
  );
}

export function ServiceAccounts({ me }: { me: Me }) {
  const found = useQuery(query);
  const [asked, ask] = useState<Asked | null>(null);
  const limits = useLimits();
  const columns = useMemo(() => columnsFor(me, limits, ask), [me, limits]);
  const close = () => ask(null);
  return (
    <Panel
      title="Service accounts"
      bare
      actions={
        manages(me) && (
          <Button variant="default" onClick={() => ask({ deed: "add" })}>
            New service account
          </Button>
        )
      }
    >
      <DataTable
        of={["service account", "service accounts"]}
        columns={columns}
        id={(row) => row.id}
        rows={found.data}
        query={found}
        bare
        empty={
          <Empty title="No service accounts" command="windrow service-account add NAME --role renter">
            A service account lets a program act in this project. It belongs to the project, not to a person.
          </Empty>
        }
      />
      {asked?.deed === "add" && <Add me={me} close={close} />}
      {asked?.deed === "limit" && <SetLimits spender={{ kind: "service_account", ...asked.service }} close={close} />}
      {asked?.deed === "rotate" && <Rotate service={asked.service} close={close} />}
      {asked?.deed === "remove" && <Remove service={asked.service} close={close} />}
    </Panel>
  );
}

const LISTS = [query, limitsQuery];

function useAfter(): () => void {
  const client = useQueryClient();
  return () => {
    for (const { queryKey } of LISTS) void client.invalidateQueries({ queryKey });
  };
}

function Shown({ made, close }: { made: ServiceMade; close: () => void }) {
  return <TokenShown title={`Token of ${plain(made.service_account.name)}`} token={made.token.token} close={close} />;
}

function Add({ me, close }: { me: Me; close: () => void }) {
  const [typed, setTyped] = useState("");
  const [roles, setRoles] = useState<string[]>(["viewer"]);
  const name = typed.trim();
  const [draft, setDraft] = useState(NO_LIMITS);
  const { body: limits, faults } = toLimits(draft);
  const body = { name, roles, ...(isEmpty(limits) ? {} : { limits }) };
  const after = useAfter();
  const act = useMutation({
    mutationFn: () => post<ServiceMade>("/service-accounts", body),
    gcTime: 0,
    onSuccess: after,
  });
  if (act.data) return <Shown made={act.data} close={close} />;
  return (
    <FormDialog
      title="New service account"
      close={close}
      act={act}
      ready={name !== "" && roles.length > 0 && Object.keys(faults).length === 0}
      fields={["name"]}
      submit="Add it"
    >
      <TextInput
        label="Name"
        description="Lower-case letters, digits and . @ _ -"
        placeholder="ci"
        autoComplete="off"
        maxLength={64}
        value={typed}
        error={faultsOf(act.error).name}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
      />
      <Checkbox.Group label="Roles" description="Those that you have yourself." value={roles} onChange={setRoles}>
        <Group mt={4}>
          {serviceRoles(me).map((role) => (
            <Checkbox key={role} value={role} label={roleName(role)} />
          ))}
        </Group>
      </Checkbox.Group>
      <MoreLimits draft={draft} change={setDraft} faults={faults} />
      <Same
        method="POST"
        path="/service-accounts"
        body={body}
        command={[serviceCommand(name, roles), ...limitWords(limits)].join(" ")}
      />
    </FormDialog>
  );
}

function Rotate({ service, close }: { service: ServiceAccount; close: () => void }) {
  const path = `${pathOf(service)}/rotate`;
  const after = useAfter();
  const act = useMutation({ mutationFn: () => post<ServiceMade>(path, {}), gcTime: 0, onSuccess: after });
  if (act.data) return <Shown made={act.data} close={close} />;
  return (
    <FormDialog title={`New token: ${plain(service.name)}`} close={close} act={act} ready submit="Make the token">
      <Text size="sm">The token before stays valid for 24 hours; older ones end at once.</Text>
      <Same method="POST" path={path} body={{}} command={`windrow service-account rotate ${operand(service.id)}`} />
    </FormDialog>
  );
}

function Remove({ service, close }: { service: ServiceAccount; close: () => void }) {
  const name = plain(service.name);
  const said = `The service account ${name} is removed`;
  const act = useChange(() => remove(pathOf(service)), { lists: LISTS, said, close });
  return (
    <ConfirmByName
      title={`Remove ${name}`}
      name={service.name}
      button="Remove"
      act={act}
      close={close}
      text="Its tokens stop at once. What runs goes on, since it is the project's."
    >
      <Same
        method="DELETE"
        path={pathOf(service)}
        command={`windrow service-account rm ${operand(service.id)} --yes`}
      />
    </ConfirmByName>
  );
}
