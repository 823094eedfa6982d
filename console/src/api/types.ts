// The shapes of the HTTP API as the console reads them: times RFC 3339, money decimal strings, absent is null.

export type Iso = string;
export type Decimal = string;

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  subject: string | null;
  retryable: boolean;
  request_id: string | null;
  reasons?: string[];
}

export type Role = "operator" | "provider" | "renter" | "auditor";

export interface Me {
  account: { id: string; name: string };
  roles: Role[];
  token: { id: string; name: string; expires_at: Iso | null };
  session?: { id: string; expires_at: Iso } | null;
  balance: { amount: Decimal; currency: string };
  master: { version: string; epoch: number; currency_is_test: boolean };
}

export interface Condition {
  code: string;
  detail: string;
  since: Iso | null;
}

export interface GpuLive {
  utilization_ratio: number | null;
  memory_used_bytes: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  clock_sm_hertz: number | null;
  at: Iso;
}

export interface Gpu {
  uuid: string;
  index: number;
  vendor: string;
  name: string;
  memory_bytes: number | null;
  tier: string | null;
  tier_reasons: string[];
  pci_bus_id: string | null;
  core_count: number | null;
  live: GpuLive | null;
  slot_state: string | null;
  unavailable_reason: string | null;
}

export interface Slot {
  id: string;
  host_id: string;
  gpu_uuid: string | null;
  kind: "gpu" | "cpu";
  state: string;
  unavailable: string | null;
  token: number;
  cluster_id: string | null;
}

export interface HostLive {
  cpu_ratio: number | null;
  memory_used_bytes: number | null;
  load1: number | null;
  rx_bps: number | null;
  tx_bps: number | null;
  disk_used_bytes: number | null;
  at: Iso;
}

export interface Bandwidth {
  up_bps: number | null;
  down_bps: number | null;
  measured_at: Iso;
  access_id: string | null;
}

/** What a stream of hosts carries: everything but the cards. */
export interface HostSummary {
  id: string;
  name: string;
  simulated: boolean;
  owner_account: string;
  admin_state: string;
  verify_state: string;
  link_state: string;
  headline: string;
  headline_reason: string | null;
  last_seen_at: Iso | null;
  access_id: string | null;
  region: string | null;
  address: string | null;
  rtt_ms: number | null;
  os: string | null;
  kernel: string | null;
  cpu_model: string | null;
  cpu_count: number | null;
  memory_bytes: number | null;
  disk_bytes: number | null;
  driver_version: string | null;
  cuda_version: string | null;
  runtimes: string[];
  conditions: Condition[];
  tier: string | null;
  tier_reasons: string[];
  bandwidth: Bandwidth | null;
  price_per_hour: Decimal | null;
  live: HostLive | null;
  agent_version: string | null;
  created_at: Iso;
  inventory_hash: string | null;
  slots: Slot[];
  version: number;
}

export interface Host extends HostSummary {
  gpus: Gpu[];
}

/** One card in the flat list of the whole fleet. */
export interface GpuRow {
  uuid: string;
  host_id: string;
  host_name: string;
  region: string | null;
  simulated: boolean;
  name: string;
  tier: string | null;
  memory_bytes: number | null;
  link_state: string;
  slot_state: string | null;
  price_per_hour: Decimal | null;
  cluster_id: string | null;
  utilization_ratio: number | null;
  memory_used_bytes: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  at: Iso | null;
}

export interface GpuList {
  items: GpuRow[];
  version: number;
}

export interface HostLiveFrame {
  at: Iso;
  host: Record<string, number | null>;
  gpus: Record<string, Record<string, number | null>>;
}

export interface Series {
  metric: string;
  gpu: string | null;
  unit: string;
  points: [number, number | null][];
}

export interface History {
  series: Series[];
  step_s: number;
}

export interface EventRow {
  id: string;
  number?: number;
  at: Iso;
  kind: string;
  subjects: string[];
  text: string;
  actor: string | null;
  fields: Record<string, unknown>;
}

export interface CommandRow {
  id: string;
  host_id: string;
  kind: string;
  subject?: string | null;
  state: string;
  step: string | null;
  progress: number | null;
  error: string | null;
  created_at: Iso;
  sent_at: Iso | null;
  done_at: Iso | null;
  result: unknown;
}

export interface UseCounts {
  total: number;
  idle: number;
  rented: number;
  faulty: number;
  offline: number;
  /** Nobody may have it just now: drained, under maintenance, or busy with another share of its host. */
  withheld: number;
}

export interface TierCounts {
  tier: string;
  simulated: boolean;
  hosts: UseCounts;
  gpus: UseCounts;
}

