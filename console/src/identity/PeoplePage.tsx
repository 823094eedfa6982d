// The list of accounts; operators add, credit, suspend and resume them.

import { Button, Checkbox, Group, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { freshKey, post } from "../api/client.ts";
import { me as meQuery, people as peopleQuery, users as usersQuery } from "../api/queries.ts";
import type { Person, PersonMade, Role } from "../api/types.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { money, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, PageHead, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { LinkShown } from "../parts/ShownOnce.tsx";
import { operand } from "../parts/shell.ts";
import { actions, identity, moment, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { Settle, TransferAccount } from "./AccountEnds.tsx";
import { type PersonDraft, toCredit, toPerson } from "./people.ts";
import { roleName, roleNames } from "./roles.ts";
import { Users } from "./Users.tsx";

const ROLES: readonly (readonly [Role, string])[] = [
  ["renter", "rents hardware"],
  ["provider", "offers hosts"],
  ["operator", "runs the market"],
  ["auditor", "reads all records"],
];
type Kind = "credit" | "link" | "settle" | "suspend" | "resume" | "transfer";
type Asked = { kind: "add" } | { kind: Kind; person: Person };

const columnsFor = (mine: string | undefined, ask: (asked: Asked) => void): readonly Column<Person>[] => [
  {
    id: "name",
    name: "Name",
    value: (row) => row.name,
    cell: (row) => (
      <>
        {plain(row.name)}
        {row.id === mine && (
          <>
            {" "}
            <span className="wr-mark">you</span>
          </>
        )}
      </>
    ),
  },
  { id: "roles", name: "Roles", value: (row) => row.roles.join(" "), cell: (row) => roleNames(row.roles) },
  state("State", (row) => row.state),
  {
    id: "balance",
    name: "Balance",
    number: true,
    value: (row) => row.balance.amount,
    cell: ({ balance }) => (
      <span title={`${balance.amount} ${balance.currency}`}>{money(balance.amount, balance.currency)}</span>
    ),
  },
  moment("created_at", "Added", (row) => row.created_at),
  identity((row) => row.id),
  actions((row) => <Actions person={row} isMine={row.id === mine} ask={ask} />),
];

export function PeoplePage() {
  const query = useQuery(peopleQuery);
  const mine = useQuery(meQuery).data?.account.id;
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useMemo(() => columnsFor(mine, ask), [mine]);
  const close = () => ask(null);
  return (
    <div className="wr-page">
      <PageHead
        title="People"
        actions={
          <Button leftSection={<PlusIcon />} onClick={() => ask({ kind: "add" })}>
            Add a person
          </Button>
        }
      />
      <div className="wr-stack">
        <Panel bare label="Accounts">
          <DataTable
            of={["person", "people"]}
            columns={columns}
            id={(row) => row.id}
            rows={query.data}
            query={query}
            address
            empty={null}
          />
          {query.data?.length === 1 && (
            <Empty title="There is no other account" command="windrow account add NAME --role renter --credit 50">
              Add a person to give someone an account with its own credits, tokens, hosts and machines.
            </Empty>
          )}
        </Panel>
        <Users />
      </div>
      {asked?.kind === "add" && <AddPerson close={close} />}
      {asked?.kind === "credit" && <Credit person={asked.person} close={close} />}
      {asked?.kind === "link" && <NewLink person={asked.person} close={close} />}
      {asked?.kind === "suspend" && <Suspend person={asked.person} close={close} />}
      {asked?.kind === "resume" && <Resume person={asked.person} close={close} />}
      {asked?.kind === "settle" && <Settle person={asked.person} close={close} />}
      {asked?.kind === "transfer" && <TransferAccount person={asked.person} close={close} />}
    </div>
  );
}

function Actions({ person, isMine, ask }: { person: Person; isMine: boolean; ask: (asked: Asked) => void }) {
  const name = plain(person.name);
  const button = (kind: Kind, label: string, color = "gray") => (
    <Button
      variant="subtle"
      color={color}
      size="compact-sm"
      onClick={() => ask({ kind, person })}
      aria-label={`${label}: ${name}`}
    >
      {label}
    </Button>
  );
  if (person.state === "deleted") return null;
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {button("credit", "Add credit")}
      {!isMine && Number(person.balance.amount) > 0 && button("settle", "Settle")}
      {!isMine && button("transfer", "Transfer")}
      {!isMine && person.state === "active" && button("link", "New link")}
      {!isMine && (person.state === "active" ? button("suspend", "Suspend", "red") : button("resume", "Resume"))}
    </Group>
  );
}

/** A change of an account: the lists and one's own balance are read again. */
function useChange<T>(change: () => Promise<T>, done: (made: T) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    gcTime: 0, // the answer may hold a sign-in link
    onSuccess: (made: T) => {
      for (const { queryKey } of [peopleQuery, usersQuery, meQuery]) void client.invalidateQueries({ queryKey });
      done(made);
    },
  });
}

/** The link, this once. */
function Made({ made, close }: { made: PersonMade; close: () => void }) {
  const name = plain(made.account.name);
  return (
    <LinkShown
      title={`Sign-in link of ${name}`}
      label="sign-in link"
      link={made.link}
      until={made.link_expires_at}
      close={close}
    >
      Send this link to {name} over a channel that you trust. Whoever opens it first gets the account.
    </LinkShown>
  );
}

