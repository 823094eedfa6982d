// What an operator does first, on the home page until it is done or put away: a password, a host, a rental, others.
import { Button, Group, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { put } from "../api/client.ts";
import {
  cli as cliQuery,
  clusters as clustersQuery,
  hosts as hostsQuery,
  members as membersQuery,
  me as meQuery,
  people as peopleQuery,
  simulatedHosts,
  user as userQuery,
} from "../api/queries.ts";
import type { Me, Overview, Profile, SimulatedHosts } from "../api/types.ts";
import { PASSWORD_MIN, passwordFault } from "../identity/account.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf, isAtFields } from "../parts/faults.ts";
import { count } from "../parts/format.ts";
import { CheckIcon } from "../parts/icons.tsx";
import { Panel, ProblemNote } from "../parts/page.tsx";
import { isShared, rentedSimulated } from "./home.ts";

const HIDDEN = "windrow.getting-started.hidden";
/** As many as make a fleet worth looking at, and start in some seconds. */
const SIMULATED = 50;

interface Step {
  title: string;
  /** null: not known yet. */
  done: boolean | null;
  about: ReactNode;
  /** Below the text, until it is done. */
  act?: ReactNode;
}

export function GettingStarted({ overview }: { overview: Overview }) {
  const me = useQuery(meQuery).data;
  const [hidden, hide] = useState(() => window.localStorage.getItem(HIDDEN) !== null);
  if (hidden || !me?.user || !me.roles.includes("operator")) return null;
  const putAway = () => {
    window.localStorage.setItem(HIDDEN, "1");
    hide(true);
  };
  return <Steps me={me} overview={overview} putAway={putAway} />;
}

function Steps({ me, overview, putAway }: { me: Me; overview: Overview; putAway: () => void }) {
  const user = useQuery(userQuery).data;
  const cli = useQuery(cliQuery).data;
  const people = useQuery(peopleQuery).data;
  const members = useQuery(membersQuery).data;
  const rented = useQuery(clustersQuery.first).data;
  const mayRent = me.roles.includes("renter");
  const real = overview.hosts.total - overview.simulated_hosts;
  const steps: readonly Step[] = [
    {
      title: "Set your password",
      done: user ? user.has_password : null,
      about:
        "You are signed in by the link that windrow up printed. With a mail address and a password you sign in " +
        "from anywhere.",
      act: user && <SetPassword user={user} />,
    },
    {
      title: "Add a host",
      done: real > 0,
      about: (
        <>
          One command on each Linux machine with GPUs. <code>windrow up</code> adds the machine that it runs on.
        </>
      ),
      act: <To to="/join">Add a host</To>,
    },
    ...(mayRent
      ? [
          {
            title: "Rent it once",
            done: rented ? rented.items.length > 0 : null,
            about: "Start a machine or a job and see its output, its charts and its receipt.",
            act: <To to="/new">Rent a machine</To>,
          },
        ]
      : []),
    {
      title: "Let others reach this market",
      done: cli ? cli.command !== null && !cli.this_machine_only : null,
      about: (
        <>
          It answers on this machine only. Stop it, and start it with an address that others reach:{" "}
          <code>make up LISTEN=0.0.0.0 PUBLIC=ADDRESS</code>.
        </>
      ),
    },
    {
      title: "Invite somebody",
      done: people && members ? isShared(people.length, members.length) : null,
      about: "A colleague gets a link, a renter an account of their own with credit.",
      act: (
        <Group gap="xs">
          <To to="/members">Invite a colleague</To>
          <To to="/people">Add a renter</To>
        </Group>
      ),
    },
  ];
  const done = steps.filter((step) => step.done).length;
  if (done === steps.length || steps.some((step) => step.done === null)) return null;
  return (
    <Panel
      title={`Get started: ${done} of ${steps.length} done`}
      actions={
        <Button variant="subtle" color="gray" size="compact-sm" onClick={putAway}>
          Hide
        </Button>
      }
    >
      <Text size="sm" mb="sm">
        This is your market: hosts with GPUs join it, people rent them by the second, and here you see what runs, where
        and for how much.
      </Text>
      <ol className="wr-todo">
        {steps.map((step) => (
          <One key={step.title} step={step} />
        ))}
      </ol>
      <Simulated />
    </Panel>
  );
}

function One({ step }: { step: Step }) {
  return (
    <li className={step.done ? "wr-todo-done" : undefined}>
      <span className="wr-todo-mark" aria-hidden="true">
        {step.done && <CheckIcon size={14} />}
      </span>
      <Stack gap={6}>
        <strong>
          {step.title}
          {step.done && <span className="wr-unseen"> (done)</span>}
        </strong>
        {!step.done && (
          <>
            <Text size="sm">{step.about}</Text>
            {step.act}
          </>
        )}
      </Stack>
    </li>
  );
}

function To({ to, children }: { to: "/join" | "/new" | "/members" | "/people"; children: ReactNode }) {
  return (
    <Group>
      <Button component={Link} to={to} variant="default" size="sm">
        {children}
      </Button>
    </Group>
  );
}

/** Mail address and password at once: the one is no use without the other. */
function SetPassword({ user }: { user: Profile }) {
  const client = useQueryClient();
  const [address, setAddress] = useState(user.address ?? "");
  const [password, setPassword] = useState("");
  const fault = passwordFault(password);
  const act = useMutation({
    mutationFn: async () => {
      if (address.trim() !== (user.address ?? "")) await put<Profile>("/user", { address: address.trim() });
      await put("/user/password", { password });
    },
    gcTime: 0,
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: userQuery.queryKey }); // the form closes first
      notifications.show({ message: "Your password is set" });
    },
    onError: () => void client.invalidateQueries({ queryKey: userQuery.queryKey }), // the address may be set
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    act.mutate();
  };
  const told = faultsOf(act.error);
  const isShown = isAtFields(act.error, ["address", "password"]);
  const passwordError = (password && fault) || told.password;
  return (
    <form onSubmit={send} onInput={() => isShown && act.reset()} noValidate>
      <Group gap="sm" align="flex-end">
        <TextInput
          label="Mail address"
          description="You sign in with it."
          flex="1 1 240px"
          maw={320}
          type="email"
          autoComplete="username"
          value={address}
          error={
            told.address ?? (password !== "" && !address.includes("@") && "A mail address, such as ada@example.org")
          }
          inputWrapperOrder={["label", "description", "error", "input"]}
          onChange={(event) => setAddress(event.currentTarget.value)}
        />
        <PasswordInput
          label="New password"
          // The fault stands in the place of the rule, so that nothing moves.
          description={passwordError ? undefined : `At least ${PASSWORD_MIN} characters.`}
          inputWrapperOrder={["label", "description", "error", "input"]}
          autoComplete="new-password"
          flex="1 1 240px"
          maw={320}
          value={password}
          error={passwordError}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Button
          type="submit"
          size="sm"
          loading={act.isPending}
          disabled={!address.includes("@") || fault !== undefined}
        >
          Set the password
        </Button>
      </Group>
      {act.error && !isShown && <ProblemNote error={act.error} />}
    </form>
  );
}