export interface Overview {
  at: Iso;
  hosts: UseCounts;
  gpus: UseCounts;
  simulated_hosts: number;
  simulated_gpus: number;
  tiers: TierCounts[];
  per_hour: { rented: Decimal; idle: Decimal };
  revenue: { scope: "all" | "own"; currency: string; test_money: boolean; today: Decimal; last_7_days: Decimal; days: { day: string; amount: Decimal }[] };
  accesses: number;
  events: EventRow[];
}

export interface Offer {
  tier: string;
  /** What one price buys: a GPU, or for `cpu` tiers a processor. */
  unit?: string;
  simulated?: boolean;
  gpus_free: number;
  free?: number;
  total?: number;
  hosts: number;
  price_per_hour: Decimal | null;
  suggestion: Decimal | null;
  suggestion_reason?: string;
  runtimes: string[];
  min_memory_bytes: number | null;
}

export interface ClusterRequest {
  name?: string;
  kind: "box" | "service";
  gpus?: number;
  gpu_model?: string;
  gpu_memory_bytes?: number;
  cpus?: number;
  memory_bytes?: number;
  image?: string;
  argv: string[];
  env?: Record<string, string>;
  ports?: number[];
  await_files?: boolean;
  host_id?: string;
  tier?: string;
  runtime?: "process" | "docker" | "simulated";
  /** Only simulated hosts serve; without it only real ones. */
  simulated?: boolean;
  max_price_per_hour?: Decimal;
}

/** A request as the Master keeps it: what was not said is null. */
export type KeptRequest = { [Name in keyof ClusterRequest]: ClusterRequest[Name] | null };

export interface Refusal {
  host_id: string | null;
  host_name: string | null;
  reason: string;
}

export interface ClusterPlan {
  fits: boolean;
  placement: { host_id: string; host_name: string; slots: string[]; tier: string | null; price_per_hour: Decimal | null }[];
  price_per_hour: Decimal | null;
  hold: Decimal | null;
  balance: Decimal | null;
  refusals: Refusal[];
}

export interface ClusterStep {
  at: Iso | null;
  name: string;
  progress: number | null;
  detail: string | null;
}

export interface Workload {
  id: string;
  host_id: string;
  host_name: string;
  phase: string;
  runtime: string;
  slots: string[];
  exit_code: number | null;
  ports: unknown;
  running_s: number | string | null;
}

export interface Cluster {
  id: string;
  name: string;
  kind: string;
  phase: string;
  reason: string | null;
  steps: ClusterStep[];
  workloads: Workload[];
  request: KeptRequest;
  tier: string | null;
  price_per_hour: Decimal | null;
  cost_so_far: Decimal | null;
  started_at: Iso | null;
  ended_at: Iso | null;
  created_at: Iso;
  rental_id: string | null;
  version: number;
}

export interface Operation {
  id: string;
  kind: string;
  state: "running" | "succeeded" | "failed";
  subject: string;
  error: string | null;
  created_at: Iso;
}

export interface Explanation {
  decision: string;
  chosen: unknown;
  losers: { host: string; reason: string; score: number | null }[];
}

export interface ReceiptLine {
  workload_id: string;
  host_id: string;
  running_seconds: Decimal;
  receipts: number;
  first_number: number | null;
  last_number: number | null;
  final: boolean;
  end_reason: string | null;
  amount?: Decimal;
}

export interface ReceiptTransfer {
  id: string;
  debit: string;
  credit: string;
  amount: Decimal;
  at: Iso;
  kind: string;
  memo?: string;
}

export interface Receipt {
  id: string;
  cluster_id: string;
  cluster_name: string;
  host_ids: string[];
  tier: string | null;
  price_per_hour: Decimal;
  currency: string;
  test_money: boolean;
  simulated?: boolean;
  state?: string;
  end_reason?: string | null;
  started_at: Iso | null;
  ended_at: Iso | null;
  running_seconds: Decimal;
  amount: Decimal;
  lines: ReceiptLine[];
  transfers: ReceiptTransfer[];
  balance_after: Decimal | null;
}

export interface TokenRow {
  id: string;
  name: string;
  roles: Role[];
  expires_at: Iso | null;
  created_at?: Iso | null;
  last_used_at?: Iso | null;
}

export interface JoinTokenRow {
  id: string;
  role: string;
  expires_at: Iso | null;
  created_at?: Iso | null;
  used_at?: Iso | null;
}

export interface JoinTokenMade {
  join_token: string;
  command: string | null;
  expires_at?: Iso | null;
}

export interface AccessHealth {
  access_id: string;
  region: string | null;
  workers: number | null;
  agents: number | null;
  load_permille: number | null;
  connected_since: Iso | null;
  queued_bytes: number | null;
}

export interface Health {
  master: {
    epoch: number;
    uptime_s: number;
    version?: string;
    store: string | { problem: string | null; commits: number; writes: number; failures: number; pending: number };
    streams?: number;
    problems?: string[];
    log_lag: number | null;
    duckdb_lag_s: number | null;
  };
  accesses: AccessHealth[];
}
