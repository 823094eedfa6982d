// Accounts of this market: who they are, what they can spend; operators add, credit, suspend and resume them.
import { Button, Checkbox, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { freshKey, post } from "../api/client.ts";
import { me as meQuery, people as peopleQuery } from "../api/queries.ts";
import type { Person, PersonMade, Role } from "../api/types.ts";
import { count, money, plain } from "../format.ts";
import { FilterBox } from "../parts/FilterBox.tsx";
import { PlusIcon } from "../parts/icons.tsx";
import { Command, Empty, Id, Loaded, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { State, When } from "../parts/state.tsx";
import { matchingPeople, type PersonDraft, toCredit, toPerson } from "../people.ts";
import { operand } from "../request.ts";

const ROLES: readonly (readonly [Role, string])[] = [
  ["renter", "rents hardware"],
  ["provider", "offers hosts"],
  ["operator", "runs the market"],
  ["auditor", "reads all records"],
];
type Asked = { kind: "add" } | { kind: "credit" | "link" | "suspend" | "resume"; person: Person };

export function PeoplePage() {
  const query = useQuery(peopleQuery);
  const [typed, setTyped] = useState("");
  const [asked, ask] = useState<Asked | null>(null);
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
      <Panel
        title="Accounts"
        bare
        actions={
          <FilterBox
            value={typed}
            onChange={setTyped}
            placeholder="Name, role or state"
            label="Search people"
            width={200}
            restMs={0}
          />
        }
      >
        <Loaded query={query}>{(items) => <Listed items={items} typed={typed} ask={ask} />}</Loaded>
      </Panel>
      {asked?.kind === "add" && <AddPerson close={close} />}
      {asked?.kind === "credit" && <Credit person={asked.person} close={close} />}
      {asked?.kind === "link" && <NewLink person={asked.person} close={close} />}
      {asked?.kind === "suspend" && <Suspend person={asked.person} close={close} />}
      {asked?.kind === "resume" && <Resume person={asked.person} close={close} />}
    </div>
  );
}

function Listed({ items, typed, ask }: { items: readonly Person[]; typed: string; ask: (asked: Asked) => void }) {
  const me = useQuery(meQuery);
  const found = matchingPeople(items, typed);
  const mine = me.data?.account.id;
  if (!found.length && items.length)
    return <Empty title={`No person matches “${plain(typed)}”`}>Search looks at names, roles, states and ids.</Empty>;
  return (
    <>
      <div className="wr-scroll" style={{ position: "relative" }}>
        <table className="wr-table wr-table-tight wr-cards" data-testid="people">
          <thead>
            <tr>
              <th>Name</th>
              <th>Roles</th>
              <th>State</th>
              <th className="num">Balance</th>
              <th>Added</th>
              <th>Id</th>
              <th>
                <span className="wr-unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map((person) => (
              <tr key={person.id}>
                <td data-label="Name">
                  <span>
                    {plain(person.name)}
                    {person.id === mine && (
                      <>
                        {" "}
                        <span className="wr-mark">you</span>
                      </>
                    )}
                  </span>
                </td>
                <td data-label="Roles" style={{ whiteSpace: "normal" }}>
                  {person.roles.join(", ")}
                </td>
                <td data-label="State">
                  <State state={person.state} />
                </td>
                <td className="num" data-label="Balance" title={`${person.balance.amount} ${person.balance.currency}`}>
                  {money(person.balance.amount, person.balance.currency, 2, 2)}
                </td>
                <td data-label="Added">
                  <When at={person.created_at} />
                </td>
                <td data-label="Id">
                  <Id id={person.id} />
                </td>
                <td>
                  <Actions person={person} isMine={person.id === mine} ask={ask} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {items.length === 1 && found.length === 1 && (
        <Empty title="Only you are here" command="windrow account add NAME --role renter --credit 50">
          Add a person to give someone an account with its own credits, tokens, hosts and clusters.
        </Empty>
      )}
      {items.length > 1 && (
        <Text size="xs" className="wr-quiet" px={12} py={8} data-testid="shown">
          {count(found.length)} of {count(items.length)} people
        </Text>
      )}
    </>
  );
}

function Actions({ person, isMine, ask }: { person: Person; isMine: boolean; ask: (asked: Asked) => void }) {
  const name = plain(person.name);
  const button = (kind: "credit" | "link" | "suspend" | "resume", label: string, color = "gray") => (
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
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {button("credit", "Add credit")}
      {!isMine && person.state === "active" && button("link", "New link")}
      {!isMine && (person.state === "active" ? button("suspend", "Suspend", "red") : button("resume", "Resume"))}
    </Group>
  );
}

/** What every change of a person shares: the list and one's own balance are read again. */
function useChange<T>(change: () => Promise<T>, done: (made: T) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    gcTime: 0, // the answer may hold a sign-in link
    onSuccess: (made: T) => {
      void client.invalidateQueries({ queryKey: peopleQuery.queryKey });
      void client.invalidateQueries({ queryKey: meQuery.queryKey });
      done(made);
    },
  });
}

