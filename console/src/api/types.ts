// The shapes of the HTTP API as the console reads them. What the API describes comes from schema.ts, which is written
// from docs/openapi.json; by hand is what it streams, takes, or does not describe yet.
import type * as Schema from "./schema.ts";

export type Iso = string;
export type Decimal = string;

export type Condition = Schema.ConditionOut;
export type GpuLive = Schema.GpuLiveOut;
export type Gpu = Schema.GpuOut;
export type Slot = Schema.SlotOut;
export type HostLive = Schema.HostLiveOut;
export type Bandwidth = Schema.BandwidthOut;
export type Host = Schema.HostOut;
export type GpuRow = Schema.GpuRowOut;
export type GpuList = Schema.GpusOut;
export type EventRow = Schema.EventOut;
export type CommandRow = Schema.CommandOut;
export type UseCounts = Schema.UseCounts;
export type TierCounts = Schema.TierCounts;
export type Overview = Schema.OverviewOut;
export type Offer = Schema.OfferOut;
export type ClusterStep = Schema.StepOut;
export type Workload = Schema.WorkloadOut;
export type Cluster = Schema.ClusterOut;
export type Operation = Schema.OperationOut;
export type ReceiptLine = Schema.LineOut;
export type ReceiptTransfer = Schema.TransferOut;
export type Receipt = Schema.ReceiptOut;
export type JoinTokenRow = Schema.JoinTokenOut;
/** A request as the Master keeps it, or as a form holds it. */
export type KeptRequest = Partial<Schema.KeptRequestOut>;
/** What a stream of hosts carries: everything but the cards. */
export type HostSummary = Omit<Schema.HostOut, "gpus">;
export type TokenRow = Omit<Schema.TokenOut, "roles"> & { roles: Role[] };
export type { AuditOut as AuditRow, AuditHeadOut as AuditHead, AuditVerdictOut as AuditVerdict, SessionOut as SessionRow } from "./schema.ts";

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

export interface Explanation {
  decision: string;
  chosen: unknown;
  losers: { host: string; reason: string; score: number | null }[];
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
    /** What is not as it should be and fails nothing: a full disk, a clock that jumped, a bus that is alone. */
    conditions?: { code: string; detail: string; since: Iso | null }[];
    log_lag: number | null;
    duckdb_lag_s: number | null;
  };
  accesses: AccessHealth[];
}
