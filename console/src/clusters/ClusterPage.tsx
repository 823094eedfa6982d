// The page of one cluster in tabs: ways in, output and costs first; terminal, files, charts, events, details.
import { Button, Group, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { AlertsOf } from "../alerts/AlertsOf.tsx";
import {
  cluster as clusterQuery,
  jobs as jobsQuery,
  me as meQuery,
  receipts as receiptsQuery,
} from "../api/queries.ts";
import { openStream } from "../api/streams.ts";
import type { Cluster } from "../api/types.ts";
import { isRenter, mayEnd } from "../identity/rights.ts";
import { SharePanel, useReach } from "../identity/SharePanel.tsx";
import { amount, duration, perHour, plain, words } from "../parts/format.ts";
import { LinkButton } from "../parts/LinkButton.tsx";
import { ObjectHead } from "../parts/ObjectHead.tsx";
import { Amount, Empty, Figure, Loaded, Panel, Waiting } from "../parts/page.tsx";
import { TestMoney, useNow, When } from "../parts/state.tsx";
import { type Tab, Tabbed, useTab } from "../parts/Tabbed.tsx";
import { WhyHere } from "../queue/WhyHere.tsx";
import { MachineWaits } from "../queue/WhyWaits.tsx";
import { EventList } from "../records/EventList.tsx";
import { ClusterVolumes } from "../volumes/ClusterVolumes.tsx";
import { ClusterDetails, Decision } from "./ClusterDetails.tsx";
import { DeleteAsked, ExtendAsked, ResizeAsked } from "./ClusterDialogs.tsx";
import { Addresses, Connect, isSimulated } from "./Connect.tsx";
import { useMachineWord } from "./called.ts";
import { Exec } from "./Exec.tsx";
import { Files } from "./Files.tsx";
import { Findings } from "./Findings.tsx";
import { Log } from "./Log.tsx";
import { Places } from "./Places.tsx";
import { StartUp } from "./StartUp.tsx";
import { StartAsked, StopAsked } from "./StopStart.tsx";
import { afterFailure, logOf, totalAtEnd } from "./startup.ts";
import { Usage } from "./Usage.tsx";

const TerminalView = lazy(() => import("./TerminalView.tsx").then((module) => ({ default: module.TerminalView })));

const is = (cluster: Cluster, ...phases: string[]) => phases.includes(cluster.phase.toLowerCase());
const waitsFor = ({ request }: Cluster) => `Waiting for ${request.gpus > 0 ? "a GPU" : "a place"}`;
const isOver = (cluster: Cluster) => is(cluster, "deleted", "finished", "failed", "stopped");

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
  const { uses, manages } = useReach(cluster.id, cluster.account_id);
  const word = useMachineWord(cluster);
  const [tab, show] = useTab();
  const [entered, enter] = useState(false);
  const up = is(cluster, "running", "degraded");
  const over = isOver(cluster);
  const shell = uses && up && !isSimulated(cluster);
  const inTerminal = tab === "terminal" && (shell || entered);
  if (inTerminal && !entered) enter(true); // it goes on while another tab is looked at
  const tabs: (Tab | false)[] = [
    {
      value: "overview",
      name: "Overview",
      content: <Overview {...{ cluster, uses, up, over }} openTerminal={() => show("terminal")} />,
    },
    (shell || entered) && {
      value: "terminal",
      name: "Terminal",
      keeps: true,
      content: (entered || inTerminal) && (
        <Panel bare label="Terminal">
          <Suspense fallback={<Waiting />}>
            <TerminalView clusterId={cluster.id} hosts={cluster.request.hosts} />
          </Suspense>
        </Panel>
      ),
    },
    uses && {
      value: "exec",
      name: "Run a command inside",
      content: (
        <Panel bare label="Inside">
          {up ? (
            <Exec clusterId={cluster.id} word={word} />
          ) : (
            <Empty title={is(cluster, "stopped") ? "Stopped" : over ? "This machine has ended" : "Not running yet"}>
              Commands run inside while the machine is running.
            </Empty>
          )}
        </Panel>
      ),
    },
    uses && {
      value: "files",
      name: "Files",
      content: (
        <Panel bare label="Files">
          <Files
            clusterId={cluster.id}
            name={cluster.name}
            word={word}
            over={is(cluster, "deleted", "stopped")}
            takes={up && !isSimulated(cluster)}
          />
        </Panel>
      ),
    },
    cluster.started_at !== null && {
      value: "charts",
      name: "Charts",
      content: (
        <div className="wr-stack">
          {(cluster.request.gpus > 0 || cluster.kind === "gang") && (
            <Findings of={`/clusters/${cluster.id}`} over={over} />
          )}
          <Usage
            clusterId={cluster.id}
            endedAt={cluster.ended_at}
            hosts={cluster.request.hosts}
            gpus={cluster.request.gpus}
          />
        </div>
      ),
    },
    {
      value: "events",
      name: "Events",
      content: (
        <Panel bare label="Events">
          <EventList subject={cluster.id} follow={!over} />
        </Panel>
      ),
    },
    cluster.queue === null && {
      value: "why",
      name: "Why here",
      content: (
        <Panel label="Why here">
          <WhyHere id={cluster.id} record={({ decision }) => decision && <Decision why={decision} />} />
        </Panel>
      ),
    },
    { value: "details", name: "Details", content: <ClusterDetails cluster={cluster} /> },
  ];
  return (
    <Tabbed
      tabs={tabs.filter((one) => one !== false)}
      head={
        <ObjectHead
          up={{ to: "/clusters", name: "Machines" }}
          title={cluster.name}
          state={cluster.phase}
          simulated={cluster.request.simulated}
          id={cluster.id}
          testId="phase"
          actions={<Actions cluster={cluster} manages={manages} />}
        />
      }
    />
  );
}

