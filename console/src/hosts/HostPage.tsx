// The page of one host in tabs: what is wrong first, then how it does; GPUs, charts, events, hardware, settings.
import { Button, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { AlertsOf } from "../alerts/AlertsOf.tsx";
import { HostMaintenance } from "../alerts/Maintenance.tsx";
import { post } from "../api/client.ts";
import { events as eventsQuery, host as hostQuery, me as meQuery } from "../api/queries.ts";
import type { Gpu, Host } from "../api/types.ts";
import { useMayOpen } from "../app/PageButton.tsx";
import { mayOperate } from "../identity/rights.ts";
import {
  bitrate,
  bytes,
  celsius,
  count,
  listed,
  measured,
  percent,
  perHour,
  plain,
  sentence,
  watts,
} from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { ObjectHead } from "../parts/ObjectHead.tsx";
import { Empty, Facts, Figure, known, Loaded, Panel, ProblemNote, Reasons } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";
import { Same } from "../parts/Same.tsx";
import { SpanControl, spanNamed } from "../parts/Spans.tsx";
import { Subject } from "../parts/Subject.tsx";
import { called } from "../parts/shell.ts";
import { Meter, State, TestMoney, When } from "../parts/state.tsx";
import { type Tab, Tabbed } from "../parts/Tabbed.tsx";
import { CommandList } from "../records/CommandList.tsx";
import { EventList } from "../records/EventList.tsx";
import { events, figure, identity, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { BandwidthHistory } from "./BandwidthHistory.tsx";
import { DefaultImage } from "./DefaultImage.tsx";
import { type Frames, useFrames, useReading } from "./frames.ts";
import { ACTIONS, type Action, ActionAsked, Actions } from "./HostActions.tsx";
import { HostCharts } from "./HostCharts.tsx";
import { HostSays } from "./HostSays.tsx";
import { ProofPanel } from "./Proof.tsx";
import { HostStanding } from "./Standing.tsx";
import { Troubles } from "./Troubles.tsx";
import { marksOf } from "./timeline.ts";
import { HostVerification } from "./Verification.tsx";

export function HostPage() {
  const { hostId } = useParams({ from: "/hosts/$hostId" });
  const query = useQuery(hostQuery(hostId));
  return (
    <div className="wr-page">
      <Loaded query={query} lines={12}>
        {(host) => <HostView key={host.id} host={host} />}
      </Loaded>
    </div>
  );
}

function HostView({ host }: { host: Host }) {
  const mayRent = useMayOpen("/clusters/new");
  const may = mayOperate(useQuery(meQuery).data, host);
  const frames = useFrames(host.id);
  const tabs: (Tab | false)[] = [
    { value: "overview", name: "Overview", content: <Overview host={host} frames={frames} /> },
    {
      value: "gpus",
      name: host.gpus.length ? `GPUs (${host.gpus.length})` : "Slots",
      content: (
        <div className="wr-stack">
          {host.gpus.length > 0 && <Gpus host={host} frames={frames} />}
          <Panel title={`Slots (${host.slots.length})`} bare>
            <Slots host={host} />
          </Panel>
          <HostVerification host={host} />
        </div>
      ),
    },
    {
      value: "charts",
      name: "Charts",
      content: (
        <div className="wr-stack">
          <Live host={host} frames={frames} />
          <BandwidthPanel host={host} />
        </div>
      ),
    },
    {
      value: "events",
      name: "Events",
      content: (
        <Panel bare label="Events">
          <EventList subject={host.id} follow />
        </Panel>
      ),
    },
    {
      value: "commands",
      name: "Commands",
      content: (
        <Panel bare label="Commands">
          <CommandList hostId={host.id} />
        </Panel>
      ),
    },
    {
      value: "hardware",
      name: "Hardware",
      content: (
        <div className="wr-stack">
          <div className="wr-pair">
            <Panel title="Inventory">
              <Inventory host={host} />
            </Panel>
            <Panel title="Connection">
              <Connection host={host} />
            </Panel>
          </div>
          <HostSays hostId={host.id} />
        </div>
      ),
    },
    may && { value: "settings", name: "Settings", content: <Settings host={host} /> },
  ];
  return (
    <Tabbed
      tabs={tabs.filter((tab) => tab !== false)}
      head={
        <ObjectHead
          up={{ to: "/fleet", name: "Fleet" }}
          title={host.name}
          state={host.headline}
          reason={host.headline_reason}
          simulated={host.simulated}
          id={host.id}
          actions={
            <>
              {mayRent && (
                <Button
                  component={Link}
                  to="/clusters/new"
                  search={
                    {
                      host: host.id,
                      ...(host.simulated ? { simulated: "true" } : {}),
                      ...(host.gpus.length ? { hardware: "gpu" } : {}),
                    } as never
                  }
                  leftSection={<PlusIcon />}
                >
                  New machine here
                </Button>
              )}
              <Actions host={host} />
            </>
          }
        />
      }
    />
  );
}

function Overview({ host, frames }: Reading) {
  // Said in full below, with its remedy.
  const isWrong =
    host.headline === "degraded" &&
    (host.conditions.some((one) => one.severity !== "info") || host.gpus.some((gpu) => gpu.state === "faulty"));
  return (
    <>
      {host.headline_reason && !isWrong && (
        <Text size="sm" mb={12} className="wr-break">
          {sentence(host.headline_reason)}
          {host.headline_remedy && (
            <>
              . What to do: <Remedy text={host.headline_remedy} />
            </>
          )}
        </Text>
      )}
      <AlertsOf cause={host.id} />
      <HostMaintenance hostId={host.id} />
      <Troubles host={host} found={host.conditions} cards={host.gpus} />
      <Figures host={host} frames={frames} />
      <div className="wr-columns">
        <div className="wr-stack">
          {host.gpus.length > 0 && <Cards host={host} frames={frames} />}
          <HostStanding host={host} />
        </div>
        <aside className="wr-stack">
          <Panel title={`Tier ${plain(host.tier)}: why`} label="Tier">
            {host.tier_reasons.length ? (
              <Reasons reasons={host.tier_reasons} />
            ) : (
              <Text size="sm" className="wr-quiet">
                Not measured yet.
              </Text>
            )}
          </Panel>
          <ProofPanel host={host} />
        </aside>
      </div>
    </>
  );
}

/** Its GPUs at a glance: a tile each, with state and use. */
function Cards({ host: one, frames }: Reading) {
  const host = useReading(one, frames);
  return (
    <Panel title={`GPUs (${host.gpus.length})`}>
      <ul className="wr-tiles">
        {host.gpus.map((gpu) => (
          <li key={gpu.uuid}>
            <Link className="wr-link" to="/gpus/$gpuId" params={{ gpuId: gpu.uuid }}>
              GPU {gpu.index}
            </Link>
            <State state={gpu.state_text} reason={gpu.state_reason} />
            <Meter
              ratio={gpu.live?.utilization_ratio ?? null}
              text={percent(gpu.live?.utilization_ratio)}
              label={`Use of GPU ${gpu.index}`}
            />
            <span className="wr-quiet">{gpu.live && celsius(gpu.live.temperature_celsius)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Settings({ host }: { host: Host }) {
  const [asked, ask] = useState<Action | null>(null);
  return (
    <div className="wr-stack">
      <DefaultImage host={host} />
      <Panel title="Service" bare>
        <ul className="wr-decisions">
          {Object.values(ACTIONS).map((action) => (
            <li key={action.verb}>
              <span>{action.says}</span>
              <Button
                variant={action.final ? "light" : "default"}
                color={action.final ? "red" : undefined}
                onClick={() => ask(action)}
              >
                {action.name}
              </Button>
            </li>
          ))}
        </ul>
      </Panel>
      {asked && <ActionAsked hosts={[host]} action={asked} close={() => ask(null)} />}
    </div>
  );
}

interface Reading {
  host: Host;
  frames: Frames;
}

function Figures({ host, frames }: Reading) {
  const { live } = useReading(host, frames);
  return (
    <div className="wr-figures" style={{ marginBottom: 16 }}>
      <Figure label="tier" value={plain(host.tier)} />
      <Figure label="price" value={perHour(host.price_per_hour)} note={<TestMoney />} />
      <Figure label="CPU" value={<span data-testid="cpu">{percent(live?.cpu_ratio)}</span>} />
      <Figure label={`memory of ${bytes(host.memory_bytes)}`} value={bytes(live?.memory_used_bytes)} />
      <Figure
        label="bandwidth down / up"
        value={`${bitrate(host.bandwidth?.down_bps)} / ${bitrate(host.bandwidth?.up_bps)}`}
      />
      <Figure label="last seen" value={<When at={host.last_seen_at} />} />
    </div>
  );
}

function Live({ host, frames }: Reading) {
  const search = useSearch({ from: "/hosts/$hostId" });
  const navigate = useNavigate({ from: "/hosts/$hostId" });
  const span = spanNamed(search.span);
  const past = useQuery(eventsQuery({ subject: host.id, severity: "notice" }).first).data;
  const marks = useMemo(() => marksOf(past?.items ?? []), [past]);
  return (
    <Panel
      title="Readings"
      actions={
        <SpanControl
          span={span}
          onChange={(name) =>
            void navigate({
              to: "/hosts/$hostId",
              params: { hostId: host.id },
              search: { ...search, span: name },
              replace: true,
            })
          }
        />
      }
    >
      <HostCharts key={span.name} host={host} spanS={span.seconds} frames={frames} marks={marks} />
    </Panel>
  );
}

const GPU_COLUMNS: readonly Column<Gpu>[] = [
  { id: "index", name: "#", value: (gpu) => gpu.index },
  {
    id: "name",
    name: "Model",
    value: (gpu) => gpu.name,
    cell: (gpu) => (
      <Link className="wr-link" to="/gpus/$gpuId" params={{ gpuId: gpu.uuid }}>
        {plain(gpu.name.replace(/^NVIDIA /, ""))}
      </Link>
    ),
  },
  {
    id: "tier",
    name: "Tier",
    value: (gpu) => gpu.tier,
    cell: (gpu) => <span title={gpu.tier_reasons.join("\n")}>{plain(gpu.tier)}</span>,
  },
  state(
    "State",
    (gpu) => gpu.state_text,
    (gpu) => gpu.state_reason,
  ),
  {
    id: "utilization_ratio",
    name: "Use",
    width: 110,
    value: (gpu) => gpu.live?.utilization_ratio,
    cell: (gpu) => (
      <Meter
        ratio={gpu.live?.utilization_ratio ?? null}
        text={percent(gpu.live?.utilization_ratio)}
        label={`GPU ${gpu.index} use`}
      />
    ),
  },
  figure("memory_used_bytes", "Memory", (gpu) => gpu.live?.memory_used_bytes, bytes, {
    cell: (gpu) => `${bytes(gpu.live?.memory_used_bytes)} / ${bytes(gpu.memory_bytes)}`,
  }),
  figure("temperature_celsius", "Temp", (gpu) => gpu.live?.temperature_celsius, celsius),
  figure("power_watts", "Power", (gpu) => gpu.live?.power_watts, watts),
  {
    id: "pci_bus_id",
    name: "Bus",
    value: (gpu) => gpu.pci_bus_id,
    cell: (gpu) => <span className="wr-mono">{plain(gpu.pci_bus_id)}</span>,
  },
  identity((gpu) => gpu.uuid, { csv: "uuid" }),
  figure("memory_bytes", "Memory in all", (gpu) => gpu.memory_bytes, bytes, { optional: true }),
  events(
    (gpu) => `GPU ${gpu.index}`,
    (gpu) => gpu.uuid,
  ),
];

function Gpus({ host: known, frames }: Reading) {
  const host = useReading(known, frames);
  return (
    <Panel title={`GPUs (${host.gpus.length})`} bare>
      <DataTable
        of={["GPU", "GPUs"]}
        columns={GPU_COLUMNS}
        id={(gpu) => gpu.uuid}
        rows={host.gpus}
        file={host.name}
        empty={null}
      />
    </Panel>
  );
}

function BandwidthPanel({ host }: { host: Host }) {
  const may = mayOperate(useQuery(meQuery).data, host);
  const client = useQueryClient();
  const measure = useMutation({
    mutationFn: () => post(`/hosts/${encodeURIComponent(host.id)}/measure`),
    onSuccess: () => {
      notifications.show({ message: "The relay measures this host's bandwidth; the figures follow in some seconds." });
      void client.invalidateQueries({ queryKey: ["host", host.id] });
    },
  });
  return (
    <Panel
      title="Bandwidth"
      actions={
        may && (
          <Button variant="default" loading={measure.isPending} onClick={() => measure.mutate()}>
            Measure now
          </Button>
        )
      }
    >
      {host.bandwidth ? (
        <Facts
          rows={[
            ["Down", bitrate(host.bandwidth.down_bps)],
            ["Up", bitrate(host.bandwidth.up_bps)],
            ["Measured", <When key="w" at={host.bandwidth.measured_at} />],
            ["By", host.bandwidth.relays > 1 ? `${host.bandwidth.relays} relays, the median` : "one relay"],
          ]}
        />
      ) : (
        <Text size="sm" className="wr-quiet">
          Not measured yet: the relay does so shortly after a host joins.
        </Text>
      )}
      <BandwidthHistory host={host} />
      {measure.error && <ProblemNote error={measure.error} />}
      {may && (
        <Same method="POST" path={`/hosts/${host.id}/measure`} command={`windrow host measure ${called(host)}`} />
      )}
    </Panel>
  );
}

function Inventory({ host }: { host: Host }) {
  return (
    <Facts
      rows={known([
        ["CPUs", `${count(host.cpu_count)} × ${plain(host.cpu_model)}`],
        ["Memory", bytes(host.memory_bytes)],
        [
          "Disk",
          bytes(host.disk_bytes) +
            (host.live?.disk_used_bytes != null ? `, ${bytes(host.live.disk_used_bytes)} used` : ""),
        ],
        ["System", plain(host.os)],
        ["Kernel", plain(host.kernel)],
        ["GPU driver", plain(host.driver_version)],
        ["CUDA", plain(host.cuda_version)],
        ["Runtimes", listed(host.runtimes)],
      ])}
    />
  );
}

function Connection({ host }: { host: Host }) {
  return (
    <Facts
      rows={known([
        ["Link", <State key="l" state={host.link_state} />],
        ["Admin", <State key="a" state={host.admin_state} />],
        ["Verification", <State key="v" state={host.verify_state} />],
        ["Region", plain(host.region)],
        ["Country", plain(host.country)],
        ["Labels", plain(host.labels.join(", "))],
        ["Round trip", measured(host.rtt_ms, "ms", 2)],
        ["Address", plain(host.address)],
        ["Agent", plain(host.agent_version)],
        ["Joined", <When key="w" at={host.created_at} />],
        ["Listed", <When key="t" at={host.listed_at} />],
      ])}
    />
  );
}

const SLOT_COLUMNS: readonly Column<Host["slots"][number]>[] = [
  identity((slot) => slot.id, { name: "Slot" }),
  { id: "kind", name: "Kind", value: (slot) => slot.kind, cell: (slot) => slot.kind.toUpperCase() },
  state("State", (slot) => slot.state_text, undefined, {
    cell: (slot) => (
      <>
        <State state={slot.state_text} reason={slot.state_reason} />
        {slot.state_reason && (
          <Text size="xs" className="wr-quiet wr-break">
            {plain(slot.state_reason)}
          </Text>
        )}
      </>
    ),
  }),
  {
    id: "cluster_id",
    name: "Machine",
    value: (slot) => slot.cluster_id,
    cell: (slot) => <Subject id={slot.cluster_id} />,
  },
  figure("token", "Token", (slot) => slot.token, count),
  events(
    (slot) => `slot ${plain(slot.id)}`,
    (slot) => slot.id,
  ),
];

function Slots({ host }: { host: Host }) {
  return (
    <DataTable
      of={["slot", "slots"]}
      columns={SLOT_COLUMNS}
      id={(slot) => slot.id}
      rows={host.slots}
      file={host.name}
      empty={
        <Empty title="No slots" command={`windrow host show ${called(host)}`}>
          A slot is what is rented: a GPU, or a share of the CPUs of a host. They appear with the first inventory.
        </Empty>
      }
    />
  );
}