function Form({
  title,
  close,
  act,
  ready,
  submit,
  danger = false,
  children,
}: {
  title: string;
  close: () => void;
  act: { mutate: () => void; isPending: boolean; error: unknown };
  ready: boolean;
  submit: string;
  danger?: boolean;
  children: ReactNode;
}) {
  const go = (event: FormEvent) => {
    event.preventDefault();
    if (ready) act.mutate();
  };
  return (
    <Modal opened onClose={close} title={title}>
      <form onSubmit={go} noValidate>
        <Stack gap="sm">
          {children}
          {act.error !== null && <ProblemNote error={act.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" {...(danger ? { color: "red" } : {})} disabled={!ready} loading={act.isPending}>
              {submit}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** The link, this once. */
function Made({ made, close }: { made: PersonMade; close: () => void }) {
  return (
    <Modal opened onClose={close} title={`Sign-in link of ${plain(made.account.name)}`} closeOnClickOutside={false}>
      <Stack gap="sm">
        <Text size="sm">
          Send this link to {plain(made.account.name)} over a channel that you trust. Whoever opens it first gets the
          account.
        </Text>
        <Command text={made.link} label="sign-in link" />
        <Text size="sm" className="wr-quiet">
          It is shown only now, works once and expires <When at={made.link_expires_at} />.
        </Text>
        <Group justify="flex-end">
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Modal>
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
    <Form title="Add a person" close={close} act={act} ready={ready} submit="Add and show the link">
      <TextInput
        label="Name"
        description="Lower-case letters, digits and . @ _ -"
        placeholder="ada"
        autoComplete="off"
        value={draft.name}
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
            <Checkbox key={role} value={role} label={`${role}: ${words}`} />
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
    </Form>
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
    <Form title={`Add credit: ${plain(person.name)}`} close={close} act={act} ready={credit !== ""} submit="Add credit">
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
    </Form>
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
    <Form title={`New sign-in link: ${plain(person.name)}`} close={close} act={act} ready submit="Make the link">
      <Text size="sm">
        For a person who lost the first link or signs in on another machine. Links made before stop working.
      </Text>
      <Same method="POST" path={path} body={{}} command={`windrow account link ${person.id}`} />
    </Form>
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
    <Form
      title={`Suspend ${plain(person.name)}`}
      close={close}
      act={act}
      ready={typed === person.name}
      submit="Suspend"
      danger
    >
      <Text size="sm">
        The account's tokens, sessions and links stop at once. Its clusters and jobs end. Its hosts take no new work.
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
    </Form>
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
    <Form title={`Resume ${plain(person.name)}`} close={close} act={act} ready submit="Resume">
      <Text size="sm">
        The person may sign in again, and tokens made before work again. Clusters and jobs that ended stay ended; hosts
        stay drained until they are activated.
      </Text>
      <Same method="POST" path={path} body={{}} command={`windrow account resume ${person.id}`} />
    </Form>
  );
}