function Actions({ cluster, manages }: { cluster: Cluster; manages: boolean }) {
  const [deleting, setDeleting] = useState(false);
  const [resizing, setResizing] = useState(false);
  const [extending, setExtending] = useState(false);
  const [turning, setTurning] = useState<"stop" | "start" | null>(null);
  const me = useQuery(meQuery).data;
  if (is(cluster, "deleted", "finished")) return <ReceiptLink cluster={cluster} />;
  return (
    <>
      {manages && is(cluster, "running") && (cluster.kind === "ray" || cluster.kind === "dask") && (
        <Button variant="default" onClick={() => setResizing(true)}>
          Resize
        </Button>
      )}
      {isRenter(me, cluster.account_id) && cluster.ends_at && cluster.request.max_duration_seconds !== null && (
        <Button variant="default" onClick={() => setExtending(true)}>
          Extend
        </Button>
      )}
      {manages && is(cluster, "creating", "running", "degraded", "stopping") && (
        <Button variant="default" onClick={() => setTurning("stop")} disabled={is(cluster, "stopping")}>
          {is(cluster, "stopping") ? "Stopping…" : "Stop"}
        </Button>
      )}
      {manages && is(cluster, "stopped") && <Button onClick={() => setTurning("start")}>Start</Button>}
      {(manages || mayEnd(me, cluster.account_id)) && (
        <Button color="red" variant="light" onClick={() => setDeleting(true)} disabled={is(cluster, "deleting")}>
          {is(cluster, "deleting") ? "Deleting…" : "Delete"}
        </Button>
      )}
      {resizing && <ResizeAsked cluster={cluster} close={() => setResizing(false)} />}
      {extending && <ExtendAsked cluster={cluster} close={() => setExtending(false)} />}
      {turning === "stop" && <StopAsked cluster={cluster} close={() => setTurning(null)} />}
      {turning === "start" && <StartAsked cluster={cluster} close={() => setTurning(null)} />}
      {deleting && <DeleteAsked cluster={cluster} close={() => setDeleting(false)} />}
    </>
  );
}

interface OverviewProps {
  cluster: Cluster;
  uses: boolean;
  up: boolean;
  over: boolean;
  openTerminal: () => void;
}

