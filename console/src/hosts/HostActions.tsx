// What people do about one host or several: a menu, a dialog with a reason, the result of each, and the way back.
import { Button, Group, Menu, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiProblem, get, post } from "../api/client.ts";
import { me as meQuery } from "../api/queries.ts";
import type { Host } from "../api/types.ts";
import { mayOperate } from "../identity/rights.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { count, plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { called, quoted } from "../parts/shell.ts";
import { State } from "../parts/state.tsx";
import type { Verb } from "./remedies.ts";
import { type Before, notNow, undoes, wayBack } from "./undoing.ts";

export type HostRef = Pick<Host, "id" | "name">;

export interface Action {
  verb: Verb;
  name: string;
  says: string;
  /** Nothing brings it back. */
  final?: boolean;
  /** It is asked for without a reason. */
  bare?: boolean;
}

export const ACTIONS: Record<Verb, Action> = {
  activate: { verb: "activate", name: "Activate", says: "New work may be placed here again." },
  drain: { verb: "drain", name: "Drain", says: "What runs goes on; nothing new is placed here." },
  maintenance: {
    verb: "maintenance",
    name: "Maintenance",
    says: "Nothing is placed here until it is activated again.",
  },
  quarantine: {
    verb: "quarantine",
    name: "Quarantine",
    says: "Takes no new work until it passes verification again. Use it for hosts that you do not trust.",
  },
  retire: { verb: "retire", name: "Retire", says: "Removes this host. To use it again, join it again.", final: true },
  verify: { verb: "verify", name: "Verify now", says: "Every free GPU is asked to prove itself.", bare: true },
  prove: { verb: "prove", name: "Run a test rental", says: "The Master rents this host for a moment.", bare: true },
  measure: { verb: "measure", name: "Measure bandwidth", says: "The relay measures the host's line.", bare: true },
};
const MENU: readonly Verb[] = ["activate", "drain", "maintenance", "quarantine", "retire"];

interface Outcome {
  host: HostRef;
  error: unknown;
  /** How this host is put back; null: it is not. */
  back: ReturnType<typeof wayBack>;
}

const pathOf = (host: HostRef, verb?: Verb) => `/hosts/${encodeURIComponent(host.id)}${verb ? `/${verb}` : ""}`;

/** One after the other, so that hundreds of hosts are no burst; whatever fails does not stop the rest. */
async function actOn(hosts: readonly HostRef[], action: Action, reason: string, told: (done: Outcome) => void) {
  const done: Outcome[] = [];
  for (const host of hosts) {
    const one: Outcome = { host, error: null, back: null };
    try {
      const before = undoes(action.verb) && (await get<Before>(pathOf(host)));
      await post(pathOf(host, action.verb), action.bare ? undefined : { reason });
      if (before) one.back = wayBack(action.verb, before);
    } catch (failure) {
      one.error = failure;
    }
    done.push(one);
    told(one);
  }
  return done;
}

/** Puts hosts back into the states that they were in; the answer says which failed, and why. */
async function putBack(done: readonly Outcome[], action: Action): Promise<string[]> {
  const failed: string[] = [];
  for (const { host, back } of done) {
    if (back === null) continue;
    try {
      const refusal = notNow(action.verb, await get<Before>(pathOf(host)));
      if (refusal !== null) failed.push(`${host.name}: ${refusal}`);
      else await post(pathOf(host, back.verb), { reason: back.reason });
    } catch (failure) {
      failed.push(`${host.name}: ${failure instanceof Error ? failure.message : String(failure)}`);
    }
  }
  return failed;
}

/** Acts on hosts, and offers to undo it for some seconds. */
export function useAct(action: Action, hosts: readonly HostRef[]) {
  const client = useQueryClient();
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const after = () => {
    for (const key of ["host", "hosts", "gpu", "overview"]) void client.invalidateQueries({ queryKey: [key] });
  };
  const mutation = useMutation({
    mutationFn: async (reason: string) => {
      setOutcomes([]);
      const done = await actOn(hosts, action, reason, (one) => setOutcomes((now) => [...now, one]));
      const good = done.filter((one) => one.error === null);
      if (good.length) acknowledge(action, good, after);
      after();
      const failed = done.filter((one) => one.error !== null);
      if (hosts.length === 1 && failed[0]) throw failed[0].error;
      return failed.length;
    },
  });
  return { mutation, outcomes };
}

const named = (done: readonly Outcome[]) =>
  done.length === 1 ? plain(done[0]!.host.name) : `${count(done.length)} hosts`;

