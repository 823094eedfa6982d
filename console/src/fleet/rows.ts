// The fleet as rows: merges lists and batches of the stream into one row per GPU or host without GPUs. Pure.

import type { GpuRow, HostSummary } from "../api/types.ts";
import { mayOperate } from "../identity/rights.ts";
import { compareTexts } from "../parts/format.ts";

export interface FleetRow {
  key: string;
  kind: "gpu" | "cpu";
  hostId: string;
  host: string;
  region: string | null;
  simulated: boolean;
  model: string;
  /** The number of a GPU on its host; null: a host without GPUs. */
  index: number | null;
  tier: string | null;
  memoryBytes: number | null;
  link: string;
  /** One of the five words of the Master. */
  state: string | null;
  /** The same as it is shown: of a GPU in parts with the number rented. */
  stateText: string | null;
  /** Why it, or a part of it, cannot be rented now. */
  why: string | null;
  price: string | null;
  clusterId: string | null;
  use: number | null;
  memoryUsedBytes: number | null;
  temperature: number | null;
  power: number | null;
  at: string | null;
}

/** Everything known of the fleet. `rows` keeps the identity of what did not change, so that a table can skip it. */
export interface Fleet {
  readonly gpus: ReadonlyMap<string, Stored<GpuRow>>;
  readonly hosts: ReadonlyMap<string, Stored<HostSummary>>;
  readonly rows: readonly FleetRow[];
  /** All hosts, with cards and without. */
  readonly hostCount: number;
}

interface Stored<T> {
  readonly value: T;
  readonly version: number;
  readonly row: FleetRow;
}

export const NO_FLEET: Fleet = { gpus: new Map(), hosts: new Map(), rows: [], hostCount: 0 };

export interface Batch {
  version: number;
  gpus: readonly GpuRow[];
  hosts: readonly HostSummary[];
  /** A whole list: what it does not name, and what is older than it, is gone. */
  whole: boolean;
}

/** The ids of the hosts about which somebody decides: all or the own ones. */
export const mayActOn = (fleet: Fleet, me: Parameters<typeof mayOperate>[0]): string[] =>
  [...fleet.hosts.values()].filter((one) => mayOperate(me, one.value)).map((one) => one.value.id);

export const memoryRatio = (row: FleetRow): number | null =>
  row.memoryUsedBytes === null || !row.memoryBytes ? null : row.memoryUsedBytes / row.memoryBytes;

/** In the order of names, numbers in them as numbers. A name is compared once, however many carry it. */
export function byName<T>(items: readonly T[], nameOf: (item: T) => string): T[] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return [...groups].sort((a, b) => compareTexts(a[0], b[0])).flatMap(([, group]) => group);
}

/** Apply batches in the order they came. An older version of a row never replaces a newer one. */
export function merge(fleet: Fleet, batches: readonly Batch[]): Fleet {
  if (batches.length === 0) return fleet;
  const gpus = new Map(fleet.gpus);
  const hosts = new Map(fleet.hosts);
  for (const batch of batches) {
    for (const gpu of batch.gpus) put(gpus, gpu.uuid, gpu, batch.version, gpuRow);
    for (const host of batch.hosts) {
      if (isGone(host)) drop(host.id, hosts, gpus);
      else put(hosts, host.id, host, batch.version, hostRow);
    }
    if (batch.whole) forget(gpus, hosts, batch);
  }
  return { gpus, hosts, ...lay(gpus, hosts) };
}

function put<T>(
  into: Map<string, Stored<T>>,
  key: string,
  value: T,
  version: number,
  toRow: (value: T) => FleetRow,
): void {
  const known = into.get(key);
  if (known && known.version > version) return;
  into.set(key, { value, version, row: toRow(value) });
}

function drop(hostId: string, hosts: Map<string, Stored<HostSummary>>, gpus: Map<string, Stored<GpuRow>>): void {
  hosts.delete(hostId);
  for (const [uuid, gpu] of gpus) if (gpu.value.host_id === hostId) gpus.delete(uuid);
}

function forget(gpus: Map<string, Stored<GpuRow>>, hosts: Map<string, Stored<HostSummary>>, batch: Batch): void {
  const named = new Set<string>([...batch.gpus.map((gpu) => gpu.uuid), ...batch.hosts.map((host) => host.id)]);
  for (const [uuid, gpu] of gpus) if (!named.has(uuid) && gpu.version <= batch.version) gpus.delete(uuid);
  for (const [id, host] of hosts) if (!named.has(id) && host.version <= batch.version) hosts.delete(id);
}

function isGone(host: HostSummary): boolean {
  return host.admin_state.toLowerCase() === "retired";
}

/** Real hosts come first: what is simulated only adds neighbours. Otherwise the order of arrival is kept. */
function lay(
  gpus: ReadonlyMap<string, Stored<GpuRow>>,
  hosts: ReadonlyMap<string, Stored<HostSummary>>,
): { rows: FleetRow[]; hostCount: number } {
  const withCards = new Set<string>();
  const real: FleetRow[] = [];
  const simulated: FleetRow[] = [];
  for (const gpu of gpus.values()) {
    withCards.add(gpu.value.host_id);
    (gpu.row.simulated ? simulated : real).push(gpu.row);
  }
  let hostCount = withCards.size;
  for (const host of hosts.values()) {
    if (withCards.has(host.value.id)) continue;
    hostCount += 1;
    (host.row.simulated ? simulated : real).push(host.row);
  }
  return { rows: real.concat(simulated), hostCount };
}

function gpuRow(gpu: GpuRow): FleetRow {
  return {
    key: gpu.uuid,
    kind: "gpu",
    hostId: gpu.host_id,
    host: gpu.host_name,
    region: gpu.region,
    simulated: gpu.simulated,
    model: gpu.name,
    index: gpu.index,
    tier: gpu.tier,
    memoryBytes: gpu.memory_bytes,
    link: gpu.link_state,
    state: gpu.state,
    stateText: gpu.state_text,
    why: gpu.state_reason,
    price: gpu.price_per_hour,
    clusterId: gpu.cluster_id,
    use: gpu.utilization_ratio,
    memoryUsedBytes: gpu.memory_used_bytes,
    temperature: gpu.temperature_celsius,
    power: gpu.power_watts,
    at: gpu.at,
  };
}

function hostRow(host: HostSummary): FleetRow {
  // A host without cards offers shares of its processors; it counts as rented when any of them is.
  const slot = host.slots?.find((one) => one.state_text === "rented") ?? host.slots?.[0];
  const cores = host.cpu_count === null ? "" : `${host.cpu_count} × `;
  return {
    key: host.id,
    kind: "cpu",
    hostId: host.id,
    host: host.name,
    region: host.region,
    simulated: host.simulated,
    model: `${cores}${host.cpu_model ?? "CPU"}`,
    index: null,
    tier: host.tier,
    memoryBytes: host.memory_bytes,
    link: host.link_state,
    state: slot?.state_text ?? null,
    stateText: slot?.state_text ?? null,
    why: slot?.state_reason ?? null,
    price: host.price_per_hour,
    clusterId: slot?.cluster_id ?? null,
    use: host.live?.cpu_ratio ?? null,
    memoryUsedBytes: host.live?.memory_used_bytes ?? null,
    temperature: null,
    power: null,
    at: host.live?.at ?? host.last_seen_at,
  };
}