/** For who only looks around; where windrow up does not run the market there is nothing to press. */
function Simulated() {
  const client = useQueryClient();
  const query = useQuery(simulatedHosts);
  const label = useId();
  const [rented, ask] = useState(0);
  const look = useMutation({
    mutationFn: () => client.fetchQuery({ ...hostsQuery, staleTime: 0 }),
    onSuccess: (hosts) => {
      const found = rentedSimulated(hosts);
      if (found === 0) act.mutate(0);
      else ask(found);
    },
  });
  const act = useMutation({
    mutationFn: (wanted: number) => put<SimulatedHosts>("/simulated-hosts", { count: wanted }),
    onSuccess: (now) => {
      ask(0);
      client.setQueryData(simulatedHosts.queryKey, now);
      const message = now.wanted ? `${count(now.wanted)} simulated hosts join within a minute` : "They leave now";
      notifications.show({ message });
    },
  });
  if (!query.data?.can_set) return null;
  const { wanted } = query.data;
  return (
    <Group gap="sm" mt="md" justify="space-between">
      <Text size="sm" id={label} style={{ flex: "1 1 20rem" }}>
        {wanted
          ? `${count(wanted)} simulated hosts are there to look around; they run nothing real.`
          : "Only looking around? Simulated hosts show a full market. They are marked, run nothing real, and go as " +
            "easily."}
      </Text>
      <Button
        variant="default"
        size="sm"
        aria-describedby={label}
        loading={act.isPending || look.isPending}
        onClick={() => (wanted ? look.mutate() : act.mutate(SIMULATED))}
      >
        {wanted ? "Remove the simulated hosts" : `Add ${SIMULATED} simulated hosts`}
      </Button>
      {(act.error ?? look.error) && <ProblemNote error={act.error ?? look.error} />}
      {rented > 0 && (
        <FormDialog
          title="Remove the simulated hosts"
          close={() => ask(0)}
          act={{ ...act, mutate: () => act.mutate(0) }}
          ready
          submit="Remove them"
          danger
        >
          <Text size="sm">
            {rented === 1 ? "One of them is rented now." : `${count(rented)} of them are rented now.`} What runs there
            ends with them.
          </Text>
        </FormDialog>
      )}
    </Group>
  );
}