function Overview({ cluster, uses, up, over, openTerminal }: OverviewProps) {
  const me = useQuery(meQuery).data;
  return (
    <>
      <AlertsOf cause={cluster.id} />
      {cluster.problem && (
        <div className="wr-note wr-note-bad" style={{ marginBottom: 14 }}>
          <span className="wr-break">{plain(cluster.problem)}</span>
        </div>
      )}
      {cluster.queue && (
        <div style={{ marginBottom: 16 }}>
          <MachineWaits cluster={cluster} changes={isRenter(me, cluster.account_id)} />
        </div>
      )}
      {cluster.reason && !cluster.queue && (
        <div className={`wr-note ${is(cluster, "failed") ? "wr-note-bad" : ""}`} style={{ marginBottom: 14 }}>
          <strong>{is(cluster, "queued") ? waitsFor(cluster) : words(cluster.phase)}</strong>
          <span className="wr-break">{plain(cluster.reason)}</span>
        </div>
      )}
      {is(cluster, "failed") && uses && <AfterFailure cluster={cluster} />}
      <Costs cluster={cluster} currency={me?.balance.currency ?? ""} />
      {up && (
        <div style={{ marginBottom: 16 }}>
          <Panel title="Connect">
            <Connect cluster={cluster} mine={uses} openTerminal={openTerminal} />
          </Panel>
        </div>
      )}
      <div className="wr-columns">
        <div className="wr-stack">
          <Places tries={cluster.tries} backend={cluster.request.backend} />
          <Panel title="Output" bare>
            {!uses ? (
              <Empty title="The log is private">
                The renter of a machine reads its log, and with whom it is shared to use.
              </Empty>
            ) : (
              <Output cluster={cluster} up={up} over={over} />
            )}
          </Panel>
        </div>
        <aside className="wr-stack">
          <Panel title="Progress">
            <StartUp cluster={cluster} />
          </Panel>
          {Object.keys(cluster.urls).length > 0 && (
            <Panel title="Open to everybody">
              <Addresses cluster={cluster} />
            </Panel>
          )}
          {cluster.request.volumes.length > 0 && (
            <Panel title="Volumes">
              <ClusterVolumes cluster={cluster} mine={isRenter(me, cluster.account_id)} up={up} />
            </Panel>
          )}
          <SharePanel object={{ kind: "cluster", id: cluster.id, accountId: cluster.account_id }} />
        </aside>
      </div>
    </>
  );
}

/** What to do next, below the reason. */
function AfterFailure({ cluster }: { cluster: Cluster }) {
  return (
    <Group gap="sm" mb="md" role="group" aria-label="What to do next">
      <Text size="sm" className="wr-break">
        {plain(afterFailure(cluster))}
      </Text>
      <LinkButton to="/clusters/new" search={{ like: cluster.id }} variant="filled">
        Start again
      </LinkButton>
    </Group>
  );
}

function Output({ cluster, up, over }: Pick<OverviewProps, "cluster" | "up" | "over">) {
  const log = logOf(cluster);
  const jobs = useQuery({ ...jobsQuery.first, enabled: log === "gone" }).data?.items ?? [];
  const job = jobs.find((one) => one.attempts.some((attempt) => attempt.cluster_id === cluster.id));
  if (log === "none" && is(cluster, "queued"))
    return (
      <Empty title={waitsFor(cluster)}>
        It starts by itself when there is a place. Nothing is paid until then; delete it if you need it no more.
      </Empty>
    );
  if (log === "none")
    return <Empty title="Nothing was written yet">Follow the start of the machine under Progress.</Empty>;
  if (log === "gone" && job)
    return (
      <Empty title="The log is with its job">
        <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: job.id }}>
          Open the job {plain(job.name)}
        </Link>
      </Empty>
    );
  if (log === "gone")
    return (
      <Empty title="No log is kept">
        {is(cluster, "failed")
          ? "What it wrote was deleted from its host when it failed."
          : "Deleted with the machine. Only the log of a command that ends by itself is kept after it, for 30 days."}
      </Empty>
    );
  return (
    <Log
      key={cluster.rental_id}
      path={`/clusters/${encodeURIComponent(cluster.id)}/logs`}
      name={cluster.name}
      over={over}
      waiting={
        cluster.request.argv.length > 0
          ? "Nothing was written yet. What the command prints shows here."
          : up
            ? "This machine runs no command of its own. Open the terminal, or run a command inside."
            : "Nothing was written yet. Follow the start under Progress."
      }
    />
  );
}

function Costs({ cluster, currency }: { cluster: Cluster; currency: string }) {
  const total = totalAtEnd(cluster, useNow());
  return (
    <div className="wr-figures" style={{ marginBottom: 16 }}>
      <Figure
        label="cost so far"
        value={
          <span data-testid="cost">
            <Amount text={cluster.cost_so_far} />
          </span>
        }
        note={
          <>
            {currency} <TestMoney />
          </>
        }
      />
      <Figure label="price" value={perHour(cluster.price_per_hour)} />
      <Figure label="running" value={<Running cluster={cluster} />} />
      {total !== null && cluster.ends_at !== null && (
        <>
          <Figure label="ends" value={<When at={cluster.ends_at} />} />
          <Figure label="cost until then, at most" value={<Amount text={total} />} />
        </>
      )}
      <Figure label="tier" value={plain(cluster.tier)} />
    </div>
  );
}

function Running({ cluster }: { cluster: Cluster }) {
  const now = useNow();
  if (!cluster.started_at) return <>–</>;
  const end = cluster.ended_at ? Date.parse(cluster.ended_at) : now;
  return <>{duration(Math.max(0, Math.floor((end - Date.parse(cluster.started_at)) / 1000)))}</>;
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
