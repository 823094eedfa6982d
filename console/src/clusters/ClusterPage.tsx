// The page of one cluster: steps, output, commands inside, files, costs, resizing, stopping and deleting.

import { Button, Checkbox, NumberInput, Stack, Tabs, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { post, remove } from "../api/client.ts";
import {
  cluster as clusterQuery,
  explain as explainQuery,
  me as meQuery,
  receipts as receiptsQuery,
} from "../api/queries.ts";
import { openStream } from "../api/streams.ts";
import type { Cluster, Explanation } from "../api/types.ts";
import { isRenter, mayEnd } from "../identity/rights.ts";
import { SharePanel, useReach } from "../identity/SharePanel.tsx";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { amount, bytes, count, DASH, duration, percent, perHour, plain, words } from "../parts/format.ts";
import { Command, Empty, Facts, Figure, Id, Loaded, PageHead, Panel, ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Shape, Simulated, State, TestMoney, useNow, When } from "../parts/state.tsx";
import { toneOf } from "../parts/states.ts";
import { EventList } from "../records/EventList.tsx";
import { figure } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { ClusterVolumes } from "../volumes/ClusterVolumes.tsx";
import { Connect, isSimulated } from "./Connect.tsx";
import { Exec } from "./Exec.tsx";
import { Files } from "./Files.tsx";
import { Log } from "./Log.tsx";
import { LoginAgain } from "./RegistryLogin.tsx";
import { asCommand, LOGIN_FILE, type LoginDraft, loginOf, NO_LOGIN, quoted, shownWith, withLogin } from "./request.ts";
import { StartAsked, StopAsked } from "./StopStart.tsx";
import { Usage } from "./Usage.tsx";

const TerminalView = lazy(() => import("./TerminalView.tsx").then((module) => ({ default: module.TerminalView })));

const is = (cluster: Cluster, ...phases: string[]) => phases.includes(cluster.phase.toLowerCase());
const isOver = (cluster: Cluster) => is(cluster, "deleted", "finished", "failed", "stopped");

/** False where its work is gone from its host and no log of it was kept: asking for the log would be refused. */
const hasLog = (cluster: Cluster) =>
  !is(cluster, "deleted", "finished") ||
  cluster.workloads.some((work) => work.rank === 0 && work.results !== null && work.results.log_bytes !== null);

export function ClusterPage() {
  const { clusterId } = useParams({ from: "/clusters/$clusterId" });
  const client = useQueryClient();
  const query = useQuery(clusterQuery(clusterId));
  useEffect(
    () =>
      openStream(`/clusters/${encodeURIComponent(clusterId)}/stream`, {
        on: {
          cluster: (cluster: Cluster) => {
            client.setQueryData<Cluster>(["cluster", clusterId], (known) =>
              known && known.version > cluster.version ? known : cluster,
            );
            if (isOver(cluster))
              for (const key of ["me", "receipts", "clusters"]) void client.invalidateQueries({ queryKey: [key] });
          },
        },
      }),
    [client, clusterId],
  );
  return (
    <div className="wr-page">
      <Loaded query={query} lines={12}>
        {(cluster) => <ClusterView cluster={cluster} />}
      </Loaded>
    </div>
  );
}

function ClusterView({ cluster }: { cluster: Cluster }) {
  const [deleting, setDeleting] = useState(false);
  const [resizing, setResizing] = useState(false);
  const [turning, setTurning] = useState<"stop" | "start" | null>(null);
  const me = useQuery(meQuery);
  const currency = me.data?.balance.currency ?? "";
  const mine = isRenter(me.data, cluster.account_id);
  const { uses, manages } = useReach(cluster.id, cluster.account_id);
  const over = isOver(cluster);
  const up = is(cluster, "running", "degraded");
  const inside = useRef<HTMLDivElement>(null);
  const [tab, setTab] = useState<string | null>(null);
  const [terminal, setTerminal] = useState(false);
  const show = (wanted: string | null) => {
    setTab(wanted);
    if (wanted === "terminal") setTerminal(true);
  };
  const openTerminal = () => {
    show("terminal");
    inside.current?.scrollIntoView({ block: "nearest" });
  };
  return (
    <>
      <PageHead
        above={
          <Link className="wr-link" to="/clusters">
            Machines
          </Link>
        }
        title={plain(cluster.name)}
        beside={
          <>
            <span data-testid="phase">
              <State state={cluster.phase} />
            </span>
            {cluster.request.simulated && <Simulated />}
            <Text size="xs" className="wr-quiet">
              <Id id={cluster.id} />
            </Text>
          </>
        }
        actions={
          is(cluster, "deleted", "finished") ? (
            <ReceiptLink cluster={cluster} />
          ) : (
            <>
              {manages && is(cluster, "running") && (cluster.kind === "ray" || cluster.kind === "dask") && (
                <Button variant="default" onClick={() => setResizing(true)}>
                  Resize
                </Button>
              )}
              {manages && is(cluster, "creating", "running", "degraded", "stopping") && (
                <Button variant="default" onClick={() => setTurning("stop")} disabled={is(cluster, "stopping")}>
                  {is(cluster, "stopping") ? "Stopping…" : "Stop"}
                </Button>
              )}
              {manages && is(cluster, "stopped") && <Button onClick={() => setTurning("start")}>Start</Button>}
              {(manages || mayEnd(me.data, cluster.account_id)) && (
                <Button
                  color="red"
                  variant="light"
                  onClick={() => setDeleting(true)}
                  disabled={is(cluster, "deleting")}
                >
                  {is(cluster, "deleting") ? "Deleting…" : "Delete"}
                </Button>
              )}
            </>
          )
        }
      />
      {cluster.problem && (
        <div className="wr-note wr-note-bad" style={{ marginBottom: 14 }}>
          <span className="wr-break">{plain(cluster.problem)}</span>
        </div>
      )}
      {cluster.reason && (
        <div className={`wr-note ${is(cluster, "failed") ? "wr-note-bad" : ""}`} style={{ marginBottom: 14 }}>
          <strong>{words(cluster.phase)}</strong>
          <span className="wr-break">{plain(cluster.reason)}</span>
        </div>
      )}
      <div className="wr-figures" style={{ marginBottom: 16 }}>
        <Figure
          label="cost so far"
          value={<span data-testid="cost">{amount(cluster.cost_so_far, 2, 6)}</span>}
          note={
            <>
              {currency} <TestMoney />
            </>
          }
        />
        <Figure label="price" value={perHour(cluster.price_per_hour)} />
        <Figure label="running" value={<Running cluster={cluster} />} />
        <Figure label="tier" value={plain(cluster.tier)} />
      </div>
      <div className="wr-columns">
        <div className="wr-stack">
          <Panel title="Output" bare>
            {!uses ? (
              <Empty title="The log is private">
                The renter of a cluster reads its log, and with whom it is shared to use.
              </Empty>
            ) : hasLog(cluster) ? (
              <Log
                key={cluster.rental_id}
                path={`/clusters/${encodeURIComponent(cluster.id)}/logs`}
                over={over}
                waiting="Waiting for the first line…"
              />
            ) : (
              <Empty title="The log is not kept">
                It was deleted with the cluster. The log of a command that ends by itself is kept for 30 days.
              </Empty>
            )}
          </Panel>
          {cluster.started_at && (
            <Usage
              clusterId={cluster.id}
              endedAt={cluster.ended_at}
              hosts={cluster.request.hosts}
              gpus={cluster.request.gpus}
            />
          )}
          <div ref={inside}>
            <Inside key={String(uses)} {...{ cluster, up, over, tab, show }} mine={uses} hasTerminal={terminal} />
          </div>
        </div>
        <aside className="wr-stack">
          <Panel title="Progress">
            <Steps cluster={cluster} />
          </Panel>
          {up && (
            <Panel title="Connect">
              <Connect cluster={cluster} mine={uses} openTerminal={openTerminal} />
            </Panel>
          )}
          {Object.keys(cluster.urls).length > 0 && (
            <Panel title="Open to everybody">
              <Addresses cluster={cluster} />
            </Panel>
          )}
          {cluster.request.volumes.length > 0 && (
            <Panel title="Volumes">
              <ClusterVolumes cluster={cluster} mine={mine} up={up} />
            </Panel>
          )}
          {cluster.network && (
            <Panel title="Network">
              <Network network={cluster.network} traffic={cluster.traffic} />
            </Panel>
          )}
          <Panel title="Workloads">
            <Workloads cluster={cluster} />
          </Panel>
          <Panel title="Configuration">
            <Asked cluster={cluster} />
          </Panel>
          <SharePanel object={{ kind: "cluster", id: cluster.id, accountId: cluster.account_id }} />
        </aside>
      </div>
      {resizing && <ResizeAsked cluster={cluster} close={() => setResizing(false)} />}
      {turning === "stop" && <StopAsked cluster={cluster} close={() => setTurning(null)} />}
      {turning === "start" && <StartAsked cluster={cluster} close={() => setTurning(null)} />}
      {deleting && <DeleteAsked cluster={cluster} close={() => setDeleting(false)} />}
    </>
  );
}

function Running({ cluster }: { cluster: Cluster }) {
  const now = useNow();
  if (!cluster.started_at) return <>–</>;
  const end = cluster.ended_at ? Date.parse(cluster.ended_at) : now;
  return <>{duration(Math.max(0, Math.floor((end - Date.parse(cluster.started_at)) / 1000)))}</>;
}

/** The way a cluster goes; what has no step of its own in the record is shown as still to come. */
function Steps({ cluster }: { cluster: Cluster }) {
  const last = cluster.steps.length - 1;
  const waiting = is(cluster, "requested", "queued", "placing", "creating", "stopping", "deleting");
  return (
    <ol className="wr-steps" aria-label="Steps" data-testid="steps">
      {cluster.steps.map((step, index) => {
        const going =
          waiting && (index === last || step.member !== null) && (step.progress === null || step.progress < 1);
        const failed = step.name === "failed";
        return (
          <li key={`${index} ${step.name}`}>
            <span className={`wr-state wr-tone-${failed ? "bad" : going ? "busy" : "ok"}`}>
              <Shape tone={failed ? "bad" : going ? "busy" : "ok"} />
            </span>
            <span className="wr-break">
              {words(step.name)}
              {going && step.progress !== null && ` ${percent(step.progress)}`}
              {step.member && (
                <Text size="xs" className="wr-quiet wr-break">
                  {plain(step.member)}
                </Text>
              )}
              {step.detail && (
                <Text size="xs" className="wr-quiet wr-break">
                  {plain(step.detail)}
                </Text>
              )}
            </span>
            <span className="wr-quiet" style={{ fontSize: 12 }}>
              <When at={step.at} />
            </span>
          </li>
        );
      })}
      {cluster.steps.length === 0 && (
        <li>
          <span className="wr-state wr-tone-busy">
            <Shape tone="busy" />
          </span>
          <span>{words(cluster.phase)}</span>
        </li>
      )}
    </ol>
  );
}

/** The addresses of a service; the renter decides whom to tell. */
function Addresses({ cluster }: { cluster: Cluster }) {
  return (
    <Stack gap="sm" data-testid="addresses">
      {Object.entries(cluster.urls).map(([port, url]) => (
        <div key={port}>
          <a className="wr-link wr-break" href={url} target="_blank" rel="noopener noreferrer">
            Port {plain(port)} in a new window
          </a>
          <Command text={url} label={`address of port ${port}`} />
        </div>
      ))}
      <Text size="xs" className="wr-quiet">
        Whoever knows an address may call it: the service itself checks its callers.
      </Text>
      <Text size="xs" className="wr-quiet">
        {count(cluster.traffic.connections)} connections, {bytes(cluster.traffic.bytes_in)} in,{" "}
        {bytes(cluster.traffic.bytes_out)} out
      </Text>
    </Stack>
  );
}

/** The way the members on several hosts reach each other, with the reason. */
function Network({ network, traffic }: { network: NonNullable<Cluster["network"]>; traffic: Cluster["traffic"] }) {
  const rows: [string, string][] = [
    [
      "Members meet",
      network.mode === "tunnels" ? "in a private network, through a relay that cannot read it" : "directly",
    ],
    ["Because", plain(network.reason)],
  ];
  if (network.cords > 0)
    rows.push(
      ["Joined", `${count(network.cords_up)} of ${count(network.cords)} pairs`],
      ["Carried", `${bytes(traffic.bytes_in)} and ${bytes(traffic.bytes_out)}`],
    );
  if (network.problem !== null) rows.push(["Not joined", plain(network.problem)]);
  return (
    <div data-testid="network">
      <Facts rows={rows} />
    </div>
  );
}

/** The latest step of a member, in a cluster whose members are prepared side by side. */
function lastStep(cluster: Cluster, work: Cluster["workloads"][number]): string {
  const own = cluster.steps.filter((step) => step.member?.startsWith(`rank ${work.rank} on `));
  const step = own[own.length - 1];
  if (step === undefined) return DASH;
  return step.progress === null ? words(step.name) : `${words(step.name)} ${percent(step.progress)}`;
}

function Workloads({ cluster }: { cluster: Cluster }) {
  const members = cluster.workloads.filter((work) => work.is_member).sort((left, right) => left.rank - right.rank);
  if (members.length === 0)
    return (
      <Text size="sm" className="wr-quiet">
        Not placed yet.
      </Text>
    );
  return (
    <Stack gap="md">
      {members.map((work) => (
        <Facts
          key={work.id}
          rows={[
            ...(work.address === null
              ? []
              : [
                  ["Rank", String(work.rank)] as const,
                  ["Address", plain(work.address)] as const,
                  ["Last step", lastStep(cluster, work)] as const,
                ]),
            [
              "Host",
              <Link key="h" className="wr-link" to="/hosts/$hostId" params={{ hostId: work.host_id }}>
                {plain(work.host_name)}
              </Link>,
            ],
            ["Phase", <State key="p" state={work.phase} />],
            ["Runtime", plain(work.runtime)],
            ...(work.image === null ? [] : [["Image", plain(work.image)] as const]),
            ["Signed running", duration(work.running_s)],
            ["Exit code", work.exit_code === null ? DASH : String(work.exit_code)],
            ...(Object.keys(work.ports).length > 0
              ? [
                  [
                    "Ports",
                    Object.entries(work.ports)
                      .map(([inside, port]) => `${plain(inside)} → ${port}`)
                      .join(", "),
                  ] as const,
                ]
              : []),
            ["Id", <Id key="i" id={work.id} />],
            [
              "Happened",
              <Link
                key="e"
                className="wr-link"
                to="/events"
                search={{ subject: work.id }}
                aria-label={`Events of workload ${plain(work.id)}`}
              >
                Events
              </Link>,
            ],
          ]}
        />
      ))}
    </Stack>
  );
}

/** The limits that end a cluster. */
function limitsOf(cluster: Cluster): [string, ReactNode][] {
  const asked = cluster.request;
  return [
    ...(asked.max_duration_seconds === null
      ? []
      : [["Maximum run time", duration(asked.max_duration_seconds)] as [string, ReactNode]]),
    ...(asked.budget === null ? [] : [["Budget", amount(asked.budget)] as [string, ReactNode]]),
    ...(asked.idle_seconds === null
      ? []
      : [["Stops when unused for", duration(asked.idle_seconds)] as [string, ReactNode]]),
    ...(cluster.client_lease_ends_at === null
      ? []
      : [["Ends without its client", <When key="c" at={cluster.client_lease_ends_at} />] as [string, ReactNode]]),
    ...(cluster.ends_at === null ? [] : [["Ends", <When key="n" at={cluster.ends_at} />] as [string, ReactNode]]),
  ];
}

function Asked({ cluster }: { cluster: Cluster }) {
  const { secrets, registry_secret } = cluster.request;
  return (
    <Stack gap="xs">
      <Facts
        rows={[
          ["Kind", words(cluster.kind)],
          ["Created", <When key="c" at={cluster.created_at} />],
          ["Started", <When key="s" at={cluster.started_at} />],
          ["Ended", <When key="e" at={cluster.ended_at} />],
          ...limitsOf(cluster),
          ...(secrets.length ? [["Secrets", plain(secrets.join(", "))] as const] : []),
          ...(registry_secret === null ? [] : [["Registry login", plain(registry_secret)] as const]),
        ]}
      />
      {!cluster.request.simulated && <Command text={asCommand(cluster.request)} label="the same by command" />}
    </Stack>
  );
}

interface InsideProps {
  cluster: Cluster;
  mine: boolean;
  up: boolean;
  over: boolean;
  tab: string | null;
  show: (tab: string | null) => void;
  /** One was opened: it goes on while another tab is looked at. */
  hasTerminal: boolean;
}

function Inside({ cluster, mine, up, over, tab, show, hasTerminal }: InsideProps) {
  const shell = mine && up && !isSimulated(cluster);
  return (
    <Panel bare label="Inside">
      <Tabs value={tab ?? (mine ? "exec" : "events")} onChange={show} keepMounted={false}>
        <Tabs.List>
          {mine && <Tabs.Tab value="exec">Run a command inside</Tabs.Tab>}
          {(shell || hasTerminal) && <Tabs.Tab value="terminal">Terminal</Tabs.Tab>}
          {mine && <Tabs.Tab value="files">Files</Tabs.Tab>}
          <Tabs.Tab value="events">Events</Tabs.Tab>
          <Tabs.Tab value="why">Why here</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="exec">
          {up ? (
            <Exec clusterId={cluster.id} />
          ) : (
            <Empty title={is(cluster, "stopped") ? "Stopped" : over ? "This cluster has ended" : "Not running yet"}>
              Commands run inside while the cluster is running.
            </Empty>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="terminal" keepMounted>
          {hasTerminal && (
            <Suspense fallback={<Waiting />}>
              <TerminalView clusterId={cluster.id} hosts={cluster.request.hosts} />
            </Suspense>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <Files clusterId={cluster.id} name={cluster.name} over={is(cluster, "deleted", "stopped")} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <EventList subject={cluster.id} follow={!over} />
        </Tabs.Panel>
        <Tabs.Panel value="why">
          <Why id={cluster.id} />
        </Tabs.Panel>
      </Tabs>
    </Panel>
  );
}

const LOSER_COLUMNS: readonly Column<Explanation["losers"][number]>[] = [
  { id: "host", name: "Not here", value: (loser) => loser.host },
  { id: "reason", name: "Because", value: (loser) => loser.reason },
  figure("score", "Score", (loser) => loser.score, count),
];

function Why({ id }: { id: string }) {
  const query = useQuery(explainQuery(id));
  return (
    <Loaded query={query}>
      {(why: Explanation) => (
        <Stack gap="sm" p="md">
          <Facts
            rows={[
              [
                "Chosen",
                why.chosen ? (
                  <Link key="c" className="wr-link" to="/hosts/$hostId" params={{ hostId: why.chosen.host_id }}>
                    {plain(why.chosen.host_name)}
                  </Link>
                ) : (
                  DASH
                ),
              ],
              ["Score", why.chosen ? count(why.chosen.score) : DASH],
              [
                "Decision",
                <span key="d" className="wr-break">
                  {plain(why.decision)}
                </span>,
              ],
            ]}
          />
          {why.losers.length > 0 && (
            <DataTable
              of={["host", "hosts that were not chosen"]}
              columns={LOSER_COLUMNS}
              id={(loser) => loser.host_id}
              rows={why.losers}
              bare
              empty={null}
            />
          )}
        </Stack>
      )}
    </Loaded>
  );
}

function ReceiptLink({ cluster }: { cluster: Cluster }) {
  const query = useQuery(receiptsQuery(cluster.id).first);
  const mine = query.data?.items.find((one) => one.cluster_id === cluster.id);
  if (!mine)
    return (
      <Button component={Link} to="/receipts" variant="default">
        Receipts
      </Button>
    );
  return (
    <Link to="/receipts/$receiptId" params={{ receiptId: mine.id }} style={{ textDecoration: "none" }}>
      <Button component="span">
        Receipt: {amount(mine.amount)} {mine.currency}
      </Button>
    </Link>
  );
}

/** More hosts join, or the highest ranks go. */
function ResizeAsked({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const client = useQueryClient();
  const [hosts, setHosts] = useState(cluster.request.hosts);
  const [draft, setDraft] = useState<LoginDraft>({ ...NO_LOGIN, image: cluster.request.image ?? "" });
  const grows = hosts > cluster.request.hosts;
  const { login, faults, sound } = loginOf(draft, grows, cluster.needs_login);
  const path = `/clusters/${encodeURIComponent(cluster.id)}/resize`;
  const resize = useMutation({
    mutationFn: () => post<Cluster>(path, withLogin({ hosts }, login)),
    gcTime: 0, // what was sent has the login
    onSuccess: (after) => {
      client.setQueryData(["cluster", cluster.id], after);
      close();
    },
  });
  return (
    <Dialog onClose={close} title={`Resize ${plain(cluster.name)}`}>
      <Stack gap="sm">
        <NumberInput
          label="Hosts"
          description={
            "New ones join its head; with fewer, the highest ranks go, and what they run is done again " +
            "elsewhere or lost."
          }
          min={1}
          max={64}
          value={hosts}
          onChange={(value) => setHosts(Number(value) || 1)}
          data-autofocus
        />
        <Text size="sm" className="wr-quiet">
          Now {count(cluster.request.hosts)} for {perHour(cluster.price_per_hour)} in all. A new host is paid for from
          its start.
        </Text>
        {grows && <LoginAgain cluster={cluster} draft={draft} setDraft={setDraft} faults={faults} />}
        {resize.error && <ProblemNote error={resize.error} />}
        <Button
          loading={resize.isPending}
          disabled={hosts === cluster.request.hosts || !sound}
          onClick={() => resize.mutate()}
        >
          Resize
        </Button>
        <Same
          method="POST"
          path={path}
          body={shownWith({ hosts }, login)}
          command={
            `windrow cluster resize ${quoted(cluster.id)} ` +
            `${hosts}${login ? ` --registry-login ${LOGIN_FILE}` : ""}`
          }
        />
      </Stack>
    </Dialog>
  );
}

export function DeleteAsked({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const hasCommand = cluster.request.argv.length > 0;
  const path = `/clusters/${encodeURIComponent(cluster.id)}${hasCommand ? "?keep_results=true" : ""}`;
  const client = useQueryClient();
  const hasFailed = toneOf(cluster.phase) === "bad";
  const [known, setKnown] = useState(false);
  const act = useMutation({
    mutationFn: () => remove(path),
    onSuccess: () => {
      notifications.show({ message: `${plain(cluster.name)} is being deleted` });
      for (const key of [["cluster", cluster.id], ["clusters"], ["receipts"], ["me"]])
        void client.invalidateQueries({ queryKey: key });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Delete ${plain(cluster.name)}`}
      name={cluster.name}
      button="Delete cluster"
      act={act}
      confirmed={hasFailed && known}
      close={close}
      text={
        <>
          Its {cluster.workloads.length === 1 ? "workload ends" : `${count(cluster.workloads.length)} workloads end`}
          {hasCommand
            ? "; its log and the files that it changed are kept for 30 days"
            : " and its files are gone for good"}
          . You pay until now; the reserved rest is returned.
        </>
      }
    >
      {hasFailed && (
        <Checkbox
          label="It has failed: delete it without typing"
          checked={known}
          onChange={(event) => setKnown(event.currentTarget.checked)}
        />
      )}
      <Same
        method="DELETE"
        path={path}
        command={`windrow cluster delete ${cluster.id} ${hasCommand ? "--keep-results " : ""}--yes`}
      />
    </ConfirmByName>
  );
}
