// Where hosts reach the installation: each region with its Accesses, and taking one of them out of service.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { post } from "../api/client.ts";
import { accesses as accessesQuery, me as meQuery } from "../api/queries.ts";
import type { Access } from "../api/types.ts";
import { compareTexts, count, DASH, measured, percent, plain, shortId } from "../format.ts";
import { Empty, Id, Loaded, PageHead, Panel, ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { StopGuard, StopPanel } from "../parts/StopTest.tsx";
import { Meter, State, When } from "../parts/state.tsx";
import { quoted } from "../request.ts";

/** The tables need no map: it is fetched beside them. */
const AgentsMap = lazy(() => import("../map/AgentsMap.tsx").then((module) => ({ default: module.AgentsMap })));

/** The same widths in every region, so that one reads down the page. */
const COLUMNS: readonly (readonly [name: string, width: string, number?: true])[] = [
  ["Access", "17%"],
  ["State", "15%"],
  ["Agents", "8%", true],
  ["Load", "14%"],
  ["Round trip", "10%", true],
  ["Workers", "8%", true],
  ["Since", "8%"],
  ["Events", "7%"],
  ["Do", "17%", true],
];

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
  return (
    <div className="wr-page">
      <PageHead title="Regions" />
      <Loaded query={query}>
        {(all) =>
          all.length === 0 ? (
            <Panel bare label="Regions">
              <Empty title="No Access is known" command="windrow doctor">
                Hosts reach the Master only through an Access: each one serves a region, and appears here as soon as it
                is attached.
              </Empty>
            </Panel>
          ) : (
            <div className="wr-stack">
              <Panel title="Map" bare>
                <Suspense fallback={<Waiting lines={6} />}>
                  <AgentsMap accesses={all} />
                </Suspense>
              </Panel>
              {all
                .filter((one) => one.stopped_at)
                .map((one) => (
                  <StopPanel key={one.id} access={one} />
                ))}
              {byRegion(all).map(([region, accesses]) => (
                <Panel key={region ?? ""} title={region === null ? "Region not known" : plain(region)} bare>
                  <div className="wr-scroll">
                    <table className="wr-table" style={{ tableLayout: "fixed", minWidth: 860 }}>
                      <thead>
                        <tr>
                          {COLUMNS.map(([name, width, number]) => (
                            <th key={name} style={{ width }} className={number ? "num" : undefined}>
                              {name === "Do" ? <span className="wr-unseen">{name}</span> : name}
                            </th>
                          ))}
                        </tr>
                      </thead>
                      <tbody>
                        {accesses.map((access) => (
                          <Row key={access.id} access={access} ask={mayAct ? ask : null} />
                        ))}
                      </tbody>
                    </table>
                  </div>
                </Panel>
              ))}
            </div>
          )
        }
      </Loaded>
      <Text size="sm" className="wr-quiet" mt="sm">
        The round trip is the median of what the agents of an Access measured. A drained Access stays drained over
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

function othersOf(access: Access, all: readonly Access[] = []): readonly Access[] {
  return all.filter((one) => one.id !== access.id && one.state === "serving");
}

/** Regions by name; those whose region nobody knows come last. */
function byRegion(all: readonly Access[]): [string | null, Access[]][] {
  const found = new Map<string | null, Access[]>();
  for (const access of all) found.set(access.region, [...(found.get(access.region) ?? []), access]);
  return [...found].sort(([one], [other]) => (one === null ? 1 : other === null ? -1 : compareTexts(one, other)));
}

function Row({ access, ask }: { access: Access; ask: ((asked: Asked) => void) | null }) {
  const attached = access.state !== "departed";
  const verb: Verb = access.drained_at ? "resume" : "drain";
  const name = plain(shortId(access.id));
  const load = access.load_permille / 1000;
  return (
    <tr>
      <td>
        <Id id={access.id} />
        {access.address && <div className="wr-quiet wr-break">{plain(access.address)}</div>}
      </td>
      <td>
        <State state={access.state} reason={access.drain_reason && plain(access.drain_reason)} />
        {access.state === "departed" && access.drained_at && (
          <div className="wr-quiet">drained, also when it is back</div>
        )}
        {access.state === "draining" && <Leaving access={access} />}
      </td>
      <td className="num">{attached ? count(access.agents) : DASH}</td>
      <td>
        <Meter ratio={attached ? load : null} text={attached ? percent(load) : DASH} label={`Load of ${name}`} />
      </td>
      <td className="num">{measured(access.rtt_ms, "ms")}</td>
      <td className="num">{attached ? count(access.workers) : DASH}</td>
      <td>{access.since ? <When at={access.since} /> : DASH}</td>
      <td>
        <Link className="wr-link" to="/events" search={{ subject: access.id }} aria-label={`Events of Access ${name}`}>
          Events
        </Link>
      </td>
      <td className="num">
        {ask && (
          <Group gap={6} justify="flex-end">
            {access.stop_name && attached && (
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
        )}
      </td>
    </tr>
  );
}

const NAMES: Record<Verb, string> = { drain: "Drain", resume: "Resume" };

/** How many of the agents that were here have left: of the most that were seen since it drains. */
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
          <Meter
            ratio={gone / most}
            text={percent(gone / most)}
            label={`Agents that have left ${plain(shortId(access.id))}`}
          />
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
  const name = plain(shortId(access.id));
  const act = useMutation({
    mutationFn: () => post(`/accesses/${encodeURIComponent(access.id)}/${verb}`, { reason }),
    onSuccess: () => {
      notifications.show({ message: verb === "drain" ? `${name} is draining` : `${name} takes agents again` });
      for (const key of ["accesses", "health"]) void client.invalidateQueries({ queryKey: [key] });
      close();
    },
  });
  return (
    <Modal opened onClose={close} title={`${NAMES[verb]} ${name}`}>
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
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" loading={act.isPending}>
              {NAMES[verb]}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

const RESUMES =
  "It takes agents again. Those that left come back when it is clearly nearer to them than " +
  "where they are; nobody is moved now.";

function drains(access: Access, others: readonly Access[]): string {
  if (others.length === 0) return "No other Access serves: this will be refused, since its agents could go nowhere.";
  const where =
    others.length === 1
      ? `the one other Access that serves, in ${plain(others[0]!.region ?? "a region not known")}`
      : `the ${count(others.length)} other Accesses that serve`;
  return (
    `Its ${count(access.agents)} agents move one after the other, within seconds, to ` +
    `${where}. What runs on their hosts goes on and no reading is lost, but open logs, ` +
    "shells and copies through it end. Nobody new comes until it is resumed."
  );
}