async function undo(done: readonly Outcome[], action: Action, after: () => void) {
  const failed = await putBack(done, action);
  after();
  const changed = done.filter((one) => one.back !== null);
  if (failed.length === 0) notifications.show({ message: `${action.name}: undone for ${named(changed)}` });
  else
    notifications.show({
      color: "red",
      autoClose: false,
      closeButtonProps: { "aria-label": "Close" },
      title: `${action.name}: not undone for ${count(failed.length)} of ${count(changed.length)}`,
      message: failed.map((text) => <div key={text}>{plain(text)}</div>),
    });
}

function acknowledge(action: Action, done: readonly Outcome[], after: () => void) {
  const id = `${action.verb} ${Date.now()}`;
  notifications.show({
    id,
    autoClose: 10_000,
    message: (
      <Group gap="sm" justify="space-between">
        <span>
          {action.name}: accepted for {named(done)}
        </span>
        {done.some((one) => one.back !== null) && (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => {
              notifications.hide(id);
              void undo(done, action, after);
            }}
          >
            Undo
          </Button>
        )}
      </Group>
    ),
  });
}

export function Actions({ host }: { host: Host }) {
  const [asked, ask] = useState<Action | null>(null);
  const may = mayOperate(useQuery(meQuery).data, host);
  if (!may) return null;
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" rightSection={<ChevronIcon size={12} />}>
            Actions
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {MENU.map((verb) => ACTIONS[verb]).map((action) => (
            <Menu.Item key={action.verb} color={action.final ? "red" : undefined} onClick={() => ask(action)}>
              {action.name}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {asked && <ActionAsked hosts={[host]} action={asked} close={() => ask(null)} />}
    </>
  );
}

interface AskedProps {
  hosts: readonly HostRef[];
  action: Action;
  close: () => void;
  /** Filled in at first. */
  reason?: string;
}

export function ActionAsked({ hosts, action, close, reason: first = "" }: AskedProps) {
  const [reason, setReason] = useState(first);
  const [typed, setTyped] = useState("");
  const { mutation, outcomes } = useAct(action, hosts);
  const one = hosts.length === 1 ? hosts[0]! : null;
  const name = one ? one.name : `${count(hosts.length)} hosts`;
  const ready = (action.bare || reason.trim() !== "") && (!action.final || typed === name);
  const isDone = !one && outcomes.length === hosts.length && !mutation.isPending;
  return (
    <Dialog onClose={close} title={`${action.name}: ${plain(name)}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isDone) close();
          else if (ready)
            mutation.mutate(reason, {
              onSuccess: () => {
                if (one) close();
              },
            });
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{action.says}</Text>
          {!action.bare && (
            <TextInput
              label="Reason"
              description="Kept in the audit record and shown beside the state."
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
              data-autofocus
            />
          )}
          {action.final && (
            <TextInput
              label={`Type ${plain(name)} to confirm`}
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
              autoComplete="off"
            />
          )}
          {one ? (
            <Same
              method="POST"
              path={`/hosts/${one.id}/${action.verb}`}
              {...(action.bare ? {} : { body: { reason } })}
              command={`windrow host ${action.verb} ${called(one)}${action.bare ? "" : ` --reason ${quoted(reason)}`}`}
            />
          ) : (
            <Outcomes hosts={hosts} outcomes={outcomes} />
          )}
          {mutation.error instanceof ApiProblem && <ProblemNote error={mutation.error} />}
          {isDone ? (
            <Button onClick={close}>Close</Button>
          ) : (
            <DialogFoot
              close={close}
              color={action.final ? "red" : undefined}
              disabled={!ready}
              loading={mutation.isPending}
            >
              {action.name}
            </DialogFoot>
          )}
        </Stack>
      </form>
    </Dialog>
  );
}

/** Each host with what became of it. */
function Outcomes({ hosts, outcomes }: { hosts: readonly HostRef[]; outcomes: readonly Outcome[] }) {
  const by = new Map(outcomes.map((one) => [one.host.id, one]));
  return (
    <ul className="wr-outcomes" aria-label="Hosts">
      {hosts.map((host) => {
        const done = by.get(host.id);
        const problem = done?.error instanceof ApiProblem ? done.error.problem.detail : null;
        return (
          <li key={host.id}>
            <span className="wr-break">{plain(host.name)}</span>
            {done && (
              <State state={done.error === null ? "accepted" : "failed"} tone={done.error === null ? "ok" : "bad"} />
            )}
            {done?.error != null && <span className="wr-quiet wr-break">{plain(problem ?? String(done.error))}</span>}
          </li>
        );
      })}
    </ul>
  );
}
