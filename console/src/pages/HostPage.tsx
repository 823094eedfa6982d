// One host: its state with the reason, what it has, what it costs, how it does right now, and what may be done to it.
import { Button, Group, Menu, Modal, SegmentedControl, Stack, Tabs, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { ApiProblem, post } from "../api/client.ts";
import { host as hostQuery, me as meQuery } from "../api/queries.ts";
import type { Gpu, Host } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { bitrate, bytes, celsius, count, decimal, percent, perHour, plain, watts } from "../format.ts";
import { BandwidthHistory } from "../parts/BandwidthHistory.tsx";
import { CommandList } from "../parts/CommandList.tsx";
import { Conditions } from "../parts/Conditions.tsx";
import { CsvButton } from "../parts/Csv.tsx";
import { DefaultImage } from "../parts/DefaultImage.tsx";
import { EventList } from "../parts/EventList.tsx";
import { useFrames, useReading, type Frames } from "../parts/frames.ts";
import { HostCharts, SPANS } from "../parts/HostCharts.tsx";
import { HostSays } from "../parts/HostSays.tsx";
import { ChevronIcon, PlusIcon } from "../parts/icons.tsx";
import { Empty, Facts, Figure, Id, Loaded, PageHead, Panel, ProblemNote, Reasons } from "../parts/page.tsx";
import { ProofPanel } from "../parts/Proof.tsx";
import { Same } from "../parts/Same.tsx";
import { HostStanding } from "../parts/Standing.tsx";
import { Meter, Simulated, State, TestMoney, When } from "../parts/state.tsx";
import { HostVerification } from "../parts/Verification.tsx";
import { quoted } from "../request.ts";

export function HostPage() {
  const { hostId } = useParams({ from: "/hosts/$hostId" });
  const query = useQuery(hostQuery(hostId));
  return <div className="wr-page"><Loaded query={query} lines={12}>{(host) => <HostView key={host.id} host={host} />}</Loaded></div>;
}

function HostView({ host }: { host: Host }) {
  const frames = useFrames(host.id);
  return (
    <>
      <PageHead
        above={<Link className="wr-link" to="/fleet">Fleet</Link>}
        title={plain(host.name)}
        beside={<><State state={host.headline} />{host.simulated && <Simulated />}<Text size="xs" className="wr-quiet"><Id id={host.id} /></Text></>}
        actions={<><Button component={Link} to="/clusters/new" search={{ host: host.id, ...(host.simulated ? { simulated: "true" } : {}), ...(host.gpus.length ? { hardware: "gpu" } : {}) } as never} leftSection={<PlusIcon />}>New cluster here</Button><Actions host={host} /></>}
      />
      {host.headline_reason && <Text size="sm" mt={-10} mb={12} className="wr-break wr-quiet">{plain(host.headline_reason)}</Text>}
      {host.conditions.length ? <Stack gap={6} mb={16}><Conditions found={host.conditions} /></Stack> : null}
      <Figures host={host} frames={frames} />
      <div className="wr-columns">
        <div className="wr-stack">
          <Live host={host} frames={frames} />
          {host.gpus.length > 0 && <Gpus host={host} frames={frames} />}
          <HostVerification host={host} />
          <Records host={host} />
        </div>
        <aside className="wr-stack">
          <ProofPanel host={host} />
          <Panel title={`Tier ${plain(host.tier)}: why`} label="Tier">
            {host.tier_reasons.length ? <Reasons reasons={host.tier_reasons} /> : <Text size="sm" className="wr-quiet">Not measured yet.</Text>}
          </Panel>
          <HostStanding host={host} />
          <BandwidthPanel host={host} />
          <Panel title="Inventory"><Inventory host={host} /></Panel>
          <DefaultImage host={host} />
          <HostSays hostId={host.id} />
          <Panel title="Connection"><Connection host={host} /></Panel>
        </aside>
      </div>
    </>
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
      <Figure label="bandwidth down / up" value={`${bitrate(host.bandwidth?.down_bps)} / ${bitrate(host.bandwidth?.up_bps)}`} />
      <Figure label="last seen" value={<When at={host.last_seen_at} />} />
    </div>
  );
}

function Live({ host, frames }: Reading) {
  const search = useSearch({ from: "/hosts/$hostId" });
  const navigate = useNavigate({ from: "/hosts/$hostId" });
  const span = SPANS.find((one) => one.name === search["span"]) ?? SPANS[1]!;
  return (
    <Panel
      title="Readings"
      actions={<SegmentedControl size="xs" aria-label="Span of time" value={span.name} onChange={(name) => void navigate({ to: "/hosts/$hostId", params: { hostId: host.id }, search: { ...search, span: name }, replace: true })} data={SPANS.map((one) => one.name)} />}
    >
      <HostCharts key={span.name} host={host} spanS={span.seconds} frames={frames} />
    </Panel>
  );
}

const GPU_CSV: readonly CsvColumn<Gpu>[] = [
  { name: "index", value: (gpu) => gpu.index },
  { name: "uuid", value: (gpu) => gpu.uuid },
  { name: "name", value: (gpu) => gpu.name },
  { name: "tier", value: (gpu) => gpu.tier },
  { name: "slot", value: (gpu) => gpu.slot_state },
  { name: "utilization_ratio", value: (gpu) => gpu.live?.utilization_ratio },
  { name: "memory_used_bytes", value: (gpu) => gpu.live?.memory_used_bytes },
  { name: "memory_bytes", value: (gpu) => gpu.memory_bytes },
  { name: "temperature_celsius", value: (gpu) => gpu.live?.temperature_celsius },
  { name: "power_watts", value: (gpu) => gpu.live?.power_watts },
  { name: "pci_bus_id", value: (gpu) => gpu.pci_bus_id },
];

function Gpus({ host: known, frames }: Reading) {
  const host = useReading(known, frames);
  return (
    <Panel title={`GPUs (${host.gpus.length})`} bare actions={<CsvButton of="the GPUs" name={`windrow-gpus-${host.name}`} columns={GPU_CSV} rows={() => host.gpus} />}>
      <div className="wr-scroll">
        <table className="wr-table wr-table-tight">
          <thead><tr><th>#</th><th>Model</th><th>Tier</th><th>Slot</th><th style={{ minWidth: 110 }}>Use</th><th className="num">Memory</th><th className="num">Temp</th><th className="num">Power</th><th>Bus</th><th>Id</th><th>Events</th></tr></thead>
          <tbody>
            {host.gpus.map((gpu) => (
              <tr key={gpu.uuid}>
                <td>{gpu.index}</td>
                <td><Link className="wr-link" to="/gpus/$gpuId" params={{ gpuId: gpu.uuid }}>{plain(gpu.name.replace(/^NVIDIA /, ""))}</Link></td>
                <td title={gpu.tier_reasons.join("\n")}>{plain(gpu.tier)}</td>
                <td><State state={gpu.slot_state} reason={gpu.unavailable_reason} /></td>
                <td><Meter ratio={gpu.live?.utilization_ratio ?? null} text={percent(gpu.live?.utilization_ratio)} label={`GPU ${gpu.index} use`} /></td>
                <td className="num">{bytes(gpu.live?.memory_used_bytes)} / {bytes(gpu.memory_bytes)}</td>
                <td className="num">{celsius(gpu.live?.temperature_celsius)}</td>
                <td className="num">{watts(gpu.live?.power_watts)}</td>
                <td className="wr-mono">{plain(gpu.pci_bus_id)}</td>
                <td><Id id={gpu.uuid} /></td>
                <td><Link className="wr-link" to="/events" search={{ subject: gpu.uuid } as never} aria-label={`Events of GPU ${gpu.index}`}>Events</Link></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function BandwidthPanel({ host }: { host: Host }) {
  const client = useQueryClient();
  const measure = useMutation({
    mutationFn: () => post(`/hosts/${encodeURIComponent(host.id)}/measure`),
    onSuccess: () => {
      notifications.show({ message: "The relay measures this host's bandwidth; the figures follow in some seconds." });
      void client.invalidateQueries({ queryKey: ["host", host.id] });
    },
  });
  return (
    <Panel title="Bandwidth" actions={<Button variant="default" loading={measure.isPending} onClick={() => measure.mutate()}>Measure now</Button>}>
      {host.bandwidth ? (
        <Facts rows={[["Down", bitrate(host.bandwidth.down_bps)], ["Up", bitrate(host.bandwidth.up_bps)], ["Measured", <When key="w" at={host.bandwidth.measured_at} />], ["By", host.bandwidth.relays > 1 ? `${host.bandwidth.relays} relays, the median` : <Id key="i" id={host.bandwidth.access_id} />]]} />
      ) : (
        <Text size="sm" className="wr-quiet">Not measured yet: the relay does so shortly after a host joins.</Text>
      )}
      <BandwidthHistory host={host} />
      {measure.error && <ProblemNote error={measure.error} />}
      <Same method="POST" path={`/hosts/${host.id}/measure`} command={`windrow host measure ${host.id}`} />
    </Panel>
  );
}

function Inventory({ host }: { host: Host }) {
  return (
    <Facts
      rows={[
        ["Processor", `${count(host.cpu_count)} × ${plain(host.cpu_model)}`],
        ["Memory", bytes(host.memory_bytes)],
        ["Disk", `${bytes(host.disk_bytes)}${host.live?.disk_used_bytes != null ? `, ${bytes(host.live.disk_used_bytes)} used` : ""}`],
        ["System", plain(host.os)],
        ["Kernel", plain(host.kernel)],
        ["GPU driver", plain(host.driver_version)],
        ["CUDA", plain(host.cuda_version)],
        ["Runtimes", host.runtimes.map(plain).join(", ") || "–"],
      ]}
    />
  );
}

function Connection({ host }: { host: Host }) {
  return (
    <Facts
      rows={[
        ["Link", <State key="l" state={host.link_state} />],
        ["Admin", <State key="a" state={host.admin_state} />],
        ["Verification", <State key="v" state={host.verify_state} />],
        ["Region", plain(host.region)],
        ["Relay", <Id key="i" id={host.access_id} />],
        ["Round trip", host.rtt_ms === null ? "–" : `${decimal(host.rtt_ms, 2)} ms`],
        ["Address", plain(host.address)],
        ["Agent", plain(host.agent_version)],
        ["Joined", <When key="w" at={host.created_at} />],
        ["Listed", <When key="t" at={host.listed_at} />],
      ]}
    />
  );
}

function Records({ host }: { host: Host }) {
  const search = useSearch({ from: "/hosts/$hostId" });
  const navigate = useNavigate({ from: "/hosts/$hostId" });
  const tab = search["tab"] ?? "events";
  return (
    <Panel bare label="Records">
      <Tabs value={tab} onChange={(next) => void navigate({ to: "/hosts/$hostId", params: { hostId: host.id }, search: { ...search, tab: next ?? "events" }, replace: true })} keepMounted={false}>
        <Tabs.List><Tabs.Tab value="events">Events</Tabs.Tab><Tabs.Tab value="commands">Commands</Tabs.Tab><Tabs.Tab value="slots">Slots ({host.slots.length})</Tabs.Tab></Tabs.List>
        <Tabs.Panel value="events"><EventList subject={host.id} follow /></Tabs.Panel>
        <Tabs.Panel value="commands"><CommandList hostId={host.id} /></Tabs.Panel>
        <Tabs.Panel value="slots"><Slots host={host} /></Tabs.Panel>
      </Tabs>
    </Panel>
  );
}

function Slots({ host }: { host: Host }) {
  if (host.slots.length === 0) return <Empty title="No slots" command={`windrow host show ${host.id}`}>A slot is what is rented: a whole GPU, or the processors of a host. They appear with the first inventory.</Empty>;
  return (
    <div className="wr-scroll">
      <table className="wr-table">
        <thead><tr><th scope="col">Slot</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col">Cluster</th><th scope="col" className="num">Token</th><th scope="col">Events</th></tr></thead>
        <tbody>
          {host.slots.map((slot) => (
            <tr key={slot.id}>
              <td><Id id={slot.id} /></td>
              <td>{slot.kind.toUpperCase()}</td>
              <td><State state={slot.state} reason={slot.unavailable} />{slot.unavailable && <Text size="xs" className="wr-quiet wr-break">{plain(slot.unavailable)}</Text>}</td>
              <td>{slot.cluster_id ? <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: slot.cluster_id }}>{plain(slot.cluster_id.slice(-8))}</Link> : "–"}</td>
              <td className="num">{count(slot.token)}</td>
              <td><Link className="wr-link" to="/events" search={{ subject: slot.id } as never} aria-label={`Events of slot ${plain(slot.id)}`}>Events</Link></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Action {
  verb: string;
  name: string;
  says: string;
  final?: boolean;
}

const ACTIONS: readonly Action[] = [
  { verb: "activate", name: "Activate", says: "New work may be placed here again." },
  { verb: "drain", name: "Drain", says: "What runs goes on; nothing new is placed here." },
  { verb: "maintenance", name: "Maintenance", says: "Nothing is placed here until it is activated again." },
  { verb: "quarantine", name: "Quarantine", says: "Nothing is placed here until the host was verified again. For hosts that behave wrongly." },
  { verb: "retire", name: "Retire", says: "This host leaves for good. It has to join again to come back.", final: true },
];

function Actions({ host }: { host: Host }) {
  const [asked, ask] = useState<Action | null>(null);
  const me = useQuery(meQuery);
  const may = me.data?.roles.some((role) => role === "operator" || role === "provider");
  if (!may) return null;
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target><Button variant="default" rightSection={<ChevronIcon size={12} />}>Actions</Button></Menu.Target>
        <Menu.Dropdown>{ACTIONS.map((action) => <Menu.Item key={action.verb} color={action.final ? "red" : undefined} onClick={() => ask(action)}>{action.name}</Menu.Item>)}</Menu.Dropdown>
      </Menu>
      {asked && <ActionAsked host={host} action={asked} close={() => ask(null)} />}
    </>
  );
}

function ActionAsked({ host, action, close }: { host: Host; action: Action; close: () => void }): ReactNode {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const act = useMutation({
    mutationFn: () => post(`/hosts/${encodeURIComponent(host.id)}/${action.verb}`, { reason }),
    onSuccess: () => {
      notifications.show({ message: `${action.name}: accepted for ${plain(host.name)}` });
      void client.invalidateQueries({ queryKey: ["host", host.id] });
      close();
    },
  });
  const ready = reason.trim() !== "" && (!action.final || typed === host.name);
  return (
    <Modal opened onClose={close} title={`${action.name} ${plain(host.name)}`}>
      <form onSubmit={(event) => { event.preventDefault(); if (ready) act.mutate(); }}>
        <Stack gap="sm">
          <Text size="sm">{action.says}</Text>
          <TextInput label="Reason" description="Kept in the audit record and shown beside the state." value={reason} onChange={(event) => setReason(event.currentTarget.value)} data-autofocus />
          {action.final && <TextInput label={`Type ${plain(host.name)} to confirm`} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} autoComplete="off" />}
          <Same method="POST" path={`/hosts/${host.id}/${action.verb}`} body={{ reason }} command={`windrow host ${action.verb} ${host.id} --reason ${quoted(reason)}`} />
          {act.error instanceof ApiProblem && <ProblemNote error={act.error} />}
          <Group justify="flex-end"><Button variant="default" onClick={close}>Cancel</Button><Button type="submit" color={action.final ? "red" : undefined} disabled={!ready} loading={act.isPending}>{action.name}</Button></Group>
        </Stack>
      </form>
    </Modal>
  );
}
