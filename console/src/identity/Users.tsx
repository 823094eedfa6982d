// The users of the market, for operators: who is deleted, and who becomes an owner of an organisation.
import { Button, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post } from "../api/client.ts";
import { me as meQuery, people as peopleQuery, users as usersQuery } from "../api/queries.ts";
import type { MarketUser } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand, quoted } from "../parts/shell.ts";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { roleName } from "./roles.ts";

type Asked = { deed: "delete" | "owner"; user: MarketUser };

const organisations = ({ organisations }: MarketUser): string =>
  organisations.map(({ name, role }) => (role ? `${name} (${roleName(role)})` : name)).join(", ");

const columnsFor = (mine: string | undefined, ask: (asked: Asked) => void): readonly Column<MarketUser>[] => [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "address", name: "Address", value: (row) => row.address },
  { id: "organisations", name: "Organisations", value: organisations },
  { id: "is_disabled", name: "Disabled", value: (row) => (row.is_disabled ? "yes" : "no"), facet: true },
  moment("created_at", "Added", (row) => row.created_at),
  identity((row) => row.id, { optional: true }),
  actions((row) => <Deeds user={row} isMine={row.id === mine} ask={ask} />),
];

function Deeds({ user, isMine, ask }: { user: MarketUser; isMine: boolean; ask: (asked: Asked) => void }) {
  const button = (deed: Asked["deed"], label: string, color: string) => (
    <Button
      variant="subtle"
      color={color}
      size="compact-sm"
      onClick={() => ask({ deed, user })}
      aria-label={`${label}: ${plain(user.name)}`}
    >
      {label}
    </Button>
  );
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {user.organisations.some(({ role }) => role !== "org_owner") && button("owner", "Make owner", "gray")}
      {!isMine && button("delete", "Delete user", "red")}
    </Group>
  );
}

export function Users() {
  const query = useQuery(usersQuery);
  const mine = useQuery(meQuery).data?.user?.id;
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useMemo(() => columnsFor(mine, ask), [mine]);
  const close = () => ask(null);
  return (
    <Panel title="Users" bare>
      <DataTable
        of={["user", "users"]}
        columns={columns}
        id={(row) => row.id}
        rows={query.data}
        query={query}
        empty={
          <Empty title="No users" command="windrow invite">
            Who accepts an invitation becomes a user.
          </Empty>
        }
      />
      {asked?.deed === "delete" && <DeleteUser user={asked.user} close={close} />}
      {asked?.deed === "owner" && <MakeOwner user={asked.user} close={close} />}
    </Panel>
  );
}

const LISTS = [usersQuery, peopleQuery];

function Reason({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <TextInput
      label="Reason"
      autoComplete="off"
      maxLength={400}
      value={value}
      onChange={(event) => set(event.currentTarget.value)}
      data-autofocus
    />
  );
}

function DeleteUser({ user, close }: { user: MarketUser; close: () => void }) {
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [name, path] = [plain(user.name), `/users/${encodeURIComponent(user.id)}/delete`];
  const body = { reason: reason.trim() };
  const act = useChange(() => post(path, body), { lists: LISTS, said: `The user ${name} is deleted`, close });
  return (
    <FormDialog
      title={`Delete the user ${name}`}
      close={close}
      act={act}
      ready={typed === user.name && body.reason !== ""}
      submit="Delete user"
      danger
    >
      <Text size="sm">
        Name, mail address, password, second factor, identities and sessions are erased for good; tokens stop at once.
        What the projects own stays, and so does the id in ledger and audit log.
      </Text>
      <Reason value={reason} set={setReason} />
      <TextInput
        label={`Type ${name} to confirm`}
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Same
        method="POST"
        path={path}
        body={body}
        command={`windrow user delete ${operand(user.id)} --yes --reason ${quoted(body.reason || "WHY")}`}
      />
    </FormDialog>
  );
}

function MakeOwner({ user, close }: { user: MarketUser; close: () => void }) {
  const free = user.organisations.filter(({ role }) => role !== "org_owner");
  const [organisation, setOrganisation] = useState(free[0]?.id ?? "");
  const [reason, setReason] = useState("");
  const [name, path] = [plain(user.name), `/users/${encodeURIComponent(user.id)}/make-owner`];
  const body = { organisation, reason: reason.trim() };
  const act = useChange(() => post(path, body), { lists: LISTS, said: `${name} is an owner now`, close });
  const words = `--organisation ${operand(organisation)} --reason ${quoted(body.reason || "WHY")}`;
  return (
    <FormDialog
      title={`Make ${name} an owner`}
      close={close}
      act={act}
      ready={organisation !== "" && body.reason !== ""}
      submit="Make owner"
    >
      <Text size="sm">For an organisation whose owners are gone. All of its members are told, with the reason.</Text>
      <NativeSelect
        label="Organisation"
        value={organisation}
        onChange={(event) => setOrganisation(event.currentTarget.value)}
        data={free.map(({ id, name }) => ({ value: id, label: plain(name) }))}
      />
      <Reason value={reason} set={setReason} />
      <Same method="POST" path={path} body={body} command={`windrow user make-owner ${operand(user.id)} ${words}`} />
    </FormDialog>
  );
}