function AddPerson({ close }: { close: () => void }) {
  const [draft, setDraft] = useState<PersonDraft>({ name: "", roles: ["renter"], credit: "" });
  const { body, faults } = toPerson(draft);
  const ready = Object.keys(faults).length === 0;
  const act = useChange(
    () => post<PersonMade>("/accounts", body),
    () => undefined,
  );
  if (act.data) return <Made made={act.data} close={close} />;
  const command = [
    "windrow account add",
    ...body.roles.map((role) => `--role ${role}`),
    ...(body.credit ? [`--credit ${body.credit}`] : []),
    ...(body.name ? [operand(body.name)] : []),
  ].join(" ");
  return (
    <FormDialog
      title="Add a person"
      close={close}
      act={act}
      ready={ready}
      fields={["name"]}
      submit="Add and show the link"
    >
      <TextInput
        label="Name"
        description="Lower-case letters, digits and . @ _ -"
        placeholder="ada"
        autoComplete="off"
        value={draft.name}
        error={faultsOf(act.error).name}
        onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
        data-autofocus
      />
      <Checkbox.Group
        label="Roles"
        value={draft.roles}
        onChange={(roles) => setDraft({ ...draft, roles })}
        error={faults.roles}
      >
        <Stack gap={6} mt={4}>
          {ROLES.map(([role, words]) => (
            <Checkbox key={role} value={role} label={`${roleName(role)}: ${words}`} />
          ))}
        </Stack>
      </Checkbox.Group>
      <TextInput
        label="Credit"
        description="Test credits to begin with."
        placeholder="0"
        inputMode="decimal"
        autoComplete="off"
        value={draft.credit}
        error={faults.credit}
        onChange={(event) => setDraft({ ...draft, credit: event.currentTarget.value })}
      />
      <Same method="POST" path="/accounts" body={body} command={command} />
    </FormDialog>
  );
}

function Credit({ person, close }: { person: Person; close: () => void }) {
  const [typed, setTyped] = useState("");
  const { credit, fault } = toCredit(typed);
  const key = useMemo(() => ({ credit, text: freshKey() }), [credit]); // an answer that got lost must not credit twice
  const path = `/accounts/${encodeURIComponent(person.id)}/credit`;
  const act = useChange(
    () => post<Person>(path, { amount: credit }, key.text),
    (now) => {
      notifications.show({
        message: `${plain(now.name)} has ${money(now.balance.amount, now.balance.currency)} now`,
      });
      close();
    },
  );
  return (
    <FormDialog
      title={`Add credit: ${plain(person.name)}`}
      close={close}
      act={act}
      ready={credit !== ""}
      submit="Add credit"
    >
      <Text size="sm">Balance: {money(person.balance.amount, person.balance.currency)}</Text>
      <TextInput
        label="Amount"
        placeholder="50"
        inputMode="decimal"
        autoComplete="off"
        value={typed}
        error={typed && fault}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
      />
      <Same
        method="POST"
        path={path}
        body={{ amount: credit }}
        command={`windrow credit add ${person.id} ${credit || "AMOUNT"}`}
      />
    </FormDialog>
  );
}

function NewLink({ person, close }: { person: Person; close: () => void }) {
  const path = `/accounts/${encodeURIComponent(person.id)}/link`;
  const act = useChange(
    () => post<PersonMade>(path),
    () => undefined,
  );
  if (act.data) return <Made made={act.data} close={close} />;
  return (
    <FormDialog title={`New sign-in link: ${plain(person.name)}`} close={close} act={act} ready submit="Make the link">
      <Text size="sm">
        For a person who lost the first link or signs in on another machine. Links made before stop working.
      </Text>
      <Same method="POST" path={path} body={{}} command={`windrow account link ${person.id}`} />
    </FormDialog>
  );
}

function Suspend({ person, close }: { person: Person; close: () => void }) {
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  const path = `/accounts/${encodeURIComponent(person.id)}/suspend`;
  const act = useChange(
    () => post<Person>(path, { reason }),
    () => {
      notifications.show({ message: `${plain(person.name)} is suspended` });
      close();
    },
  );
  return (
    <FormDialog
      title={`Suspend ${plain(person.name)}`}
      close={close}
      act={act}
      ready={typed === person.name}
      submit="Suspend"
      danger
    >
      <Text size="sm">
        The account's tokens, sessions and links stop at once. Its machines and jobs end. Its hosts take no new work.
        Resuming lets the person sign in again; what ended stays ended.
      </Text>
      <TextInput
        label="Reason"
        placeholder="none"
        autoComplete="off"
        maxLength={400}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <TextInput
        label={`Type ${plain(person.name)} to confirm`}
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
      />
      <Same method="POST" path={path} body={{ reason }} command={`windrow account suspend ${person.id} --yes`} />
    </FormDialog>
  );
}

function Resume({ person, close }: { person: Person; close: () => void }) {
  const path = `/accounts/${encodeURIComponent(person.id)}/resume`;
  const act = useChange(
    () => post<Person>(path),
    () => {
      notifications.show({ message: `${plain(person.name)} may sign in again` });
      close();
    },
  );
  return (
    <FormDialog title={`Resume ${plain(person.name)}`} close={close} act={act} ready submit="Resume">
      <Text size="sm">
        The person may sign in again, and tokens made before work again. Machines and jobs that ended stay ended; hosts
        stay drained until they are activated.
      </Text>
      <Same method="POST" path={path} body={{}} command={`windrow account resume ${person.id}`} />
    </FormDialog>
  );
}
