// The regions page: the map, and each region with its Accesses, which operators drain, resume and stop.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useRef, useState } from "react";
import { post } from "../api/client.ts";
import { accesses as accessesQuery, me as meQuery } from "../api/queries.ts";
import type { Access } from "../api/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { compareTexts, count, measured, percent, plain } from "../parts/format.ts";
import { Empty, Loaded, PageHead, Panel, ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { Meter, State } from "../parts/state.tsx";
import { useWidth } from "../parts/width.ts";
import { actions, events, figure, identity, moment, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { mapHeight } from "./layout.ts";
import { StopGuard, StopPanel } from "./StopTest.tsx";

/** The tables need no map: it is fetched beside them. */
const AgentsMap = lazy(() => import("./AgentsMap.tsx").then((module) => ({ default: module.AgentsMap })));

type Verb = "drain" | "resume";
interface Asked {
  access: Access;
  verb: Verb | "stop";
}

export function RegionsPage() {
  const query = useQuery(accessesQuery);
  const me = useQuery(meQuery);
  const [asked, ask] = useState<Asked | null>(null);
  const mayAct = me.data?.roles.includes("operator") ?? false;
  const columns = useMemo(() => columnsFor(mayAct ? ask : null), [mayAct]);
  return (
    <div className="wr-page">
      <PageHead title="Relays" />
      <Loaded query={query}>
        {(all) =>
          all.length === 0 ? (
            <Panel bare label="Regions">
              <Empty title="No relay is known" command="windrow doctor">
                Hosts reach the Master only through a relay: each one serves a region, and appears here as soon as it is
                attached.
              </Empty>
            </Panel>
          ) : (
            <div className="wr-stack">
              <Panel title="Map" bare>
                <MapPlace accesses={all} />
              </Panel>
              {all
                .filter((one) => one.stopped_at)
                .map((one) => (
                  <StopPanel key={one.id} access={one} />
                ))}
              {byRegion(all).map(([region, accesses]) => (
                <Panel key={region ?? ""} title={region === null ? "Region not known" : plain(region)} bare>
                  <DataTable
                    of={["relay", "relays"]}
                    columns={columns}
                    id={(row) => row.id}
                    rows={accesses}
                    bare
                    empty={null}
                  />
                </Panel>
              ))}
            </div>
          )
        }
      </Loaded>
      <Text size="sm" className="wr-quiet" mt="sm">
        The round trip is the median of what the agents of a relay measured. A drained relay stays drained over
        restarts, until it is resumed.
      </Text>
      {asked &&
        (asked.verb === "stop" ? (
          <StopGuard access={asked.access} others={othersOf(asked.access, query.data)} close={() => ask(null)} />
        ) : (
          <Guard
            access={asked.access}
            verb={asked.verb}
            others={othersOf(asked.access, query.data)}
            close={() => ask(null)}
          />
        ))}
    </div>
  );
}

/** As high as the map will be before it comes, so that nothing below it moves. */
function MapPlace({ accesses }: { accesses: readonly Access[] }) {
  const ref = useRef<HTMLDivElement>(null);
  const width = useWidth(ref);
  const places = accesses.filter((one) => one.state !== "departed");
  const isEmpty = places.every((one) => one.agents === 0);
  return (
    <div ref={ref} style={{ minHeight: isEmpty || !width ? undefined : mapHeight(places, width) }}>
      <Suspense fallback={<Waiting lines={6} />}>
        <AgentsMap accesses={accesses} />
      </Suspense>
    </div>
  );
}

function othersOf(access: Access, all: readonly Access[] = []): readonly Access[] {
  return all.filter((one) => one.id !== access.id && one.state === "serving");
}

/** Regions by name; those whose region nobody knows come last. */
function byRegion(all: readonly Access[]): [string | null, Access[]][] {
  const found = new Map<string | null, Access[]>();
  for (const access of all) found.set(access.region, [...(found.get(access.region) ?? []), access]);
  return [...found].sort(([one], [other]) => (one === null ? 1 : other === null ? -1 : compareTexts(one, other)));
}

const isAttached = (access: Access): boolean => access.state !== "departed";
const nameOf = (access: Access): string => plain(access.name);

/** The same widths in every region, so that one reads down the page. */
const columnsFor = (ask: ((asked: Asked) => void) | null): readonly Column<Access>[] => [
  {
    id: "name",
    name: "Relay",
    width: "17%",
    value: (row) => row.name,
    cell: (row) => (
      <>
        <span className="wr-name" title={plain(row.id)}>
          {nameOf(row)}
        </span>
        {row.address && <div className="wr-quiet wr-break">{plain(row.address)}</div>}
      </>
    ),
  },
  state("State", (row) => row.state, undefined, {
    width: "15%",
    cell: (row) => (
      <>
        <State state={row.state} reason={row.drain_reason && plain(row.drain_reason)} />
        {row.state === "departed" && row.drained_at && <div className="wr-quiet">drained, also when it is back</div>}
        {row.state === "draining" && <Leaving access={row} />}
      </>
    ),
  }),
  figure("agents", "Agents", (row) => (isAttached(row) ? row.agents : null), count, { width: "8%" }),
  {
    id: "load",
    name: "Load",
    width: "14%",
    value: (row) => (isAttached(row) ? row.load_permille / 1000 : null),
    cell: (row) => {
      const load = isAttached(row) ? row.load_permille / 1000 : null;
      return <Meter ratio={load} text={percent(load)} label={`Load of ${nameOf(row)}`} />;
    },
  },
  figure(
    "rtt_ms",
    "Round trip",
    (row) => row.rtt_ms,
    (ms) => measured(ms, "ms"),
    { width: "10%" },
  ),
  figure("workers", "Workers", (row) => (isAttached(row) ? row.workers : null), count, { width: "8%" }),
  { ...moment<Access>("since", "Since", (row) => row.since), width: "8%" },
  events(nameOf, (row) => row.id),
  identity((row) => row.id, { optional: true }),
  ...(ask ? [actions<Access>((row) => <Actions access={row} ask={ask} />)] : []),
];

function Actions({ access, ask }: { access: Access; ask: (asked: Asked) => void }) {
  const verb: Verb = access.drained_at ? "resume" : "drain";
  const name = nameOf(access);
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      {access.stop_name && isAttached(access) && (
        <Button
          variant="default"
          color="red"
          onClick={() => ask({ access, verb: "stop" })}
          aria-label={`Stop ${name} as a test`}
          title="Development only: kill it and count what is lost"
        >
          Stop
        </Button>
      )}
      <Button variant="default" onClick={() => ask({ access, verb })} aria-label={`${NAMES[verb]} ${name}`}>
        {NAMES[verb]}
      </Button>
    </Group>
  );
}

const NAMES: Record<Verb, string> = { drain: "Drain", resume: "Resume" };

/** The share of agents that have left, of the most that were seen since draining began. */
function Leaving({ access }: { access: Access }) {
  const [most, setMost] = useState(access.agents);
  if (access.agents > most) setMost(access.agents);
  const gone = most - access.agents;
  return (
    <div role="status" data-testid="leaving">
      {access.agents === 0 ? (
        <span className="wr-quiet">all agents have left</span>
      ) : (
        <>
          <span className="wr-quiet">
            {count(gone)} of {count(most)} agents have left
          </span>
          <Meter ratio={gone / most} text={percent(gone / most)} label={`Agents that have left ${nameOf(access)}`} />
        </>
      )}
    </div>
  );
}

function Guard({
  access,
  verb,
  others,
  close,
}: {
  access: Access;
  verb: Verb;
  others: readonly Access[];
  close: () => void;
}) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const name = nameOf(access);
  const act = useMutation({
    mutationFn: () => post(`/accesses/${encodeURIComponent(access.id)}/${verb}`, { reason }),
    onSuccess: () => {
      notifications.show({ message: verb === "drain" ? `${name} is draining` : `${name} takes agents again` });
      for (const key of ["accesses", "health"]) void client.invalidateQueries({ queryKey: [key] });
      close();
    },
  });
  return (
    <Dialog onClose={close} title={`${NAMES[verb]} ${name}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{verb === "drain" ? drains(access, others) : RESUMES}</Text>
          <TextInput
            label="Reason"
            description="Kept in the audit record and shown beside the state."
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            maxLength={300}
            data-autofocus
          />
          <Same
            method="POST"
            path={`/accesses/${access.id}/${verb}`}
            body={{ reason }}
            command={`windrow access ${verb} ${access.id} --reason ${quoted(reason)}`}
          />
          {act.error && <ProblemNote error={act.error} />}
          <DialogFoot close={close} loading={act.isPending}>
            {NAMES[verb]}
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

const RESUMES =
  "It takes agents again. Hosts that are about as near to it as to their present one spread over both " +
  "by themselves within ten minutes.";

function drains(access: Access, others: readonly Access[]): string {
  if (others.length === 0) return "No other relay serves: this will be refused, since its agents could go nowhere.";
  const where =
    others.length === 1
      ? `the one other relay that serves, in ${plain(others[0]!.region ?? "a region not known")}`
      : `the ${count(others.length)} other relays that serve`;
  return (
    `Its ${count(access.agents)} agents move one after the other, within seconds, to ` +
    `${where}. What runs on their hosts goes on and no reading is lost, but open logs, ` +
    "shells and copies through it end. Nobody new comes until it is resumed."
  );
}
