// The shapes of the HTTP API, written from docs/openapi.json by `python -m tests.architecture.api_types`.
// Do not change them here: change the Master's models, then `make openapi`.

/** Who accepts an invitation: a new user, or one with this address and password. code: of the second factor. */
export interface AcceptBody {
  secret: string;
  name: string;
  /** Mail address */
  address: string;
  password: string;
  code?: string | null;
}

/** The health of a relay, all of its workers together. */
export interface AccessHealthOut {
  access_id: string;
  /** For people: `relay` and its region, numbered where it has several */
  name: string;
  region: string;
  address: string;
  version: string;
  workers: number;
  agents: number;
  load_permille: number;
  shed_frames: number;
  queued_bytes: number;
  /** RFC 3339 in UTC, with milliseconds */
  connected_since: string;
}

/** One relay, all of its workers together. */
export interface AccessOut {
  id: string;
  /** For people: `relay` and its region, numbered where it has several */
  name: string;
  /** Null where nobody knows: gone before this Master started */
  region: string | null;
  /** What agents dial */
  address: string | null;
  version: string | null;
  /** Draining: it takes nobody new, and its agents are sent elsewhere */
  state: AccessState;
  workers: number;
  /** Connected through it now */
  agents: number;
  /** Of the fullest worker, of what it may carry */
  load_permille: number;
  /** The median of what its agents measured; null if nobody did */
  rtt_ms: number | null;
  /** Attached since, or gone since */
  since: string | null;
  /** Null unless people took it out of service */
  drained_at: string | null;
  drained_by: string | null;
  drain_reason: string | null;
  /** What `windrow up` calls it: it may be stopped as a test; null elsewhere */
  stop_name: string | null;
  /** Of the latest test that stopped it: `/stop` tells of that */
  stopped_at: string | null;
}

/** The state of an Access. Draining: it takes nobody new, and who is there is sent elsewhere. */
export type AccessState = "serving" | "draining" | "departed";

/** A new account. credit: test credits that it begins with. */
export interface AccountBody {
  name: string;
  roles: Role[];
  credit?: string;
}

/** An account, which pays and is paid. */
export interface AccountOut {
  id: string;
  name: string;
}

/** The state of an account: active, or suspended or deleted and unable to do anything. */
export type AccountState = "active" | "suspended" | "deleted";

/** One host, GPU or relay that has the trouble. */
export interface AffectedOut {
  /** Of the host or the region */
  name: string;
  detail: string;
  host_id: string | null;
  gpu_id: string | null;
  /** The index of the GPU */
  gpu: number | null;
  access_id: string | null;
  /** Somebody has it now */
  rented: boolean;
  simulated: boolean;
  since: string | null;
}

/** One host's link, as a map of the relays shows it. */
export interface AgentOut {
  id: string;
  name: string;
  simulated: boolean;
  link_state: string;
  /** Where it was heard last; null before the first time */
  access_id: string | null;
  /** Its round trip to that relay; null if it is not known */
  rtt_ms: number | null;
  /** Grows with each change of the host, as in `/hosts` */
  version: number;
}

/** The alerts that a user gets by mail without a channel. */
export interface AlertMailBody {
  level: MailLevel;
}

/** The alerts that a user gets by mail without a channel: none, the urgent ones (severity page), or all (page and ticket). */
export interface AlertMailOut {
  level: MailLevel;
}

/** An alert: one rule and one cause. */
export interface AlertOut {
  id: string;
  rule: string;
  /** The rule in words */
  rule_title: string;
  /** The id of what groups it: a host, relay, job, cluster, or `master` */
  cause: string;
  state: AlertState;
  severity: Severity;
  title: string;
  text: string;
  /** What to do about it */
  remedy: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  opened_at: string;
  /** When people were told; null: they were not */
  fired_at: string | null;
  acknowledged_at: string | null;
  acknowledged_by: string | null;
  silenced_until: string | null;
  resolved_at: string | null;
  /** How often it came back before it was resolved */
  flaps: number;
  assignee: string | null;
  /** GPUs, hosts or jobs that have the trouble now, with those held back */
  subject_count: number;
  /** The names of the first of them */
  subjects: string[];
  simulated: boolean;
}

/** The caller's own alert rules, and the built-in rules. */
export interface AlertRulesOut {
  items: OwnRuleOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
  built_in: BuiltInRuleOut[];
}

/** The state of an alert. PENDING: its duration is not over, and nobody was told. */
export type AlertState = "pending" | "firing" | "acknowledged" | "silenced" | "resolved";

/** Facts found in the program. `reason` is set if the program could not be read. */
export interface AnalysisOut {
  facts: FactOut[];
  reason: string | null;
  /** A guess by the model's name */
  gpu_memory_gb: number | null;
}

/** A file that outlives what made it. */
export interface ArtefactOut {
  id: string;
  owner_kind: string;
  owner_id: string;
  name: string;
  size_bytes: number;
  sha256: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  expires_at: string | null;
}

/** Who looks after an alert. */
export interface AssignBody {
  /** A name or an id; empty: nobody */
  assignee: string;
}

/** One cluster that a job had, or one run at a service. */
export interface AttemptOut {
  number: number;
  /** Empty: it is a run at a service */
  cluster_id: string;
  /** RFC 3339 in UTC, with milliseconds */
  began_at: string;
  /** When its command was first seen to run */
  started_at: string | null;
  ended_at: string | null;
  exit_code: number | null;
  /** How it ended, in words; null while it goes on */
  outcome: string | null;
  /** Kept of its log; null where it could not be had */
  log_bytes: number | null;
  log_truncated: boolean;
  /** Kept of the files that it changed, as a tar */
  files_bytes: number | null;
  files_truncated: boolean;
  /** Where it was bought; null: a host of this market */
  place: AttemptPlaceOut | null;
  /** A decimal amount of money */
  cost: string;
}

/** The place of an attempt that was bought: a machine, or a run at a service that runs code by itself. */
export interface AttemptPlaceOut {
  backend: string;
  /** A run at a service, and no machine of ours */
  service: boolean;
  /** Its type, such as m5.large */
  machine: string;
  region: string;
  zone: string | null;
  /** Its provider may take it back */
  spot: boolean;
  /** Of its provider, for all of it */
  price_per_hour: string;
  currency: string;
  purchase_id: string | null;
  run_id: string | null;
  /** `aws eu-central-1b, spot m5.large (0.041 USD an hour)` */
  text: string;
}

/** What a person has to look after, the most pressing first. */
export interface AttentionListOut {
  items: AttentionOut[];
}

/** One kind of trouble, with all that has it. */
export interface AttentionOut {
  /** Stable: faulty, hot, offline, … or `condition:` and its code */
  kind: string;
  title: string;
  remedy: string;
  severity: Severity;
  count: number;
  /** 6 at most */
  affected: AffectedOut[];
}

/** The end of the audit log at some time. */
export interface AuditHeadOut {
  number: number;
  /** The hash of this entry and all before it, hexadecimal */
  chain: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
}

/** An entry of the audit log: the actor, the action, the subject and the reason. */
export interface AuditOut {
  number: number;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  epoch: number;
  actor: string;
  action: string;
  /** The action in words */
  title: string;
  subject: string;
  reason: string;
  fields: Record<string, string>;
  /** The hash of this entry and all before it, hexadecimal */
  chain: string;
  /** Names by id, for the actor, the subject and the ids in reason and fields */
  names: Record<string, string>;
}

/** The result of a check of the audit log. */
export interface AuditVerdictOut {
  intact: boolean;
  entries: number;
  first_broken: number | null;
  problem: string | null;
  head: AuditHeadOut | null;
  anchor: AuditHeadOut | null;
}

/** The state of a GPU or slot, as everybody reads it. */
export type Availability = "rented" | "idle" | "paused" | "faulty" | "offline";

/** Availability of a place: whether it can be used now, and how long a program waits there before it starts. */
export interface AvailabilityOut {
  status: "available" | "limited";
  wait_seconds: WaitOut;
}

/** A backend. secrets are sealed and never shown; without them the provider's library looks for credentials in the Master's own environment. */
export interface BackendBody {
  name: string;
  /** One of GET /backend-kinds */
  kind: string;
  settings?: Record<string, unknown>;
  secrets?: Record<string, unknown>;
  caps: CapsBody;
  /** Added to the cost in the price of its hosts */
  margin_percent?: number;
}

/** The results of a check. */
export interface BackendCheckOut {
  findings: BackendFindingOut[];
}

/** One result of a check. */
export interface BackendFindingOut {
  /** credentials, permissions, quota, clock, image or reachability */
  what: string;
  good: boolean;
  said: string;
  way_out: string | null;
}

/** A kind of backend that this Master knows. */
export interface BackendKindOut {
  kind: string;
  title: string;
  /** How far the adapter was tried */
  level: LevelOutput;
  /** The same in a sentence */
  level_text: string;
  currency: string;
  /** What ends a machine when the Master is gone: it switches itself off, the agent goes, only a sweep, its time */
  ends_by: EndsBy;
  settings: KindFieldOut[];
  secrets: KindFieldOut[];
}

/** An account at a provider, what may be spent there, and what is. Its secrets are never shown. */
export interface BackendOut {
  name: string;
  kind: string;
  title: string;
  /** How far the adapter was tried */
  level: LevelOutput;
  /** The same in a sentence */
  level_text: string;
  /** What ends a machine when the Master is gone: it switches itself off, the agent goes, only a sweep, its time */
  ends_by: EndsBy;
  settings: Record<string, string>;
  has_secrets: boolean;
  caps: CapsOut;
  margin_percent: number;
  owed: OwedOut;
  /** Of this market, in the tags of all that it buys: keep it for a sweep */
  market_id: string;
  /** Of the last check */
  findings: BackendFindingOut[];
  checked_at: string | null;
  swept_at: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
}

/** The amount that an account can spend. */
export interface BalanceNowOut {
  /** A decimal amount of money */
  amount: string;
  currency: string;
}

/** A ledger account and what is in it. */
export interface BalanceOut {
  account: string;
  /** A decimal amount of money */
  amount: string;
  currency: string;
}

/** The measured bandwidth between a host and one relay or several, the median of them, in bits a second. */
export interface BandwidthOut {
  up_bps: number | null;
  down_bps: number | null;
  /** RFC 3339 in UTC, with milliseconds */
  measured_at: string;
  access_id: string | null;
  /** How many relays measured it */
  relays: number;
}

/** The result of one round by the relays of one region, the median of them, in bits a second. */
export interface BandwidthRoundOut {
  region: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  up_bps: number;
  down_bps: number;
  /** How many relays of the region measured it */
  relays: number;
}

/** The measurements of a host's line. */
export interface BandwidthRoundsOut {
  host_id: string;
  /** The newest first */
  rounds: BandwidthRoundOut[];
}

/** A figure of a GPU that a test rental measured from inside. */
export interface BenchmarkOut {
  name: string;
  /** The name for people */
  title: string;
  value: number;
  unit: string;
  /** RFC 3339 in UTC, with milliseconds */
  measured_at: string;
  /** The test rental, as in `/hosts/{id}/proof` */
  proof_id: string;
}

/** The host that is to run a resource's work. */
export interface BindingBody {
  /** Its id */
  host: string;
  /** It takes no work but its owner's, who alone can ask for it */
  dedicated?: boolean;
}

/** The host that runs a resource's work, its status and its price. */
export interface BindingOut {
  resource_id: string;
  declared_status: "available" | "busy" | "maintenance" | "unavailable";
  /** The sterner of the declared one and what the host shows */
  status: "available" | "busy" | "maintenance" | "unavailable";
  /** Id of the host; null: nothing runs on it */
  host: string | null;
  host_name: string | null;
  /** Its owner's alone */
  dedicated: boolean;
  /** Clusters on it */
  running: number;
  reason: string | null;
  /** In USD; null: nobody knows */
  price_per_hour: string | null;
  price_source: string | null;
}

/** The ways by which a renter enters a box; each is null where it is not, also for what is no box. */
export interface BoxOut {
  /** Where its SSH server listens, for the keys of the request */
  ssh_port: number | null;
  /** Where Jupyter listens */
  notebook_port: number | null;
  /** With which Jupyter is opened: ?token= in its address */
  notebook_token: string | null;
}

/** A rule that is built in. */
export interface BuiltInRuleOut {
  code: string;
  severity: Severity;
  title: string;
  remedy: string;
  /** Who is told */
  audience: string;
  /** What raises it */
  signal: string;
}

/** The health of the bus that brings wake-ups to the other processes. */
export interface BusHealthOut {
  kind: string;
  is_well: boolean;
  /** Each process by `id` and what it says of itself */
  peers: (Record<string, string>)[];
}

/** The most that the machines of a project may cost at a backend; one of the two is given. */
export interface BuyerBody {
  /** Spent on a day (UTC) */
  per_day?: string | null;
  /** Spent in all */
  in_all?: string | null;
}

/** A project whose work may have machines bought, in the currency of the backend's caps. */
export interface BuyerOut {
  account_id: string;
  /** The name of the project */
  account: string | null;
  /** A decimal amount of money */
  per_day: string | null;
  /** A decimal amount of money */
  in_all: string | null;
  /** A decimal amount of money */
  spent_today: string;
  /** A decimal amount of money */
  spent_in_all: string;
  /** Its machines that are, or may be, paid for now */
  living: number;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
}

/** The most that may be bought; null: no such cap. At least one cap of money is given. */
export interface CapsBody {
  /** ISO 4217; null: as the provider's prices */
  currency?: string | null;
  /** Price of an hour of all machines together */
  per_hour?: string | null;
  /** Spent on a day (UTC) */
  per_day?: string | null;
  /** Spent since the backend was added */
  in_all?: string | null;
  /** Machines at once */
  machines?: number | null;
  /** Their vCPUs together */
  vcpus?: number | null;
}

/** Caps in place of all that were set. margin_percent: null keeps the present one. */
export interface CapsChangeBody {
  /** ISO 4217; null: as the provider's prices */
  currency?: string | null;
  /** Price of an hour of all machines together */
  per_hour?: string | null;
  /** Spent on a day (UTC) */
  per_day?: string | null;
  /** Spent since the backend was added */
  in_all?: string | null;
  /** Machines at once */
  machines?: number | null;
  /** Their vCPUs together */
  vcpus?: number | null;
  margin_percent?: number | null;
}

/** The most that may be bought; null: no such cap. */
export interface CapsOut {
  currency: string;
  /** A decimal amount of money */
  per_hour: string | null;
  /** A decimal amount of money */
  per_day: string | null;
  /** A decimal amount of money */
  in_all: string | null;
  machines: number | null;
  vcpus: number | null;
}

/** One GPU that an attempt had: a minute before, during and a minute after it. */
export interface CardImpactOut {
  host_id: string;
  host_name: string;
  gpu: string;
  before: StretchOut;
  during: StretchOut;
  after: StretchOut;
  series: CardSeriesOut[];
}

/** A line of a chart. */
export interface CardSeriesOut {
  metric: string;
  unit: string;
  points: ([number, number | null])[];
}

/** The result of the newest challenge of one card, with the question and the answer. */
export interface CardVerificationOut {
  gpu_uuid: string;
  /** Shared by the cards that were challenged together */
  verification_id: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  /** passed, failed, unprovable or unfinished */
  outcome: string;
  detail: string;
  reasons: string[];
  /** As its OpenCL driver names it */
  device: string | null;
  driver: string | null;
  /** From the challenge sent to the commitment in, by the Master */
  span_ms: number | null;
  /** What that says; observed: its class is not calibrated */
  pace: string | null;
  /** A commitment later than that is refused; null where not kept */
  bound_ms: number | null;
  /** Whether the bound is measured of its class */
  calibrated: boolean | null;
  /** What the times of its class were measured with */
  times: string | null;
  /** Beside the others of its class: alone, untold, together, apart */
  together: string | null;
  /** Of its class that were challenged in the same second, it counted */
  cards: number | null;
  /** proved, wrong_memory, short_memory, late_memory or untold; null: it was not asked to fill it */
  memory: string | null;
  /** That its host says it has */
  memory_claimed_bytes: number | null;
  /** That were written before any place was looked at */
  memory_filled_bytes: number | null;
  /** Places looked at, 32 bytes each */
  memory_probes: number | null;
  /** Of these, how many did not hold what was written */
  memory_wrong: number | null;
  /** From asking until all was written, by the Master */
  memory_span_ms: number | null;
  agent_version: string | null;
  master_version: string | null;
  nonce: string | null;
  /** Rows and columns of the matrices */
  size: number | null;
  rounds: number | null;
  openings: number | null;
  /** Round, row and column of each entry that was looked at */
  places: number[][];
  /** What was committed to, one a round */
  roots: string[];
}

/** What holds a card back. The order is that in which they are looked for: the first that fits explains the rest. */
export type Cause = "hot" | "power_capped" | "idle" | "pcie_bound" | "cpu_bound" | "data_starved" | "memory_nearly_full";

/** The sums of one combination of keys. */
export interface CellOut {
  keys: KeyOut[];
  /** By measure: money as a decimal text, hours of GPUs, a ratio, or a count; null of no time */
  values: Record<string, string | null>;
  /** The path of the rows that these are the sums of */
  rows: string;
}

/** The certificate and keys that a host or a relay gets when it joins or renews; keys in base64. */
export interface CertificateOut {
  id: string;
  generation: number;
  certificate_pem: string;
  ca_pem: string;
  master_public: string;
  regions: SignedOut;
  /** RFC 3339 in UTC, with milliseconds */
  not_after: string;
  trunk_addresses: string[];
  /** True for a machine that this market bought at a provider */
  is_bought: boolean;
}

/** A new channel. */
export interface ChannelBody {
  name: string;
  /** Alerts of less are not sent */
  min_severity?: Severity;
  /** Rules of alerts, such as host.*; empty: all */
  rules?: string[];
  quiet?: QuietBody | null;
  /** What can wait goes together, as often; not of a webhook */
  digest_minutes?: number | null;
  is_enabled?: boolean;
  kind: ChannelKind;
  /** A mail address, or a URL */
  target: string;
  /** Whose alerts it gets */
  scope?: Scope;
}

/** The way of a channel. Apprise knows Slack, Teams, ntfy, PagerDuty and others. */
export type ChannelKind = "mail" | "webhook" | "apprise";

/** A channel, and the secret by which its receiver verifies messages. */
export interface ChannelMadeOut {
  channel: ChannelOut;
  /** Shown this once; null: no webhook */
  secret: string | null;
}

/** A channel. */
export interface ChannelOut {
  id: string;
  name: string;
  kind: ChannelKind;
  scope: Scope;
  /** `operators`, or the id of a project, an organisation or a user */
  owner: string;
  /** Of a URL the host alone */
  target: string;
  min_severity: Severity;
  rules: string[];
  quiet: QuietOut | null;
  digest_minutes: number | null;
  is_enabled: boolean;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  created_by: string;
  rotated_at: string | null;
}

/** The settings of a channel that can be changed. */
export interface ChannelSettingsBody {
  name: string;
  /** Alerts of less are not sent */
  min_severity?: Severity;
  /** Rules of alerts, such as host.*; empty: all */
  rules?: string[];
  quiet?: QuietBody | null;
  /** What can wait goes together, as often; not of a webhook */
  digest_minutes?: number | null;
  is_enabled?: boolean;
}

/** A checkpoint that exists. */
export interface CheckpointOut {
  step: number;
  files: number;
  size_bytes: number;
  /** RFC 3339 in UTC, with milliseconds */
  saved_at: string;
}

/** The best host. */
export interface ChosenOut {
  host_id: string;
  host_name: string;
  slots: string[];
  tier: string;
  runtime: string;
  image: string | null;
  /** A decimal amount of money */
  price_per_hour: string;
  /** What there is to know of this way there; empty: nothing */
  note: string;
  score: number | null;
  terms: Record<string, number>;
}

/** How to have the command `windrow` on another machine. */
export interface CliOut {
  /** A line for a shell of Linux or macOS; null: this Master serves no HTTPS */
  command: string | null;
  /** The Master's address in it */
  url: string;
  /** No other machine reaches that address */
  this_machine_only: boolean;
  /** Why a link here may not open for others, and what to do; null: it does */
  link_note: string | null;
}

/** A cluster, and the operation that makes or ends it. */
export interface ClusterAcceptedOut {
  operation: OperationOut;
  cluster: ClusterOut;
}

/** A cluster to create: its hardware and its program. `simulated` asks for simulated hosts; without it only real ones serve. */
export interface ClusterBody {
  /** For one pull of the image on each host, sealed to it; kept nowhere and never shown again */
  registry_login?: RegistryLoginBody | null;
  /** Buy a machine at this backend (any: at each) where there is no room here */
  backend?: string | null;
  /** With backend: cost, also where the places here are dearer; speed, what starts first */
  optimize?: "cost" | "speed" | null;
  /** With backend: spot machines first, which their provider may take back */
  spot?: boolean;
  /** Name; default: generated */
  name?: string;
  /** The command, a word each */
  argv?: string[];
  /** One program, without NUL, in place of the image's ENTRYPOINT and CMD; empty: none */
  entrypoint?: string | null;
  /** The environment of the command */
  env?: Record<string, string>;
  /** Secret of the project and the variable that holds it, as NAME or NAME=VARIABLE */
  secrets?: string[];
  /** Secret of the project that holds the login of the image's registry */
  registry_secret?: string | null;
  /** Wait for a folder of files before the start */
  await_files?: boolean;
  /** Use simulated hosts; default: real ones only */
  simulated?: boolean;
  /** Volume and its path, as NAME:/path (:ro = read-only) */
  volumes?: string[];
  /** Whole GPUs, or slices of the profile `slice` */
  gpus?: number;
  /** Such as H100 */
  gpu_model?: string | null;
  /** Of each GPU, at least */
  gpu_memory_bytes?: number | null;
  /** Number of CPUs */
  cpus?: number;
  /** Main memory */
  memory_bytes?: number | null;
  /** Such as 2g.20gb or mps.50 */
  slice?: string | null;
  /** Container image; default: a plain process on your own host, elsewhere the host's default image */
  image?: string | null;
  /** Only this tier, for example h100/A */
  tier?: string | null;
  /** docker, process or simulated; default: the Master chooses */
  runtime?: "process" | "docker" | "simulated" | null;
  /** Only this host */
  host_id?: string | null;
  /** Highest price per hour, for all hosts together */
  max_price_per_hour?: string | null;
  /** Only hosts whose relay is in this region */
  region?: string | null;
  /** REGION or VOLUME, then :MS; only hosts in it, or within MS milliseconds (0 to 1000, else 30) */
  near?: string | null;
  /** Two capital letters (DE); only hosts whose owners say so */
  country?: string | null;
  /** Only hosts of this project, by its name or id */
  provider_id?: string | null;
  /** WORD or KEY=VALUE; only hosts with this label */
  labels?: string[];
  /** Mbit/s, measured each way, at least */
  min_bandwidth_mbps?: number | null;
  /** Reliability of the host in per cent, at least */
  min_reliability_percent?: number | null;
  /** Only hosts whose hardware was checked */
  verified?: boolean;
  /** Longest running time */
  max_duration_seconds?: number | null;
  /** End it before it costs more than this */
  budget?: string | null;
  /** box, service, gang, ray or dask */
  kind?: ClusterKind;
  /** Ports of the service */
  ports?: number[];
  /** Number of hosts (gang, ray, dask); each provides these resources */
  hosts?: number;
  /** Restart all hosts' programs when one is lost */
  restart_members?: boolean;
  /** Public keys that may log in to a machine */
  ssh_keys?: string[];
  /** Start Jupyter on the machine */
  notebook?: boolean;
  /** End it when unused this long: no command, file transfer or tunnel */
  idle_seconds?: number | null;
  /** End it after this long without `POST /clusters/{id}/renew` */
  client_lease_s?: number | null;
  /** Wait in the queue this long where there is no place now; else it is refused */
  wait_seconds?: number | null;
}

/** The kind of a cluster: a BOX to work in, a SERVICE with ports, or, over one or more hosts, a GANG whose members run the same command and know each other, a RAY or a DASK cluster. */
export type ClusterKind = "box" | "service" | "gang" | "ray" | "dask";

/** A cluster with its workloads. */
export interface ClusterOut {
  id: string;
  name: string;
  /** The name of its forwarded ports on a renter's machine */
  forward_host: string;
  account_id: string;
  kind: string;
  phase: string;
  reason: string | null;
  /** While it runs: which of its hosts does not answer now */
  problem: string | null;
  /** Its place in the queue; null in lists, and once it does not wait */
  queue: QueuedOut | null;
  /** Places elsewhere that were tried; null in lists */
  tries: TryOut[] | null;
  steps: StepOut[];
  workloads: WorkloadOut[];
  request: KeptRequestOut;
  /** Of a service, by port: where anybody who knows the address reaches it. Tell it as you like */
  urls: Record<string, string>;
  traffic: TrafficOut;
  /** Null where there are not several hosts */
  network: NetworkOut | null;
  /** Null while it waits for its place */
  tier: string | null;
  /** A decimal amount of money */
  price_per_hour: string | null;
  /** Of all its runs */
  cost_so_far: string | null;
  /** Of its present run, from its start to its stop */
  started_at: string | null;
  ended_at: string | null;
  /** When its duration or its budget ends it; null: neither does */
  ends_at: string | null;
  /** When it ends unless its client renews; null: it goes on without a client */
  client_lease_ends_at: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** Of its present run, or of the last one */
  rental_id: string | null;
  /** Of its block of ports on its hosts; null where it has none */
  first_port: number | null;
  /** How often members were replaced */
  restarts: number;
  /** Whether to start it again takes its image's registry login */
  needs_login: boolean;
  version: number;
}

/** A code that the app shows. */
export interface CodeBody {
  /** Of the app, or a recovery code */
  code: string;
}

/** Recovery codes, shown this once; each works once. */
export interface CodesOut {
  recovery_codes: string[];
}

/** A command to a host and what became of it. */
export interface CommandOut {
  id: string;
  host_id: string;
  /** Null for a host that is gone */
  host_name: string | null;
  kind: string;
  subject: string | null;
  state: string;
  step: string | null;
  /** From 0 to 1 */
  progress: number | null;
  error: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  sent_at: string | null;
  done_at: string | null;
  result: Record<string, unknown> | null;
}

/** A line for the alert's history. */
export interface CommentBody {
  text: string;
}

/** One thing that is not as it should be on a host or in the market itself. */
export interface ConditionOut {
  /** Stable; with `:` and the id of a GPU where it is about one */
  code: string;
  /** What is wrong, in a few words */
  title: string;
  /** The GPU that it is about, by its number on the host: `GPU 5` */
  about: string | null;
  detail: string;
  /** `page`: look at once; `ticket`: within days; `info`: never */
  severity: Severity;
  /** What to run and where to look */
  remedy: string;
  /** The page about it, in the source tree */
  runbook: string;
  /** RFC 3339 in UTC, with milliseconds */
  since: string;
}

/** Limits of a task intent of Model Studio. preferred_provider prefers; required_provider refuses all others. */
export interface ConstraintsBody {
  max_cost_per_hour_usd?: number | null;
  preferred_provider?: string | null;
  required_provider?: string | null;
  required_gpu_count?: number | null;
}

/** Estimated cost of the run; 8 of 10 runs cost between `low` and `high`. Without a duration these are null. */
export interface CostOut {
  /** A decimal amount of money */
  hourly: string;
  total: string | null;
  low: string | null;
  high: string | null;
  currency: string;
  /** The day of the price; null: today's */
  as_of: string | null;
  source: string;
  confidence: "high" | "medium" | "low";
}

/** The samples of a failover test's agents, counted in the log on the disk. */
export interface CountedOut {
  /** Acknowledged and in the log, from a minute before the kill on */
  acked_samples: number;
  acked_batches: number;
  /** Acknowledged and not in the log */
  lost_samples: number;
  lost_batches: number;
  /** Records of evidence that agents hold for acknowledged, likewise */
  lost_evidence: number;
  /** Never acknowledged, and told by their agent to be gone */
  given_up_batches: number;
  /** Between two batches of one agent, ended after the kill */
  longest_gap_s: number | null;
  /** The median before the kill */
  usual_gap_s: number | null;
}

/** Test credits for an account. */
export interface CreditBody {
  amount: string;
}

/** The earnings of one UTC day. */
export interface DayAmount {
  day: string;
  amount: string;
}

/** The earnings of one UTC day. */
export interface DayEarnedOut {
  day: string;
  /** A decimal amount of money */
  amount: string;
  occupancy_ratio: number | null;
}

/** The cost of one UTC day. */
export interface DaySpentOut {
  day: string;
  /** A decimal amount of money */
  amount: string;
}

/** The image that runs on a host where a request names none; null: none. */
export interface DefaultImageBody {
  image: string | null;
}

/** A deleted project. expires_at: until then it can be restored. */
export interface DeletedProjectOut {
  id: string;
  name: string;
  /** RFC 3339 in UTC, with milliseconds */
  deleted_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
}

/** One message on its way to one channel. */
export interface DeliveryOut {
  id: string;
  /** `mail:` and a user's id: the mail that needs no channel */
  channel_id: string;
  /** The same at each try */
  message_id: string;
  alert_id: string;
  kind: MessageKind;
  severity: Severity;
  title: string;
  /** Messages of one object go in order */
  object: string;
  state: DeliveryState;
  tries: number;
  last_answer: string | null;
  /** The next try; null: none */
  due_at: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  first_at: string;
  done_at: string | null;
}

/** HELD waits for the end of quiet hours or for a digest, WAITING for its turn or its next try. */
export type DeliveryState = "waiting" | "held" | "sent" | "given_up";

/** The codes of a device that wants to be signed in, as RFC 8628 names them. */
export interface DeviceBegunOut {
  /** The secret with which the device asks for its token */
  device_code: string;
  /** The code that a person compares and approves */
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  /** Seconds */
  expires_in: number;
  /** Seconds between two questions for the token */
  interval: number;
}

/** The name of a device, for the person who approves it. */
export interface DeviceBody {
  name?: string;
}

/** A device that waits to be approved. */
export interface DeviceOut {
  /** The name that the device gives itself */
  name: string;
  /** The network address that it asks from */
  address: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  /** The project that it will act in: the caller's */
  project: string;
  /** The roles that it will have: the caller's */
  roles: Role[];
}

/** The secret of a device. */
export interface DeviceTokenBody {
  device_code: string;
}

/** What a month brought for one host, GPU, project or model. */
export interface EarnedOut {
  id: string;
  name: string;
  host_id: string | null;
  simulated: boolean;
  /** A decimal amount of money */
  amount: string;
  /** A decimal amount of money */
  fees: string;
  /** By day of the month, as `days` has them */
  days: string[];
  /** Null where its GPUs are not here any more */
  times: GpuTimesOut | null;
}

/** A month's earnings, without the platform's share. Amounts of the rows add up to those of the days, and these to `earned`. */
export interface EarningsOut {
  month: string;
  /** Those that can be asked for, the latest first */
  months: string[];
  by: string;
  scope: string;
  currency: string;
  test_money: boolean;
  /** A decimal amount of money */
  earned: string;
  /** 0 in months that have passed */
  today: string;
  /** Earned by what runs now */
  per_hour: string;
  /** The platform's share, in sums of all projects */
  fees: string;
  days: DayEarnedOut[];
  times: GpuTimesOut;
  rows: EarnedOut[];
}

/** What ends a machine when its Master is gone. */
export type EndsBy = "power-off" | "uninstall" | "sweep" | "time";

/** When an entry is expected to start: 80 % of such intervals hold. */
export interface EstimateOut {
  /** RFC 3339 in UTC, with milliseconds */
  start_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  low_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  high_at: string;
  /** `14:20 UTC ± 6 min` */
  words: string;
}

/** Something that happened. */
export interface EventOut {
  id: string;
  /** Grows by one with each event */
  number: number;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  kind: string;
  /** Its kind in a few words */
  title: string;
  /** `info` is everyday work; `error`: something is broken or lost */
  severity: EventSeverity;
  /** The ids of what it is about */
  subjects: string[];
  /** Names by id, for the subjects and the actor; only names that the caller may see */
  names: Record<string, string>;
  /** With names in the place of ids */
  text: string;
  actor: string | null;
  fields: Record<string, unknown>;
}

/** How much an event matters. */
export type EventSeverity = "info" | "notice" | "warning" | "error";

/** One chart that shows a finding. */
export interface EvidenceOut {
  metric: string;
  label: string;
  unit: string;
  points: ([number, number | null])[];
  /** The line that it is held against, in the unit */
  limit: number | null;
}

/** One more command to run beside the work. */
export interface ExecBody {
  argv: string[];
}

/** The reasons for the place of a job or a machine, in sentences, with what they are made of. */
export interface ExplainOut {
  id: string;
  /** job or machine */
  kind: string;
  name: string;
  /** Of the job, or the phase of the machine */
  state: string;
  /** When its place was chosen; null: it has none */
  decided_at: string | null;
  /** Why it runs where it runs, from the record of that decision */
  here: string[];
  /** Why not on the host that was asked about */
  not_there: string | null;
  /** Whether `not_there` is from the record; false: from a look at the host as it is now */
  is_recorded: boolean;
  /** The outcome by the weights that were asked about */
  otherwise: string | null;
  /** Why it still waits, and what holds the hosts that would do */
  not_yet: string[];
  /** What would have to change, so that it has a place now */
  changes: string[];
  /** The record; null: none is kept */
  decision: ExplanationOut | null;
  /** Null: it does not wait */
  queue: QueuedOut | null;
  /** Why it finds no place now; null: there is one */
  refusal: RefusalOut | null;
}

/** The reasons for the place of a cluster, from the record of that decision. */
export interface ExplanationOut {
  /** The same in a sentence */
  decision: string;
  weights: WeightsOut;
  chosen: ChosenOut | null;
  /** Beside the best one, of several hosts */
  others_chosen: PlacedOut[];
  /** The best of those that were looked at, best first */
  losers: LoserOut[];
  /** How many more were looked at, by what was said of them */
  others: Record<string, number>;
}

/** The new longest running time of a cluster. */
export interface ExtendBody {
  /** Since its start, not from now */
  max_duration_seconds: number;
}

/** One thing that the program says. */
export interface FactOut {
  name: string;
  value: string;
  /** Counted from 1 */
  line: number;
  confidence: "high" | "medium" | "low";
}

/** The present password, and a code of the app or a recovery code. */
export interface FactorOffBody {
  password: string;
  /** Of the app, or a recovery code */
  code: string;
}

/** The secret of an authenticator app, shown this once. */
export interface FactorOut {
  secret: string;
  /** The content of a QR code for the app */
  uri: string;
}

/** The place of an entry in numbers, compared in this order. */
export interface FactorsOut {
  /** 0 urgent, 1 normal, 2 low, 3 spot: lower is first */
  priority_class: number;
  /** From the organisation down: whether it holds its guaranteed share, or has none, which is later */
  is_above: boolean[];
  /** From the organisation down: its recent use by its weight; less is first */
  usage: number[];
  /** Put at the top of its project */
  is_top: boolean;
  /** `priority` and `age` together; more is first */
  points: number;
  /** From -100 to 100 */
  priority: number;
  /** Points for the time that it has waited: 200 for a day */
  age: number;
  /** RFC 3339 in UTC, with milliseconds */
  submitted_at: string;
}

/** The rules of a share. A field that is left out has its default. */
export interface FairShareBody {
  /** Guaranteed, parts per million of the installation */
  guarantee_ppm?: number;
  /** The most at once, parts per million of the installation */
  ceiling_ppm?: number;
  /** Among those beside it: 2 is due twice as much */
  weight?: number;
  /** May have more than the guarantee while others leave it */
  is_borrowing?: boolean;
  /** Jobs may have the class urgent. Operators grant it */
  may_use_urgent?: boolean;
}

/** The share of an organisation or a project, and how it stands in the queue. */
export interface FairShareOut {
  id: string;
  level: NodeLevel;
  name: string;
  /** The node above it */
  parent_id: string | null;
  guarantee_ppm: number;
  ceiling_ppm: number;
  weight: number;
  is_borrowing: boolean;
  may_use_urgent: boolean;
  /** Held now, parts per million of the installation */
  held_ppm: number;
  /** Held on average of late, parts per million of the installation: what is 7 days old counts half */
  used_ppm: number;
  /** Among those beside it; 1 is served first. Null: nothing of it waits or runs */
  rank: number | null;
}

/** Of one metric in one stretch of time; null where nothing was read. */
export interface FiguresOut {
  mean: number | null;
  max: number | null;
}

/** The files that arrived at the host. */
export interface FilesArrived {
  bytes: number;
  files: number;
}

/** What holds one GPU back. */
export interface FindingOut {
  cause: Cause;
  /** The cause in a few words */
  title: string;
  rank: number;
  host_name: string;
  gpu: string;
  gpu_index: number | null;
  /** What is so, with its figures */
  words: string;
  /** What to change */
  remedy: string;
  /** The share of the GPU's time that it costs, 0 to 1 */
  lost_ratio: number;
  /** The same of the price per hour */
  lost_per_hour: string;
  evidence: EvidenceOut[];
}

/** What was found in a window: the last half hour of work that runs, the whole of what has ended. */
export interface FindingsOut {
  /** The answer in a sentence, also where nothing was found */
  words: string;
  cluster_id: string | null;
  looked_from: string | null;
  looked_to: string | null;
  step_s: number;
  /** GPUs that were looked at, at most 16 */
  gpus: number;
  /** Of these, with a minute of readings or more */
  gpus_read: number;
  findings: FindingOut[];
  first_ended: FirstEndedOut | null;
}

/** A span in which a rule would have fired. */
export interface FiringOut {
  name: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  /** Null: it still would */
  until: string | null;
}

/** The rank of a gang that failed first. */
export interface FirstEndedOut {
  rank: number;
  host_name: string;
  exit_code: number | null;
  /** What its host says of its end */
  detail: string | null;
  /** When the Master heard of it: clocks of hosts differ */
  at: string | null;
  /** Of its log; empty for who may not read it */
  last_lines: string[];
}

/** The health of the hosts and GPUs. */
export interface FleetHealthOut {
  hosts: UseCounts;
  gpus: UseCounts;
  /** By name, 100 at most */
  troubled: TroubledHostOut[];
  troubled_count: number;
}

/** One metric of the whole fleet over time, by tier. */
export interface FleetHistoryOut {
  series: TierSeriesOut[];
  step_s: number;
}

/** The part of a folder that is kept. */
export interface FolderKeptOut {
  bytes: number;
}

/** A kept route: what was forecast of the place that was taken, and what the job that followed it has cost. */
export interface ForecastOut {
  route_id: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  chosen: string | null;
  /** The place that the job took; without a job, the chosen one */
  backend: string | null;
  /** Expected length of the run */
  hours: number | null;
  cost_estimate: CostOut | null;
  /** The first job that followed it; of an array, its first */
  job_id: string | null;
  job_state: string | null;
  /** Charged for that job so far */
  cost: string | null;
  /** Running time of all its attempts so far */
  hours_taken: number | null;
  /** Whether the job, which succeeded, cost from `low` to `high`; null: not known, or it is free */
  held: boolean | null;
}

/** The address of a user who forgot the password. */
export interface ForgottenBody {
  /** Mail address */
  address: string;
}

/** One field of a GPU. */
export interface GpuFieldOut {
  /** Stable; a metric's name where it is one */
  name: string;
  label: string;
  /** In its unit; null where it was not said or read */
  value: number | boolean | string | null;
  /** UCUM; `bool`, `ratio`, or empty for words */
  unit: string;
  /** How often it is read */
  rate: string;
  /** The NVML call or field id it is read by */
  read: string;
  /** Its name in OpenTelemetry's hardware conventions */
  otel: string | null;
  /** Its name in dcgm_fields.h, without DCGM_FI_DEV_ */
  dcgm: string | null;
  note: string | null;
}

/** Fields about one thing. */
export interface GpuGroupOut {
  name: string;
  fields: GpuFieldOut[];
}

/** The current readings of a GPU. */
export interface GpuLiveOut {
  /** From 0 to 1; null where it was not read */
  utilization_ratio: number | null;
  memory_used_bytes: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  clock_sm_hertz: number | null;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
}

/** A GPU of a host. */
export interface GpuOut {
  /** The first that holds of faulty, offline, rented, idle, paused */
  state: Availability;
  /** The same as people read it, with the parts rented of a GPU in parts */
  state_text: string;
  /** Why nobody may rent it, or a part of it, now */
  state_reason: string | null;
  /** How many parts MIG or MPS makes of it; 0: it is rented as a whole */
  parts: number;
  parts_rented: number;
  uuid: string;
  index: number;
  vendor: string;
  name: string;
  memory_bytes: number | null;
  tier: string | null;
  tier_reasons: string[];
  pci_bus_id: string | null;
  core_count: number | null;
  slot_state: string | null;
  /** Why its slot cannot be had, though it is free */
  unavailable_reason: string | null;
  /** What keeps it apart from its neighbours: whole, mig, mps or shared */
  isolation: string | null;
  /** Profiles that its owner lets it be cut into; none: it stays whole */
  layout: string[];
  live: GpuLiveOut | null;
}

/** One GPU whole. */
export interface GpuPageOut {
  /** The first that holds of faulty, offline, rented, idle, paused */
  state: Availability;
  /** The same as people read it, with the parts rented of a GPU in parts */
  state_text: string;
  /** Why nobody may rent it, or a part of it, now */
  state_reason: string | null;
  /** How many parts MIG or MPS makes of it; 0: it is rented as a whole */
  parts: number;
  parts_rented: number;
  uuid: string;
  index: number;
  vendor: string;
  name: string;
  memory_bytes: number | null;
  tier: string | null;
  tier_reasons: string[];
  pci_bus_id: string | null;
  core_count: number | null;
  slot_state: string | null;
  /** Why its slot cannot be had, though it is free */
  unavailable_reason: string | null;
  /** What keeps it apart from its neighbours: whole, mig, mps or shared */
  isolation: string | null;
  /** Profiles that its owner lets it be cut into; none: it stays whole */
  layout: string[];
  live: GpuLiveOut | null;
  host_id: string;
  host_name: string;
  simulated: boolean;
  region: string | null;
  link_state: string;
  /** A decimal amount of money */
  price_per_hour: string | null;
  cluster_id: string | null;
  /** What it is, or was, cut into */
  slices: SlotOut[];
  conditions: ConditionOut[];
  /** What contradicts itself in what its host says of it */
  claims: ConditionOut[];
  /** The newest first, twenty at most */
  benchmarks: BenchmarkOut[];
  groups: GpuGroupOut[];
}

/** One GPU in the flat list of the whole fleet. */
export interface GpuRowOut {
  /** The first that holds of faulty, offline, rented, idle, paused */
  state: Availability;
  /** The same as people read it, with the parts rented of a GPU in parts */
  state_text: string;
  /** Why nobody may rent it, or a part of it, now */
  state_reason: string | null;
  /** How many parts MIG or MPS makes of it; 0: it is rented as a whole */
  parts: number;
  parts_rented: number;
  uuid: string;
  /** Its number on its host */
  index: number;
  host_id: string;
  host_name: string;
  region: string | null;
  simulated: boolean;
  name: string;
  tier: string | null;
  memory_bytes: number | null;
  link_state: string;
  slot_state: string | null;
  /** Why its slot cannot be had, though it is free */
  unavailable_reason: string | null;
  /** A decimal amount of money */
  price_per_hour: string | null;
  cluster_id: string | null;
  /** From 0 to 1; null where it was not read */
  utilization_ratio: number | null;
  memory_used_bytes: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  at: string | null;
}

/** The hours of GPUs by state. Rented is what was billed; the others are estimates from recorded changes. */
export interface GpuTimesOut {
  rented_hours: number;
  idle_hours: number;
  paused_hours: number;
  faulty_hours: number;
  offline_hours: number;
  /** Rented hours in all hours */
  occupancy_ratio: number | null;
  lost: LostOut;
}

/** Every GPU of the fleet. */
export interface GpusOut {
  items: GpuRowOut[];
  /** Give it to `/fleet/stream` as `after` */
  version: number;
}

/** Roles in one project. Without roles the membership there ends. */
export interface GrantBody {
  /** Id or name */
  project: string;
  roles: ("admin" | "renter" | "viewer" | "provider")[];
}

/** Roles in the organisation and its projects. */
export interface GrantsOut {
  role: Role | null;
  projects: ProjectOut[];
}

/** A group of a provider, and the roles that its members get. */
export interface GroupBody {
  group: string;
  /** In the organisation */
  role?: "org_owner" | "org_admin" | "org_billing" | "org_auditor" | null;
  projects?: GrantBody[];
}

/** A group, and the roles that its members get. */
export interface GroupOut {
  role: Role | null;
  projects: ProjectOut[];
  group: string;
}

/** Groups to try. */
export interface GroupsBody {
  groups: string[];
}

/** The state of the Master, of every relay, and of the fleet. */
export interface HealthOut {
  master: MasterHealthOut;
  accesses: AccessHealthOut[];
  fleet: FleetHealthOut;
}

/** Some metrics of a host over time. */
export interface HistoryOut {
  series: SeriesOut[];
  step_s: number;
}

/** A host by its own words. */
export interface HostFactsOut {
  host_id: string;
  groups: HostGroupOut[];
}

/** One field of a host. */
export interface HostFieldOut {
  /** Stable */
  name: string;
  label: string;
  /** In its unit; null where the host did not say */
  value: number | boolean | string | null;
  /** UCUM; `bool`, or empty for words */
  unit: string;
  /** Where on the host it is read */
  read: string;
  /** Its name in OpenTelemetry's conventions for hosts */
  otel: string | null;
}

/** Fields about one thing. */
export interface HostGroupOut {
  name: string;
  fields: HostFieldOut[];
}

/** The current readings of a host. */
export interface HostLiveOut {
  /** From 0 to 1; null where it was not read */
  cpu_ratio: number | null;
  memory_used_bytes: number | null;
  load1: number | null;
  /** Bits a second received */
  rx_bps: number | null;
  /** Bits a second sent */
  tx_bps: number | null;
  disk_used_bytes: number | null;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
}

/** A host by its id and name. */
export interface HostNameOut {
  id: string;
  name: string;
}

/** A host with its GPUs. */
export interface HostOut {
  id: string;
  name: string;
  /** It only plays a host */
  simulated: boolean;
  /** For the owner, operators and auditors */
  owner_account: string | null;
  admin_state: string;
  verify_state: string;
  link_state: string;
  /** The one word that says how it is */
  headline: string;
  headline_reason: string | null;
  /** What to do about a host that is degraded */
  headline_remedy: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  conditions: ConditionOut[];
  tier: string | null;
  tier_reasons: string[];
  bandwidth: BandwidthOut | null;
  /** When it could first be rented */
  listed_at: string | null;
  proof: ProofMarkOut | null;
  /** A decimal amount of money */
  price_per_hour: string | null;
  os: string | null;
  kernel: string | null;
  cpu_model: string | null;
  cpu_count: number | null;
  memory_bytes: number | null;
  disk_bytes: number | null;
  driver_version: string | null;
  cuda_version: string | null;
  runtimes: string[];
  /** Whose users its containers have: their own, in a user namespace, or the host's */
  container_users: "own" | "host" | null;
  /** Runs where a request names no image */
  default_image: string | null;
  /** ISO 3166-1, as the owner says */
  country: string | null;
  /** As the owner says: WORD or KEY=VALUE */
  labels: string[];
  agent_version: string | null;
  inventory_hash: string | null;
  slots: SlotOut[];
  live: HostLiveOut | null;
  version: number;
  last_seen_at: string | null;
  access_id: string | null;
  region: string | null;
  address: string | null;
  /** Between the host and its relay, in milliseconds */
  rtt_ms: number | null;
  gpus: GpuOut[];
}

/** One test rental of a host by the Master. */
export interface HostProofOut {
  proof_id: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  ended_at: string | null;
  /** Somebody asked for it; else it was due */
  was_asked: boolean;
  /** passed, failed or unfinished; null while it runs */
  outcome: string | null;
  words: string | null;
  steps: ProofStepOut[];
}

/** Hosts by id or name, and all that have these labels. */
export interface HostsBody {
  hosts?: string[];
  /** Labels of hosts: region, tier */
  scope?: Record<string, string> | null;
}

/** An identity of the caller's user at a provider. */
export interface IdentityOut {
  provider: string;
  /** As the provider named it */
  label: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  last_used_at: string | null;
}

/** The effect of an attempt on its GPUs; null where it had none. */
export interface ImpactOut {
  /** Its number; null where there is none yet */
  attempt: number | null;
  /** When its command was first seen to run */
  started_at: string | null;
  ended_at: string | null;
  step_s: number;
  gpus: CardImpactOut[];
}

/** The messages for the caller, the latest first. */
export interface InboxOut {
  items: MessageOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
  unread: number;
  /** The number of the last message that the caller has read */
  read_number: number;
}

/** An invitation. address: the only one that may accept it; null: anybody with the link may. */
export interface InvitationBody {
  address?: string | null;
  /** In the organisation */
  role?: "org_owner" | "org_admin" | "org_billing" | "org_auditor" | null;
  projects?: GrantBody[];
}

/** The secret of an invitation: the text after `#invitation=`. */
export interface InvitationLinkBody {
  secret: string;
}

/** An invitation and its link. */
export interface InvitationMadeOut {
  id: string;
  organisation: string;
  /** Null: anybody with the link */
  address: string | null;
  role: Role | null;
  projects: ProjectOut[];
  created_by: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  /** A URL that works once, shown this once; null: it was mailed */
  link: string | null;
}

/** An invitation that can still be accepted. */
export interface InvitationOut {
  id: string;
  organisation: string;
  /** Null: anybody with the link */
  address: string | null;
  role: Role | null;
  projects: ProjectOut[];
  created_by: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
}

/** An invitation, as the invited person sees it. */
export interface InvitationShownOut {
  organisation: string;
  address: string | null;
  role: Role | null;
  projects: ProjectOut[];
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
}

/** A job to submit: its command, its hardware and its limits. `await_files`: it starts once its folder was sent. */
export interface JobBody {
  /** For the pulls of the image; kept sealed until the job has ended, and never shown again */
  registry_login?: RegistryLoginBody | null;
  /** Buy a machine at this backend (any: at each) where there is no room here */
  backend?: string | null;
  /** With backend: cost, also where the places here are dearer; speed, what starts first */
  optimize?: "cost" | "speed" | null;
  /** With backend: spot machines first, which their provider may take back */
  spot?: boolean;
  /** Name; default: generated */
  name?: string;
  /** The command, a word each */
  argv: string[];
  /** One program, without NUL, in place of the image's ENTRYPOINT and CMD; empty: none */
  entrypoint?: string | null;
  /** The environment of the command */
  env?: Record<string, string>;
  /** Secret of the project and the variable that holds it, as NAME or NAME=VARIABLE */
  secrets?: string[];
  /** Secret of the project that holds the login of the image's registry */
  registry_secret?: string | null;
  /** Wait for a folder of files before the start */
  await_files?: boolean;
  /** Use simulated hosts; default: real ones only */
  simulated?: boolean;
  /** Volume and its path, as NAME:/path (:ro = read-only) */
  volumes?: string[];
  /** Whole GPUs, or slices of the profile `slice` */
  gpus?: number;
  /** Such as H100 */
  gpu_model?: string | null;
  /** Of each GPU, at least */
  gpu_memory_bytes?: number | null;
  /** Number of CPUs */
  cpus?: number;
  /** Main memory */
  memory_bytes?: number | null;
  /** Such as 2g.20gb or mps.50 */
  slice?: string | null;
  /** Container image; default: a plain process on your own host, elsewhere the host's default image */
  image?: string | null;
  /** Only this tier, for example h100/A */
  tier?: string | null;
  /** docker, process or simulated; default: the Master chooses */
  runtime?: "process" | "docker" | "simulated" | null;
  /** Only this host */
  host_id?: string | null;
  /** Highest price per hour, for all hosts together */
  max_price_per_hour?: string | null;
  /** Only hosts whose relay is in this region */
  region?: string | null;
  /** REGION or VOLUME, then :MS; only hosts in it, or within MS milliseconds (0 to 1000, else 30) */
  near?: string | null;
  /** Two capital letters (DE); only hosts whose owners say so */
  country?: string | null;
  /** Only hosts of this project, by its name or id */
  provider_id?: string | null;
  /** WORD or KEY=VALUE; only hosts with this label */
  labels?: string[];
  /** Mbit/s, measured each way, at least */
  min_bandwidth_mbps?: number | null;
  /** Reliability of the host in per cent, at least */
  min_reliability_percent?: number | null;
  /** Only hosts whose hardware was checked */
  verified?: boolean;
  /** Longest running time of one attempt */
  max_duration_seconds?: number | null;
  /** End it before it costs more than this */
  budget?: string | null;
  /** Retries when the host fails */
  retries?: number;
  /** Retry also after an exit code other than 0 */
  retries_on_exit?: boolean;
  /** Latest end of the job */
  deadline?: string | null;
  /** Priority within its class; a higher number starts first */
  priority?: number;
  /** Class in the queue: urgent, normal, low or spot; a class before another starts first */
  priority_class?: "urgent" | "normal" | "low" | "spot";
  /** Earliest start of the job */
  begin_at?: string | null;
  /** Jobs that must succeed first */
  after?: string[];
  /** Jobs that must end first, in whatever way */
  after_any?: string[];
  /** Jobs that must end first without success: failed, cancelled or lost */
  after_failure?: string[];
  /** Kept estimate (windrow route --kept) to compare with the job's cost; it chooses no place */
  route_id?: string | null;
  /** Number of copies, each with its index */
  array_size?: number;
  /** Copies of an array that run at once, at most; null: all */
  array_at_once?: number | null;
  /** Checkpoint interval; 0: off */
  checkpoint_every_seconds?: number;
  /** Python packages (PEP 508) to install before the command */
  packages?: string[];
}

/** A job. */
export interface JobOut {
  id: string;
  name: string;
  account_id: string;
  /** The first job of its submission; an array shares it */
  group_id: string;
  array_index: number;
  state: string;
  reason: string | null;
  /** Why it finds no place now; null in lists, and in an array but for the first */
  refusal: RefusalOut | null;
  /** Its place in the queue; null in lists, and once it does not wait */
  queue: QueuedOut | null;
  /** Places elsewhere that were tried; null in lists */
  tries: TryOut[] | null;
  request: JobRequestOut;
  attempts: AttemptOut[];
  /** Of its last attempt */
  exit_code: number | null;
  /** Of the folder kept for it; null where none was sent */
  folder_bytes: number | null;
  /** Who keeps it from starting; null: nobody */
  held_by: string | null;
  /** It comes before all others of its project and class */
  is_top: boolean;
  /** A decimal amount of money */
  cost_so_far: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  ended_at: string | null;
  version: number;
}

/** The request for a job; a field that was not given is null. */
export interface JobRequestOut {
  /** Buy a machine at this backend (any: at each) where there is no room here */
  backend: string | null;
  /** With backend: cost, also where the places here are dearer; speed, what starts first */
  optimize: string | null;
  /** With backend: spot machines first, which their provider may take back */
  spot: boolean;
  /** Name; default: generated */
  name: string;
  /** The command, a word each */
  argv: string[];
  /** One program, without NUL, in place of the image's ENTRYPOINT and CMD; empty: none */
  entrypoint: string | null;
  /** By name: a value where it is shown to its renter, null where it is not: elsewhere, and at its end */
  env: Record<string, string | null>;
  /** Secret of the project and the variable that holds it, as NAME or NAME=VARIABLE */
  secrets: string[];
  /** Secret of the project that holds the login of the image's registry */
  registry_secret: string | null;
  /** Wait for a folder of files before the start */
  await_files: boolean;
  /** Use simulated hosts; default: real ones only */
  simulated: boolean;
  /** Volume and its path, as NAME:/path (:ro = read-only) */
  volumes: string[];
  /** Whole GPUs, or slices of the profile `slice` */
  gpus: number;
  /** Such as H100 */
  gpu_model: string | null;
  /** Of each GPU, at least */
  gpu_memory_bytes: number | null;
  /** Number of CPUs */
  cpus: number;
  /** Main memory */
  memory_bytes: number | null;
  /** Such as 2g.20gb or mps.50 */
  slice: string | null;
  /** Container image; default: a plain process on your own host, elsewhere the host's default image */
  image: string | null;
  /** Only this tier, for example h100/A */
  tier: string | null;
  /** docker, process or simulated; default: the Master chooses */
  runtime: string | null;
  /** Only this host */
  host_id: string | null;
  /** Highest price per hour, for all hosts together */
  max_price_per_hour: string | null | null;
  /** Only hosts whose relay is in this region */
  region: string | null;
  /** REGION or VOLUME, then :MS; only hosts in it, or within MS milliseconds (0 to 1000, else 30) */
  near: string | null;
  /** Two capital letters (DE); only hosts whose owners say so */
  country: string | null;
  /** Only hosts of this project, by its name or id */
  provider_id: string | null;
  /** WORD or KEY=VALUE; only hosts with this label */
  labels: string[];
  /** Mbit/s, measured each way, at least */
  min_bandwidth_mbps: number | null;
  /** Reliability of the host in per cent, at least */
  min_reliability_percent: number | null;
  /** Only hosts whose hardware was checked */
  verified: boolean;
  /** Longest running time of one attempt */
  max_duration_seconds: number | null;
  /** End it before it costs more than this */
  budget: string | null | null;
  /** Retries when the host fails */
  retries: number;
  /** Retry also after an exit code other than 0 */
  retries_on_exit: boolean;
  /** Latest end of the job */
  deadline: string | null;
  /** Priority within its class; a higher number starts first */
  priority: number;
  /** Class in the queue: urgent, normal, low or spot; a class before another starts first */
  priority_class: string;
  /** Earliest start of the job */
  begin_at: string | null;
  /** Jobs that must succeed first */
  after: string[];
  /** Jobs that must end first, in whatever way */
  after_any: string[];
  /** Jobs that must end first without success: failed, cancelled or lost */
  after_failure: string[];
  /** Kept estimate (windrow route --kept) to compare with the job's cost; it chooses no place */
  route_id: string | null;
  /** Number of copies, each with its index */
  array_size: number;
  /** Copies of an array that run at once, at most; null: all */
  array_at_once: number | null;
  /** Checkpoint interval; 0: off */
  checkpoint_every_seconds: number;
  /** Python packages (PEP 508) to install before the command */
  packages: string[];
}

/** The jobs of one submission. */
export interface JobsOut {
  jobs: JobOut[];
}

export interface JoinBody {
  join_token: string;
  tls_csr_pem: string;
  sign_public: string;
  proof: string;
  host_name?: string;
  role?: MemberRole;
  simulated?: boolean;
  addresses?: string[];
}

export interface JoinTokenBody {
  role?: MemberRole;
  expires_in_s?: number;
}

/** A new ticket. */
export interface JoinTokenMadeOut {
  id: string;
  role: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  /** Id of the host or relay that joined with it */
  used_by: string | null;
  /** Its text, shown this once */
  join_token: string;
  /** The line that lets a host join; null for a relay */
  command: string | null;
}

/** A ticket for one host or relay, without its text. */
export interface JoinTokenOut {
  id: string;
  role: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  /** Id of the host or relay that joined with it */
  used_by: string | null;
}

/** The request for a cluster; a field that was not given is null. */
export interface KeptRequestOut {
  /** Buy a machine at this backend (any: at each) where there is no room here */
  backend: string | null;
  /** With backend: cost, also where the places here are dearer; speed, what starts first */
  optimize: string | null;
  /** With backend: spot machines first, which their provider may take back */
  spot: boolean;
  /** Name; default: generated */
  name: string;
  /** The command, a word each */
  argv: string[];
  /** One program, without NUL, in place of the image's ENTRYPOINT and CMD; empty: none */
  entrypoint: string | null;
  /** By name: a value where it is shown to its renter, null where it is not: elsewhere, and at its end */
  env: Record<string, string | null>;
  /** Secret of the project and the variable that holds it, as NAME or NAME=VARIABLE */
  secrets: string[];
  /** Secret of the project that holds the login of the image's registry */
  registry_secret: string | null;
  /** Wait for a folder of files before the start */
  await_files: boolean;
  /** Use simulated hosts; default: real ones only */
  simulated: boolean;
  /** Volume and its path, as NAME:/path (:ro = read-only) */
  volumes: string[];
  /** Whole GPUs, or slices of the profile `slice` */
  gpus: number;
  /** Such as H100 */
  gpu_model: string | null;
  /** Of each GPU, at least */
  gpu_memory_bytes: number | null;
  /** Number of CPUs */
  cpus: number;
  /** Main memory */
  memory_bytes: number | null;
  /** Such as 2g.20gb or mps.50 */
  slice: string | null;
  /** Container image; default: a plain process on your own host, elsewhere the host's default image */
  image: string | null;
  /** Only this tier, for example h100/A */
  tier: string | null;
  /** docker, process or simulated; default: the Master chooses */
  runtime: string | null;
  /** Only this host */
  host_id: string | null;
  /** Highest price per hour, for all hosts together */
  max_price_per_hour: string | null | null;
  /** Only hosts whose relay is in this region */
  region: string | null;
  /** REGION or VOLUME, then :MS; only hosts in it, or within MS milliseconds (0 to 1000, else 30) */
  near: string | null;
  /** Two capital letters (DE); only hosts whose owners say so */
  country: string | null;
  /** Only hosts of this project, by its name or id */
  provider_id: string | null;
  /** WORD or KEY=VALUE; only hosts with this label */
  labels: string[];
  /** Mbit/s, measured each way, at least */
  min_bandwidth_mbps: number | null;
  /** Reliability of the host in per cent, at least */
  min_reliability_percent: number | null;
  /** Only hosts whose hardware was checked */
  verified: boolean;
  /** Longest running time */
  max_duration_seconds: number | null;
  /** End it before it costs more than this */
  budget: string | null | null;
  /** box, service, gang, ray or dask */
  kind: string;
  /** Ports of the service */
  ports: number[];
  /** Number of hosts (gang, ray, dask); each provides these resources */
  hosts: number;
  /** Restart all hosts' programs when one is lost */
  restart_members: boolean;
  /** Public keys that may log in to a machine */
  ssh_keys: string[];
  /** Start Jupyter on the machine */
  notebook: boolean;
  /** End it when unused this long: no command, file transfer or tunnel */
  idle_seconds: number | null;
  /** End it after this long without `POST /clusters/{id}/renew` */
  client_lease_s: number | null;
  /** Wait in the queue this long where there is no place now; else it is refused */
  wait_seconds: number | null;
}

/** The same, with the answer as it was given, but for what its program says. */
export interface KeptRouteOut {
  route_id: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  chosen: string | null;
  /** The place that the job took; without a job, the chosen one */
  backend: string | null;
  /** Expected length of the run */
  hours: number | null;
  cost_estimate: CostOut | null;
  /** The first job that followed it; of an array, its first */
  job_id: string | null;
  job_state: string | null;
  /** Charged for that job so far */
  cost: string | null;
  /** Running time of all its attempts so far */
  hours_taken: number | null;
  /** Whether the job, which succeeded, cost from `low` to `high`; null: not known, or it is free */
  held: boolean | null;
  route: RouteOut;
}

/** The versions of a volume that are kept. */
export interface KeptVolumeOut {
  id: string;
  name: string;
  /** The newest that was begun; 0: none */
  version: number;
  /** Of its newest whole version */
  size_bytes: number;
  files: number;
  max_bytes: number;
  saved_at: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** Why the last save came to nothing, or what it left out */
  problem: string | null;
}

/** One key of a sum. */
export interface KeyOut {
  /** Null: it has none */
  id: string | null;
  name: string;
}

/** How an offer is sold. spot: may be taken back at any time; block: for a fixed time, paid in advance. */
export type Kind = "on-demand" | "spot" | "reserved" | "block";

/** A setting or secret of a kind of backend. */
export interface KindFieldOut {
  name: string;
  text: string;
  required: boolean;
  default: string | null;
}

/** The level of a share. see: read the object's page. use: also commands, SSH, tunnels, log and files. manage: also stop, start, resize and delete. */
export type LevelInput = "see" | "use" | "manage";

/** How far an adapter has been tried, the furthest first. */
export type LevelOutput = "live" | "emulator" | "protocol" | "spec" | "fixtures" | "none";

/** The spending limits of a project, a token or a service account, and the use so far. Null: no limit. */
export interface LimitOut {
  /** Id of the project, token or service account */
  id: string;
  kind: SpenderKind;
  name: string;
  project_id: string;
  /** A decimal amount of money */
  max_hourly_cost: string | null;
  /** A decimal amount of money */
  max_monthly_cost: string | null;
  /** A decimal amount of money */
  max_total_cost: string | null;
  max_leases: number | null;
  /** New machines end when unused this long, unless they say so themselves */
  idle_seconds: number | null;
  /** A decimal amount of money */
  hourly_cost: string;
  /** A decimal amount of money */
  monthly_cost: string;
  /** A decimal amount of money */
  total_cost: string;
  leases: number;
  /** Set aside for what runs. It counts for the limits of money */
  held: string;
  /** The month of `monthly_cost`, in UTC */
  month: string;
  updated_at: string | null;
  updated_by: string | null;
}

/** Spending limits. Null: no limit. */
export interface LimitsBody {
  /** Price per hour of all that runs at once */
  max_hourly_cost?: string | null;
  /** Cost in a calendar month, in UTC */
  max_monthly_cost?: string | null;
  /** Cost in all, with what was spent before */
  max_total_cost?: string | null;
  /** Machines and clusters rented at once */
  max_leases?: number | null;
  /** New machines that do not say so themselves end when unused this long: no command, file transfer or tunnel. Their changed files are kept */
  idle_seconds?: number | null;
}

/** The part of a rental that ran on one host, by its signed receipts. */
export interface LineOut {
  workload_id: string;
  host_id: string;
  running_seconds: string;
  signed_seconds: string;
  receipts: number;
  first_number: number | null;
  last_number: number | null;
  final: boolean;
  end_reason: string | null;
  exit_code: number | null;
  /** A decimal amount of money */
  amount: string;
  /** Why less is charged than its host has signed */
  note: string | null;
}

/** A sign-in link's secret: what follows `#sign-in=`. */
export interface LinkBody {
  secret: string;
}

/** A new password, and the secret of the link: the text after `#password=`. */
export interface LinkPasswordBody {
  secret: string;
  password: string;
}

/** The token that a sign-in link was exchanged for. */
export interface LinkRedeemedOut {
  account: AccountOut;
  roles: Role[];
  token: TokenMadeOut;
}

/** The provider to link with. password: the present password, if the user has one. */
export interface LinkStartBody {
  provider: string;
  password?: string | null;
}

/** Counters of the log of samples since the start; sizes in bytes. */
export interface LogHealthOut {
  records: number;
  bytes: number;
  fsyncs: number;
  failed_fsyncs: number;
  dropped_segments: number;
  forced_segments: number;
  unread_segments: number;
  kept_bytes: number;
  damage: number;
}

/** A host that was not chosen. */
export interface LoserOut {
  host: string;
  host_id: string;
  reason: string;
  /** Null where it does not fit */
  score: number | null;
  terms: Record<string, number>;
}

/** The estimated earnings that were missed, by the reason, at the present price. */
export interface LostOut {
  /** A decimal amount of money */
  idle: string;
  /** A decimal amount of money */
  paused: string;
  /** A decimal amount of money */
  faulty: string;
  /** A decimal amount of money */
  offline: string;
}

/** What hosts that are alike offer: of one tier, so many GPUs on each, in one region. Only what fits the request is counted. */
export interface MachineClassOut {
  tier: string;
  /** Of the price: gpu or processor */
  unit: string;
  simulated: boolean;
  /** Of the GPU, as its driver says it */
  name: string | null;
  region: string | null;
  /** GPUs, or processors, of each host */
  on_one_host: number;
  /** The most that a single host has free */
  free_on_one_host: number;
  /** GPUs or slices; of processors hosts that have some free */
  free: number;
  /** The same, free or not */
  total: number;
  hosts: number;
  /** Hosts whose hardware was checked by the Master */
  verified_hosts: number;
  /** The lowest of what is free, or of all where nothing is */
  price_per_hour: string;
  /** The lowest first */
  prices: PriceLevelOut[];
  currency: string;
  /** Of one GPU, or of a host; the least */
  memory_bytes: number | null;
  /** What keeps it apart from its neighbours: whole, mig, mps or shared */
  isolation: string | null;
  runtimes: string[];
  container_users: "own" | "host" | null;
  /** Versions of the driver, the oldest first */
  drivers: string[];
  /** The least of its hosts, 0 to 1; null: too little was seen */
  reliability: number | null;
  /** Bits a second that each host was measured to send, the least */
  up_bps: number | null;
  down_bps: number | null;
  /** Measured by test rentals: the median GPU */
  memory_bytes_per_s: number | null;
  /** Of 32-bit integers; measured likewise */
  matrix_operations_per_s: number | null;
  /** The cheapest host that has enough free now; null: none has */
  host_id: string | null;
  /** Where nothing is free: when the first lease with a set end ends; its renter can move it */
  ends_at: string | null;
}

/** A machine that could be had now. */
export interface MachineOfferOut {
  /** Give it to POST /purchases */
  offer: string;
  kind: Kind;
  gpu: string | null;
  gpu_count: number;
  cpus: number;
  memory_bytes: number;
  region: string;
  zone: string | null;
  /** ISO 3166-1 */
  country: string | null;
  /** A decimal amount of money */
  price_per_hour: string;
  currency: string;
  /** Day of the price */
  priced_on: string;
  /** Use is rounded up to these */
  granularity_seconds: number;
  /** The least that is paid for */
  minimum_seconds: number;
}

/** How many alerts a user gets by mail without a channel. URGENT: severity page alone. ALL: page and ticket. */
export type MailLevel = "none" | "urgent" | "all";

/** When the window ends now. */
export interface MaintenanceEndBody {
  /** RFC 3339, at most 30 days after the start */
  ends_at: string;
}

/** A maintenance window: no alert about its hosts is told, and nothing new runs there. */
export interface MaintenanceOut {
  id: string;
  /** Their ids */
  hosts: string[];
  /** Their names */
  names: string[];
  /** RFC 3339 in UTC, with milliseconds */
  starts_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  ends_at: string;
  /** `planned` or `running` */
  state: string;
  reason: string | null;
  /** `operators`, or an account; null: not the caller's to see */
  owner: string | null;
}

/** The leases on some hosts now. */
export interface MaintenancePlanOut {
  hosts: number;
  leases: number;
  /** How many of the leases have no duration, and so no planned end */
  open_ended: number;
  /** When all are over by their duration; null: never */
  earliest_start: string | null;
}

/** An organisation of a user. */
export interface MarketUserOrganisationOut {
  id: string;
  name: string;
  role: Role | null;
}

/** A user of the installation. */
export interface MarketUserOut {
  id: string;
  name: string;
  address: string | null;
  /** Of the installation */
  roles: Role[];
  is_disabled: boolean;
  organisations: MarketUserOrganisationOut[];
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
}

/** The health of the Master. */
export interface MasterHealthOut {
  version: string;
  epoch: number;
  uptime_s: number;
  store: StoreHealthOut;
  /** Open live streams */
  streams: number;
  problems: string[];
  conditions: ConditionOut[];
  bus: BusHealthOut;
  log: LogHealthOut;
  /** Records that wait for the disk */
  log_lag: number;
  duckdb_lag_s: number;
  duckdb: ViewHealthOut;
  history: ViewHealthOut[];
}

/** The Master that answers. */
export interface MasterOut {
  version: string;
  epoch: number;
  currency_is_test: boolean;
}

/** The caller, and the Master that answers. user: null for a service account and a project's own token. account: the project. */
export interface MeOut {
  account: AccountOut;
  user: UserOut | null;
  /** The service account that asks */
  service: UserOut | null;
  roles: Role[];
  token: MyTokenOut;
  session: MySessionOut | null;
  balance: BalanceNowOut;
  master: MasterOut;
}

/** The round trip from the renter to a relay. */
export interface MeasuredAccess {
  id: string;
  rtt_ms: number;
}

/** A measurement of a host's bandwidth that has begun. */
export interface MeasuringOut {
  operation: OperationOut;
  host_id: string;
}

/** Changes of a member. role: null keeps the role, `none` removes it. Projects that are not named stay. */
export interface MemberBody {
  role?: "org_owner" | "org_admin" | "org_billing" | "org_auditor" | "none" | null;
  projects?: GrantBody[];
}

/** A member of the organisation. */
export interface MemberOut {
  id: string;
  name: string;
  address: string | null;
  /** In the organisation */
  role: Role | null;
  has_second_factor: boolean;
  projects: ProjectOut[];
}

/** The kind of machine that joins with a certificate. */
export type MemberRole = "host" | "access";

/** One metric of a member over time. */
export interface MemberSeriesOut {
  metric: string;
  rank: number;
  unit: string;
  points: ([number, number | null])[];
}

/** The resources that one member uses now. Its host measured them in the last 30 s. */
export interface MemberUsageOut {
  rank: number;
  workload_id: string;
  host_id: string;
  host_name: string;
  /** When it was measured */
  at: string;
  /** Processors in use */
  cpu_cores: number | null;
  memory_used_bytes: number | null;
  disk_used_bytes: number | null;
  disk_read_bytes_per_second: number | null;
  disk_write_bytes_per_second: number | null;
  network_receive_bytes_per_second: number | null;
  network_transmit_bytes_per_second: number | null;
  /** The mean of its GPUs, from 0 to 1 */
  gpu_ratio: number | null;
  /** The sum of its GPUs */
  gpu_memory_used_bytes: number | null;
}

/** A user's place in one organisation. */
export interface MembershipOut {
  id: string;
  name: string;
  role: Role | null;
  projects: ProjectOut[];
}

/** The kinds of messages about an alert. */
export type MessageKind = "firing" | "resolved" | "escalated" | "test";

/** A message about an alert. */
export interface MessageOut {
  id: string;
  /** Grows with each message */
  number: number;
  alert_id: string;
  kind: MessageKind;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  rule: string;
  severity: Severity;
  title: string;
  text: string;
  remedy: string | null;
  /** The path of its page in the console */
  link: string;
  /** `operators`, and the ids of accounts */
  audiences: string[];
  /** The names of the first subjects */
  subjects: string[];
  subject_count: number;
  simulated: boolean;
}

/** The meaning of a metric. */
export interface MetricOut {
  name: string;
  scope: string;
  unit: string;
  counter: boolean;
  label: string;
  otel: string | null;
  dcgm: string | null;
}

/** The browser's session by which one asks. */
export interface MySessionOut {
  id: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
}

/** The token by which one asks. */
export interface MyTokenOut {
  id: string;
  name: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
}

/** The network by which members on several hosts reach each other. */
export interface NetworkOut {
  /** direct, or tunnels: in a private network, through relays */
  mode: string;
  reason: string;
  /** Of a private network: the pairs of members that are to be joined */
  cords: number;
  /** Those of them that are */
  cords_up: number;
  /** Why one of them is not */
  problem: string | null;
}

/** The hosts, the times, and why. */
export interface NewMaintenanceBody {
  hosts?: string[];
  /** Labels of hosts: region, tier */
  scope?: Record<string, string> | null;
  /** RFC 3339; null: now */
  starts_at?: string | null;
  /** RFC 3339, at most 30 days later */
  ends_at: string;
  /** Renters and owners of the hosts read it */
  reason?: string;
}

/** What is not told, from when and until when. */
export interface NewSilenceBody {
  /** Its code; null: any */
  rule?: string | null;
  /** The id of a host, job, relay...; null: any */
  cause?: string | null;
  /** RFC 3339; null: now */
  starts_at?: string | null;
  /** RFC 3339, at most 30 days later */
  ends_at: string;
  reason?: string;
}

/** The level of the node that a quota is of. */
export type NodeLevel = "installation" | "organisation" | "project" | "member";

/** A line of an alert's history. */
export interface NoteOut {
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  actor: string;
  /** `comment`, or what was done */
  kind: string;
  text: string | null;
}

/** The address of a notebook. */
export interface NotebookOut {
  /** For a browser, with the token that opens it */
  url: string;
  /** Until when it leads there, unless your right ends before */
  expires_at: string;
}

/** A kind of object that can be shared. */
export type ObjectKind = "cluster" | "job" | "template";

/** A new share. It replaces an earlier share of the object with the same receiver. */
export interface ObjectShareBody {
  object_kind: ObjectKind;
  /** Id of a machine or job, or name of a template */
  object_id: string;
  receiver_kind: ReceiverKind;
  /** Id or name. A user of another organisation is named by id */
  receiver: string;
  /** see: read its page. use: also commands, SSH, tunnels, log and files. manage: also stop, start, resize and delete */
  level: LevelInput;
  /** Null: it does not expire */
  expires_in_s?: number | null;
}

/** A share of an object. */
export interface ObjectShareOut {
  id: string;
  object_kind: string;
  object_id: string;
  /** The name when the share was made */
  object_name: string;
  /** The project that owns the object and pays for it */
  project_id: string;
  project: string;
  receiver_kind: string;
  receiver_id: string;
  receiver: string;
  level: string;
  created_by: string;
  created_by_name: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  expires_at: string | null;
  /** False: the project is suspended, or the maker has lost the right to share */
  is_active: boolean;
}

/** The kind of a reason against a host. Refusals name them in this order: first what passes or a little more money solves, then what another request solves, then what nothing solves. */
export type Obstacle = "price" | "busy" | "settling" | "offline" | "closed" | "too_few_hosts" | "near" | "region" | "country" | "provider" | "label" | "bandwidth" | "reliability" | "cpus" | "memory" | "gpus" | "gpu_memory" | "tier" | "gpu_model" | "slice" | "image" | "runtime" | "isolation" | "unverified" | "network" | "no_slot" | "not_named" | "other";

/** The organisation that gets the offer of a project. */
export interface OfferBody {
  /** Id or name */
  organisation: string;
}

/** What can be rented of one tier, or is rented; the price is per GPU, or for `cpu` tiers per processor. */
export interface OfferOut {
  tier: string;
  unit: string;
  simulated: boolean;
  /** GPUs or slices; in `cpu` tiers hosts, whose processors are free */
  free: number;
  /** The same, free or not */
  total: number;
  hosts: number;
  /** A decimal amount of money */
  price_per_hour: string;
  /** What the caller has set: a provider for the own hosts, else an operator for all; else null */
  asked: string | null;
  /** A decimal amount of money */
  suggestion: string;
  suggestion_reason: string;
  currency: string;
  runtimes: string[];
  min_memory_bytes: number | null;
  /** What keeps it apart from its neighbours: whole, mig, mps or shared */
  isolation: string | null;
  notes: string[];
  /** Whose users containers have: their own, on each of its hosts, or the host's; null: unknown */
  container_users: "own" | "host" | null;
}

/** The error of a long action. */
export interface OperationErrorOut {
  code: string;
  detail: string | null;
}

/** A long action and how far it has come. */
export interface OperationOut {
  id: string;
  kind: string;
  subject: string;
  state: string;
  error: OperationErrorOut | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  done_at: string | null;
}

/** The organisation that gets an owner or a project, and the reason. Its members read the reason. */
export interface OrganisationBody {
  /** Kept in the audit log */
  reason: string;
  /** Id or name */
  organisation: string;
}

/** The organisation of the caller's project. */
export interface OrganisationOut {
  id: string;
  name: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
}

/** The installation at a glance. `events`: the last ones beside everyday work, empty for those who may not see all of them. `revenue`: null for an account that neither has hosts nor is a provider. */
export interface OverviewOut {
  at: string;
  hosts: UseCounts;
  gpus: UseCounts;
  simulated_hosts: number;
  simulated_gpus: number;
  tiers: TierCounts[];
  per_hour: Rates;
  revenue: Revenue | null;
  accesses: number;
  events: EventOut[];
}

/** The money that a backend costs, in the currency of its caps. */
export interface OwedOut {
  /** Price of an hour of all machines that are paid for now */
  per_hour: string;
  /** Since midnight UTC */
  today: string;
  /** A decimal amount of money */
  in_all: string;
  /** What the living purchases may still cost at most */
  reserved: string;
  /** Purchases that are, or may be, paid for now */
  living: number;
  vcpus: number;
}

/** The caller's own name or id, as a confirmation, and the password if the user has one. */
export interface OwnEndBody {
  name: string;
  password?: string | null;
}

/** One of the account's hosts. */
export interface OwnHostOut {
  id: string;
  name: string;
  simulated: boolean;
  headline: string;
  reason: string;
  remedy: string | null;
  gpus: UseCounts;
}

/** The hosts of the account. */
export interface OwnHostsOut {
  hosts: UseCounts;
  gpus: UseCounts;
  /** Those with a trouble first, 12 at most */
  items: OwnHostOut[];
  unrented: WhyOut[];
  /** What keeps their grade down */
  grades: WhyOut[];
}

/** A rule of one's own: an event that comes so often within the duration, or a metric that compares so for all of it. */
export interface OwnRuleBody {
  name: string;
  /** Its kind */
  event?: string | null;
  /** As docs/metrics.md names it */
  metric?: string | null;
  /** host, gpu, tier, region; of an event host, cluster, job, access, account */
  scope?: Record<string, string> | null;
  /** Of an event >= */
  comparison?: ">" | ">=" | "<" | "<=";
  /** In the metric's unit; of an event the number */
  threshold?: number;
  duration_s?: number;
  severity?: "ticket" | "page";
}

/** A rule of one's own. */
export interface OwnRuleOut {
  id: string;
  /** `operators`, or the id of an account: it is told */
  owner: string;
  name: string;
  event: string | null;
  metric: string | null;
  scope: Record<string, string>;
  comparison: string;
  threshold: number;
  duration_s: number;
  severity: Severity;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  created_by: string;
}

export interface PageAccessOut {
  items: AccessOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageAgentOut {
  items: AgentOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageAlertOut {
  items: AlertOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageArtefactOut {
  items: ArtefactOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageAuditOut {
  items: AuditOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageBackendKindOut {
  items: BackendKindOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageBackendOut {
  items: BackendOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageBalanceOut {
  items: BalanceOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageBindingOut {
  items: BindingOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageBuyerOut {
  items: BuyerOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageChannelOut {
  items: ChannelOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageCheckpointOut {
  items: CheckpointOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageClusterOut {
  items: ClusterOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageCommandOut {
  items: CommandOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageDeletedProjectOut {
  items: DeletedProjectOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageDeliveryOut {
  items: DeliveryOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageEventOut {
  items: EventOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageFairShareOut {
  items: FairShareOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageForecastOut {
  items: ForecastOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageHostOut {
  items: HostOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageIdentityOut {
  items: IdentityOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageInvitationOut {
  items: InvitationOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageJobOut {
  items: JobOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageJoinTokenOut {
  items: JoinTokenOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageLimitOut {
  items: LimitOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageMachineClassOut {
  items: MachineClassOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageMachineOfferOut {
  items: MachineOfferOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageMaintenanceOut {
  items: MaintenanceOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageMarketUserOut {
  items: MarketUserOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageMemberOut {
  items: MemberOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageMetricOut {
  items: MetricOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageObjectShareOut {
  items: ObjectShareOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageOfferOut {
  items: OfferOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageOperationOut {
  items: OperationOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PagePaidDayOut {
  items: PaidDayOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PagePersonOut {
  items: PersonOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PagePriceOut {
  items: PriceOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageProjectOut {
  items: ProjectOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageProviderOut {
  items: ProviderOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PagePurchaseOut {
  items: PurchaseOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageQuotaOut {
  items: QuotaOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageReceiptOut {
  items: ReceiptOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageScheduleOut {
  items: ScheduleOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageSecretOut {
  items: SecretOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageServiceOut {
  items: ServiceOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageSessionOut {
  items: SessionOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageSignInProviderOut {
  items: SignInProviderOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageSilenceOut {
  items: SilenceOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageTemplateOut {
  items: TemplateOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageTokenOut {
  items: TokenOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageTransferOfferOut {
  items: TransferOfferOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageTransferOut {
  items: TransferOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageUsableBackendOut {
  items: UsableBackendOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

export interface PageVolumeOut {
  items: VolumeOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
}

/** The prices at which rentals of a tier began on one UTC day, of one GPU per hour. */
export interface PaidDayOut {
  day: string;
  /** A decimal amount of money */
  lowest: string;
  /** The lower one */
  median: string;
  /** A decimal amount of money */
  highest: string;
  rentals: number;
}

/** Into what to cut a GPU: the layout that its owner allows, or whole again. */
export interface PartitionBody {
  whole?: boolean;
}

/** A checkpoint that was not whole any more. */
export interface PassedOut {
  step: number;
  reason: string;
}

/** A new password. present: the present password; null if there is none. */
export interface PasswordBody {
  present?: string | null;
  password: string;
}

/** A link by which a member sets a new password. */
export interface PasswordLinkOut {
  /** A URL that works once, shown this once */
  link: string;
  /** RFC 3339 in UTC, with milliseconds */
  link_expires_at: string;
}

/** An address and password. code: of the second factor, where there is one. */
export interface PasswordSignInBody {
  /** Mail address */
  address: string;
  password: string;
  code?: string | null;
}

/** The result of one challenge of one card. */
export interface PastVerificationOut {
  gpu_uuid: string;
  verification_id: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  outcome: string;
  detail: string;
  span_ms: number | null;
  pace: string | null;
}

/** The permission that a route asks for; `NOBODY` is for a route that needs no sign-in. */
export type Permission = "nobody" | "signed_in" | "fleet.read" | "fleet.operate" | "market.read" | "price.set" | "rent" | "rent.read" | "ledger.read" | "tokens" | "join_tokens" | "accounts.read" | "accounts" | "health.read" | "audit.read" | "audit.anchor" | "resources" | "clouds.read" | "clouds" | "members.read" | "members" | "projects" | "secrets.read" | "secrets" | "shares" | "limits" | "quotas" | "simulated_hosts" | "alerts.read" | "alerts";

/** A permission, and whether the caller has it. */
export interface PermissionOut {
  permission: Permission;
  allowed: boolean;
  /** Those that have it; one is enough */
  roles: Role[];
  /** The reason of a refusal, and who can help; null if allowed */
  reason: string | null;
  /** The owners whose objects the route reaches; null if its path names no object */
  objects: Reach | null;
}

/** Permissions of the caller. */
export interface PermissionsOut {
  items: PermissionOut[];
}

/** An account and the link by which its person signs in. */
export interface PersonMadeOut {
  account: PersonOut;
  /** A URL that works once, shown this once */
  link: string;
  /** RFC 3339 in UTC, with milliseconds */
  link_expires_at: string;
}

/** An account, whether it may do anything, and what it can spend. */
export interface PersonOut {
  id: string;
  name: string;
  roles: Role[];
  state: AccountState;
  balance: BalanceNowOut;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
}

/** The phase of a failover test. Unfinished: its time was over before every agent was back and had sent anew. */
export type Phase = "running" | "finished" | "unfinished";

/** The place of a host as its owner says it; null, empty: not said. */
export interface PlaceBody {
  /** ISO 3166-1: two capital letters */
  country?: string | null;
  labels?: string[];
}

/** The place where a request runs or would run, and its price. */
export interface PlacedOut {
  host_id: string;
  host_name: string;
  slots: string[];
  tier: string;
  runtime: string;
  image: string | null;
  /** A decimal amount of money */
  price_per_hour: string;
  /** What there is to know of this way there; empty: nothing */
  note: string;
}

/** The outcome of creating a cluster now. */
export interface PlanOut {
  fits: boolean;
  /** It does not fit now, but will with a card that is back in a moment */
  fits_soon: boolean;
  placement: PlacedOut[];
  /** Ids of those hosts that the market tests now; that ends for it */
  tested: string[];
  /** A decimal amount of money */
  price_per_hour: string | null;
  /** What would be set aside first, a decimal amount of money */
  hold: string | null;
  /** A decimal amount of money */
  balance: string;
  /** Why nothing fits, and what would; null where it fits */
  refusal: RefusalOut | null;
}

/** How to order the places, and which providers to compare. */
export interface PreferencesBody {
  optimize_for?: "balanced" | "cost" | "speed";
  /** Providers; null: all */
  allowed_backends?: string[] | null;
}

/** How a rule would have fired in the last 7 days. */
export interface PreviewOut {
  count: number;
  /** The latest 100 */
  firings: FiringOut[];
  /** False: there was too much to look at all of it */
  complete: boolean;
}

/** A price. `own`: for one's own hosts; `all`: the operator's, for all owners who ask nothing themselves. */
export interface PriceBody {
  price_per_hour: string;
  scope?: "own" | "all" | null;
  /** Only while this is asked; else a conflict */
  if_asked?: string | null;
}

/** How many GPUs of a machine class have one price. */
export interface PriceLevelOut {
  /** A decimal amount of money */
  price_per_hour: string;
  free: number;
  total: number;
}

/** A machine at another provider: its price in US dollars, and whether that is still believed. */
export interface PriceOut {
  id: string;
  provider: string;
  company: string;
  /** Country of the company, ISO 3166-1 */
  seat: string;
  offer: string;
  /** Model class as in a tier, or `cpu` */
  gpu: string;
  gpu_count: number;
  vcpu: number | null;
  memory_gib: number | null;
  disk_gb: number | null;
  region: string | null;
  zone: string | null;
  /** Of the data centre, ISO 3166-1 */
  country: string | null;
  kind: "on-demand" | "spot" | "reserved" | "block";
  /** Of the whole machine */
  price_per_hour: string;
  /** Of a vCPU where it has no GPU */
  price_per_gpu_hour: string;
  currency: string;
  /** Currency of the provider's bill */
  billed_in: string;
  /** Null: unknown */
  tax: "included" | "excluded" | null;
  /** Step of the bill */
  granularity_seconds: number;
  /** The shortest use billed */
  minimum_seconds: number;
  /** Where step and minimum were read; null: not known, an hour is assumed */
  billing_source: string | null;
  /** Of 10**9 bytes that leave the provider for the internet; null: not known */
  egress_per_gb: string | null;
  egress_source: string | null;
  source: string;
  /** Null: of an unknown date */
  as_of: string | null;
  /** The last day on which it is believed */
  expires: string | null;
  state: "current" | "expired" | "quarantined";
  /** Why it is not current */
  reason: string | null;
}

/** The unit of a price per hour. */
export type PriceUnit = "gpu" | "processor";

/** A refusal or a failure (RFC 9457); some kinds have more fields. */
export interface Problem {
  /** An address that ends with `code` */
  type: string;
  /** What happened, in a few words */
  title: string;
  status: number;
  /** What happened, and what to do next */
  detail: string;
  /** Stable, for programs */
  code: string;
  /** The id or the field that it is about; empty where there is none */
  subject: string;
  /** The same request may succeed later */
  retryable: boolean;
  /** By which the Master's log names this request */
  request_id: string;
  /** Left out where there are none */
  reasons?: (ReasonOut | ProblemReason)[];
  /** Of a request that fits nowhere now */
  ways?: WayOut[];
  /** False: waiting does not help */
  is_possible?: boolean;
}

/** One reason of a refusal, of a field of the request or of a project. */
export interface ProblemReason {
  reason: string;
  /** Of the request: its path in the body, or a query parameter. Or a project */
  field?: string;
}

/** Changes of the caller's user. Null leaves a field as it is. A new address needs the present password. */
export interface ProfileBody {
  name?: string | null;
  address?: string | null;
  password?: string | null;
}

/** The caller as a user. */
export interface ProfileOut {
  id: string;
  name: string;
  address: string | null;
  has_password: boolean;
  has_second_factor: boolean;
  recovery_codes_left: number | null;
  organisations: MembershipOut[];
}

/** A new project. */
export interface ProjectBody {
  name: string;
}

/** A project, and the roles in it: the caller's, or those of the member that the answer is about. */
export interface ProjectOut {
  id: string;
  name: string;
  roles: Role[];
}

/** The name of the new token. */
export interface ProjectTokenBody {
  name?: string;
}

/** A token of the caller in another project. */
export interface ProjectTokenOut {
  project: ProjectOut;
  token: TokenMadeOut;
}

/** The present password. */
export interface ProofBody {
  password: string;
}

/** The result of the Master's newest test rental of a host. */
export interface ProofMarkOut {
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  /** passed or failed; a host that failed stays listed */
  outcome: string;
  words: string;
}

/** The state of a host's acceptance tests. */
export interface ProofOut {
  host_id: string;
  words: string;
  stages: StageOut[];
  /** The newest first, ten at most */
  proofs: HostProofOut[];
}

/** One step of a test rental. */
export interface ProofStepOut {
  /** start, reach, count, memory, benchmark, bandwidth, end or receipt */
  name: string;
  /** passed, failed, or absent where there was nothing to try */
  state: string;
  took_ms: number | null;
  words: string;
  /** The figures, by name */
  fields: Record<string, number | string>;
}

/** One of these: the password; a code of the second factor; an API token of the same user. */
export interface ProveBody {
  password?: string | null;
  code?: string | null;
  token?: string | null;
}

/** An identity provider. client_secret: null keeps the present one. domains: mail domains whose verified addresses may become users; empty: all. private: the issuer's host may be in a private network. */
export interface ProviderBody {
  issuer: string;
  client_id: string;
  client_secret?: string | null;
  /** Id or name */
  organisation?: string | null;
  domains?: string[];
  creates_users?: boolean;
  private?: boolean;
  scopes?: string[];
  group_claim?: string;
  groups?: GroupBody[];
}

/** The parameters of the provider's redirect, and the secret that the browser got at the start. */
export interface ProviderCallbackBody {
  provider: string;
  state: string;
  secret: string;
  code?: string | null;
  iss?: string | null;
  error?: string | null;
}

/** An identity provider. The client secret is never shown. */
export interface ProviderOut {
  name: string;
  issuer: string;
  client_id: string;
  has_client_secret: boolean;
  organisation: string | null;
  domains: string[];
  creates_users: boolean;
  private: boolean;
  scopes: string[];
  group_claim: string;
  groups: GroupOut[];
  /** Register this URI at the provider */
  redirect_uri: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
}

/** The provider to sign in by. */
export interface ProviderStartBody {
  provider: string;
}

/** A sign-in that has begun. The browser opens the URL, and sends state and secret back with the code. */
export interface ProviderStartedOut {
  url: string;
  state: string;
  secret: string;
}

/** The metadata of a provider, and its keys. */
export interface ProviderTestedOut {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  userinfo_endpoint: string | null;
  jwks_uri: string;
  /** True if it sends `iss` with each code (RFC 9207) */
  sends_issuer: boolean;
  /** Number of its signing keys */
  keys: number;
}

/** A test rental that has begun. */
export interface ProvingOut {
  operation: OperationOut;
  host_id: string;
}

/** A machine to buy. It is ended after so many hours, whatever runs on it. */
export interface PurchaseBody {
  backend: string;
  /** Of GET /backends/{name}/offers */
  offer: string;
  /** Project that it is for: id or name; default: the caller's */
  account?: string | null;
  /** It is ended after so long at the latest */
  hours: number;
}

/** A machine that is bought: its state, its host and what it costs, in the currency of its backend. */
export interface PurchaseOut {
  id: string;
  backend: string;
  state: State;
  /** Why it is in this state */
  reason: string | null;
  /** The project that it is for: nobody else's work runs on it */
  account_id: string;
  /** The name of that project */
  account: string | null;
  offer: string;
  kind: Kind;
  gpu: string | null;
  gpu_count: number;
  cpus: number;
  memory_bytes: number;
  region: string;
  zone: string | null;
  currency: string;
  /** A decimal amount of money */
  price_per_hour: string;
  /** The most that it may cost until it is ended */
  reserved: string;
  /** Its cost as it was expected when it was decided; null: nothing said how long */
  forecast: string | null;
  /** Owed to the provider so far */
  spent: string;
  /** Paid by the work that ran on it; null: it is not over */
  paid: string | null;
  /** Null: it is not over */
  billed_seconds: number | null;
  /** Without work */
  idle_seconds: number;
  /** By which the provider knows it */
  machine_id: string | null;
  host_id: string | null;
  /** The name of that host */
  host: string | null;
  /** The job or machine that caused it; null: an operator */
  for_id: string | null;
  /** The name of that job or machine */
  for_name: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  ends_at: string;
  ended_at: string | null;
}

/** A page of the queue, in the order in which its entries are to start. */
export interface QueueOut {
  items: QueuedOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
  /** Entries that wait; of the own project, for operators and auditors all */
  waiting: number;
  /** Entries that run; of the own project, for operators and auditors all */
  running: number;
  /** Entries of all projects whose first estimate was scored */
  estimates_scored: number;
  /** Those of them that started within its 80 % interval */
  estimates_held: number;
}

/** An entry of the queue. A name that is not the caller's to see reads `other work`. */
export interface QueuedOut {
  /** Of the job, or of the machine */
  id: string;
  /** job or machine */
  kind: string;
  /** Of one of an array with its index: `train[3]` */
  name: string;
  account_id: string;
  /** The name of the project */
  project: string | null;
  /** urgent, normal, low or spot */
  priority_class: string;
  priority: number;
  /** ready: it waits for nothing but a place */
  state: Waits;
  /** In the whole queue, from 1; null: it is not ready, or behind the first 1,000 */
  place: number | null;
  /** `3rd in the queue, starts 14:20 UTC ± 6 min` */
  summary: string;
  /** Why it still waits */
  why: string;
  /** `a machine is being bought at aws eu-central-1a`; null: nothing is done there */
  elsewhere: string | null;
  /** On a host of this market; null: nothing is known, or a place is bought */
  estimate: EstimateOut | null;
  factors: FactorsOut;
  /** What it asks for: `2 x (8 GPUs, 64 CPUs)` */
  asks: string;
  /** RFC 3339 in UTC, with milliseconds */
  submitted_at: string;
  /** Who holds it; null: nobody */
  held_by: string | null;
}

/** Hours of each day in which only alerts of the severity page are sent; the others follow together. */
export interface QuietBody {
  /** Such as 22:00 */
  begin: string;
  /** Such as 07:00; before the begin: on the next day */
  end: string;
  /** Such as Europe/Berlin */
  time_zone?: string;
}

/** Hours in which only alerts of the severity page are sent. */
export interface QuietOut {
  begin: string;
  end: string;
  time_zone: string;
}

/** A quota. It replaces an earlier one of the node, item and tier. */
export interface QuotaBody {
  /** `installation`, the id of an organisation or project, `org:NAME`, `project:NAME`, or the name of a project */
  node: string;
  item: QuotaItem;
  /** Model of the GPUs, such as h100. Empty: all GPUs */
  tier?: string;
  /** GPUs and processors, such as 8 or 0.5; memory in bytes; money an hour, such as 12.50; clusters and waiting jobs by their number */
  limit: string;
}

/** The things that a quota counts. */
export type QuotaItem = "gpus" | "cpus" | "memory" | "clusters" | "waiting_jobs" | "spend_per_hour";

/** A quota, and how much of it is used. */
export interface QuotaOut {
  node_id: string;
  level: NodeLevel;
  name: string;
  item: QuotaItem;
  /** Null: all tiers together */
  tier: string | null;
  limit: string;
  /** In the unit of the limit */
  used: string;
}

/** The hourly earnings at the asked prices: of rented slots, and of idle ones if they were rented. Real hosts only, and of them those in the scope of `revenue`. */
export interface Rates {
  rented: string;
  idle: string;
}

/** The owners whose objects a route reaches by their ids; other objects do not exist for the caller (404). */
export type Reach = "everybody's" | "own" | "own; operators and auditors: everybody's" | "own; operators: everybody's" | "operators: everybody's" | "of the own organisation; admins of a project: of the project";

/** How far the inbox was read. */
export interface ReadBody {
  /** Of the last message that was read */
  number: number;
}

/** The reason to take the log as it is. */
export interface ReanchorBody {
  reason: string;
}

/** The reason to change a host's state; it is kept in the audit log and shown. */
export interface Reason {
  reason?: string;
}

/** A reason, and how many hosts it holds for. */
export interface ReasonOut {
  code: Obstacle;
  /** As a line: `12 hosts: no free GPU` */
  text: string;
  /** The same without the hosts */
  reason: string;
  /** Number of hosts */
  count: number;
  /** True for hosts of the account that asks */
  is_own: boolean;
  /** At most three of them, the nearest to a fit first */
  hosts: HostNameOut[];
}

/** A rental from its first to its last signed second, with every transfer it caused. */
export interface ReceiptOut {
  id: string;
  rental_id: string;
  state: string;
  cluster_id: string;
  cluster_name: string;
  host_ids: string[];
  tier: string;
  /** A decimal amount of money */
  price_per_hour: string;
  currency: string;
  test_money: boolean;
  simulated: boolean;
  started_at: string | null;
  ended_at: string | null;
  end_reason: string | null;
  running_seconds: string;
  /** A decimal amount of money */
  amount: string;
  /** A decimal amount of money */
  held: string;
  lines: LineOut[];
  transfers: TransferOut[];
  /** A decimal amount of money */
  balance_after: string;
}

/** With whom an object is shared. */
export type ReceiverKind = "user" | "project" | "organisation";

/** A place that could do the work. */
export interface RecommendationOut {
  backend: string;
  provider: string;
  offer: string;
  /** The id of the host that it is bound to */
  host: string | null;
  gpu: string | null;
  gpu_count: number;
  /** It can be chosen now */
  usable: boolean;
  /** The backend where your project may have a machine for it bought: `backend` of a job */
  buys: string | null;
  /** 0 to 100 */
  score: number;
  terms: TermsOut;
  cost_estimate: CostOut;
  availability: AvailabilityOut;
  pros: string[];
  cons: string[];
}

/** The reasons why a request fits nowhere now, and what would fit. */
export interface RefusalOut {
  /** In a sentence */
  detail: string;
  /** False: waiting does not help: no host has what is asked for */
  is_possible: boolean;
  /** One's own hosts first; at most four, the last for the rest */
  reasons: ReasonOut[];
  /** The smallest change first; at most two */
  ways: WayOut[];
}

/** A place that cannot do the work, and why. */
export interface RefusedOut {
  backend: string;
  provider: string;
  offer: string;
  /** A decimal amount of money */
  price_per_hour: string;
  reason: string;
}

/** The login that is shown to the registry of a private image. */
export interface RegistryLoginBody {
  username: string;
  password: string;
}

/** The reliability of a host: the lower bound of the chance that it is there, less its faults. */
export interface ReliabilityOut {
  /** From 0 to 1, as its tier counts it; null: too little was seen */
  figure: number | null;
  words: string;
  /** Points: 1 for five minutes there, 4 while rented; halved in 14 days */
  good: number;
  bad: number;
  /** Of its own: of its cards, and of starts */
  faults: number;
  /** Leases that it broke off */
  aborts: number;
}

export interface RenewBody {
  id: string;
  generation: number;
  tls_csr_pem: string;
  wall_ns: number;
  proof: string;
}

/** Sums of a period. Those of the cells add up to the totals, whatever they are divided by. */
export interface ReportOut {
  measures: string[];
  /** By measure: money, GPU hours, ratio or incidents */
  units: Record<string, string>;
  by: string[];
  view: string;
  first_day: string;
  last_day: string;
  time_zone: string;
  currency: string;
  test_money: boolean;
  /** By measure: money as a decimal text, hours of GPUs, a ratio, or a count; null of no time */
  totals: Record<string, string | null>;
  /** By day, or the greatest of the first measure first */
  cells: CellOut[];
}

/** Requirements of the workload. */
export interface RequirementsBody {
  gpu_count?: number | null;
  /** Processors; default: 1 */
  cpu_count?: number;
  /** Model or class, such as NVIDIA A100 or h100; default: any */
  gpu?: string | null;
  /** Of one GPU, in GiB; default: as its model needs, or any */
  gpu_memory_gb?: number | null;
  /** Without it there is no total */
  duration_hours_estimated?: number | null;
  checkpoint_frequency_minutes?: number | null;
  /** It may be moved while it runs, so that spot is allowed */
  interruptible?: boolean;
  max_cost_usd?: number | null;
  /** To be brought there, 10**9 bytes */
  dataset_size_gb?: number;
  /** To be brought home, 10**9 bytes */
  results_size_gb?: number;
  /** Default: what the program imports */
  framework?: string | null;
  /** Where the data centre may be, ISO 3166-1; empty: anywhere */
  countries?: string[];
}

/** The secrets that were deleted when the job ended. */
export interface RerunBody {
  /** A value for each variable that the job had */
  env?: Record<string, string>;
}

/** The new number of hosts of a Ray or Dask cluster, and the price limit of all of them. */
export interface ResizeBody {
  hosts: number;
  /** Of all of it; else as was asked */
  max_price_per_hour?: string | null;
  /** For the image, on new hosts */
  registry_login?: RegistryLoginBody | null;
}

/** A resource to register. */
export interface ResourceBody {
  resource_type: "on-premise" | "cloud" | "edge";
  /** Required for a cloud: AWS, Azure, GCP or another */
  provider?: string | null;
  /** Data centre or place */
  location?: string | null;
  /** Of a cloud, such as us-east-1 */
  region?: string | null;
  /** `gpu`, `gpu_count`, `gpu_type`, `cpu_cores`, `memory_gb`, `storage_gb`, `storage_tb`, and others by name: a flag, a number of 0 or more, or a text */
  capabilities: Record<string, unknown>;
  supported_frameworks?: string[] | null;
  /** Default: available */
  status?: "available" | "busy" | "maintenance" | "unavailable" | null;
  /** Default: 1 */
  max_parallel_jobs?: number | null;
  /** In Gbit/s */
  network_bandwidth_gbps?: number | null;
  /** Default: 0.0; of a cloud null, then its price in the catalogue counts */
  cost_per_hour_usd?: number | null;
  auth_method?: "ssh_key" | "api_token" | "iam_role" | null;
  /** To the Master */
  latency_ms?: number | null;
  /** 1 to 128 letters, digits, dots, dashes and underscores; the first a letter or digit */
  resource_id: string;
}

/** A change: the fields that are given replace what is kept, `capabilities` as a whole; null puts an optional one back to its default. The last four are not changed, and are taken if they are as they are. */
export interface ResourceChangeBody {
  resource_type?: "on-premise" | "cloud" | "edge" | null;
  /** Required for a cloud: AWS, Azure, GCP or another */
  provider?: string | null;
  /** Data centre or place */
  location?: string | null;
  /** Of a cloud, such as us-east-1 */
  region?: string | null;
  capabilities?: Record<string, unknown> | null;
  supported_frameworks?: string[] | null;
  /** Default: available */
  status?: "available" | "busy" | "maintenance" | "unavailable" | null;
  /** Default: 1 */
  max_parallel_jobs?: number | null;
  /** In Gbit/s */
  network_bandwidth_gbps?: number | null;
  /** Default: 0.0; of a cloud null, then its price in the catalogue counts */
  cost_per_hour_usd?: number | null;
  auth_method?: "ssh_key" | "api_token" | "iam_role" | null;
  /** To the Master */
  latency_ms?: number | null;
  id?: number | null;
  resource_id?: string | null;
  created_at?: string | null;
  updated_at?: string | null;
}

/** A registered resource. */
export interface ResourceOut {
  /** Counted from 1 */
  id: number;
  resource_id: string;
  resource_type: "on-premise" | "cloud" | "edge";
  provider: string | null;
  location: string | null;
  region: string | null;
  capabilities: Record<string, unknown>;
  supported_frameworks: string[];
  /** The sterner of what was declared and what its host shows */
  status: "available" | "busy" | "maintenance" | "unavailable";
  max_parallel_jobs: number;
  network_bandwidth_gbps: number | null;
  cost_per_hour_usd: number | null;
  auth_method: "ssh_key" | "api_token" | "iam_role" | null;
  latency_ms: number | null;
  /** RFC 3339 in UTC, in whole seconds */
  created_at: string;
  /** Null until the first change */
  updated_at: string | null;
}

/** The cluster whose checkpoint is restored. */
export interface RestoreBody {
  source: string;
}

/** The step that is in place; null: none was whole. */
export interface RestoredOut {
  step: number | null;
  passed: PassedOut[];
}

/** The results that are kept of work that has ended by itself. */
export interface ResultsOut {
  /** RFC 3339 in UTC, with milliseconds */
  kept_at: string;
  /** Null: its log could not be had */
  log_bytes: number | null;
  /** Of a tar of the files that it changed; null: they could not be had */
  files_bytes: number | null;
  /** What is missing of it, by name, and why */
  problem: string | null;
}

/** The earnings of providers and the platform by the ledger, in UTC days. `all`: everybody's; `own`: the asking account's. */
export interface Revenue {
  scope: string;
  currency: string;
  test_money: boolean;
  today: string;
  last_7_days: string;
  last_30_days: string;
  this_month: string;
  /** The last 31, oldest first */
  days: DayAmount[];
}

/** A role: a named bundle of permissions. Its scope is the installation, an organisation or a project. */
export type Role = "operator" | "auditor" | "org_owner" | "org_admin" | "org_billing" | "org_auditor" | "admin" | "renter" | "viewer" | "provider";

/** A new token of a service account. overlap_s: the old token stays valid for so long. */
export interface RotateBody {
  /** Lifetime of the token */
  expires_in_s?: number;
  overlap_s?: number;
}

/** A workload: its program, what it needs, and what matters. The fields from task_name on are those of a task intent of Model Studio, which is taken as it is. */
export interface RouteBody {
  /** A Python program; 1 MiB are read, none is run */
  code?: string | null;
  requirements?: RequirementsBody;
  preferences?: PreferencesBody;
  /** Keep the answer, so that a job can follow it by `route_id` */
  keep?: boolean;
  /** Without a duration, it runs as long as your jobs of this name took */
  task_name?: string | null;
  ml_task?: string | null;
  compute_preference?: "auto" | "on-premise" | "cloud" | "edge";
  constraints?: ConstraintsBody;
}

/** The places for a workload, the best first. */
export interface RouteOut {
  /** Null: the answer was not kept */
  route_id: string | null;
  /** The best that can be used now */
  chosen: string | null;
  recommendations: RecommendationOut[];
  refused: RefusedOut[];
  /** Null: no program was sent */
  analysis: AnalysisOut | null;
}

/** A page of such rows. */
export interface RowsOut {
  items: SourceRowOut[];
  /** Give it as `cursor` for what follows; null at the end */
  next_cursor: string | null;
  /** Of all pages */
  count: number;
}

/** The checkpoint that was saved; null: nothing new was whole. */
export interface SavedOut {
  checkpoint: CheckpointOut | null;
}

/** The volumes that a cluster writes, as they are kept now. */
export interface SavedVolumesOut {
  volumes: KeptVolumeOut[];
}

/** A report that is sent to you by mail. */
export interface ScheduleBody {
  name: string;
  /** Minute, hour, day, month, weekday: `0 7 1 * *` */
  cron: string;
  time_zone?: string;
  measure?: string;
  by?: string;
  /** As it is when the mail is sent */
  period?: string;
  view?: string;
  /** Values by dimension */
  filters?: Record<string, string>;
}

/** A schedule of yours. */
export interface ScheduleOut {
  id: string;
  name: string;
  cron: string;
  time_zone: string;
  measure: string;
  by: string;
  period: string;
  view: string;
  filters: Record<string, string>;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  next_at: string;
  sent_at: string | null;
  /** Why the last one was not sent */
  problem: string | null;
}

/** Whose alerts a channel gets: the user's own (those of all their projects), a project's, all of an organisation's projects, or the installation's. */
export type Scope = "me" | "project" | "organisation" | "operators";

/** The value of a secret. Hosts of work that names the secret get it. It is never shown again. */
export interface SecretBody {
  /** 1 to 65,536 bytes. Text without NUL; file: its base64; registry: NAME:PASSWORD */
  value: string;
  /** text, file (its variable holds base64) or registry (a login for images) */
  kind?: SecretKind;
}

/** A secret that was deleted. */
export interface SecretDeletedOut {
  name: string;
  /** Machines, jobs and templates that still name it */
  used_by: SecretUserOut[];
  /** The work that will fail without it; null: none */
  warning: string | null;
}

/** The kind of a secret. TEXT: the variable holds it as it is. FILE: any bytes; the variable holds them in base64. REGISTRY_LOGIN: NAME:PASSWORD of a registry of images; no variable holds it. */
export type SecretKind = "text" | "file" | "registry_login";

/** A secret, without its value. */
export interface SecretOut {
  name: string;
  kind: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  created_by: string;
  /** RFC 3339 in UTC, with milliseconds */
  updated_at: string;
  updated_by: string;
  last_used_at: string | null;
  /** The machine that got the value last */
  last_used_by: string | null;
  /** Machines and jobs that have not ended, and templates */
  used_by: SecretUserOut[];
}

/** Work or a template that names a secret. */
export interface SecretUserOut {
  /** job, machine or template */
  kind: string;
  id: string;
  name: string;
  /** True if it still needs the value: it waits for a place, or is stopped */
  is_waiting: boolean;
}

/** Other credentials of the same account. Empty: the provider's library looks in the Master's own environment. */
export interface SecretsBody {
  secrets?: Record<string, unknown>;
}

/** One metric of a host or of one of its GPUs over time. */
export interface SeriesOut {
  metric: string;
  /** The GPU's uuid; null for the host itself */
  gpu: string | null;
  unit: string;
  points: ([number, number | null])[];
}

/** A new service account. */
export interface ServiceBody {
  name: string;
  roles: ("renter" | "viewer" | "provider")[];
  /** Lifetime of the token */
  expires_in_s?: number;
  limits?: LimitsBody;
}

/** A service account and its new token. */
export interface ServiceMadeOut {
  service_account: ServiceOut;
  token: TokenMadeOut;
}

/** A service account. roles: its present roles. */
export interface ServiceOut {
  id: string;
  name: string;
  roles: Role[];
  created_by: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** Its valid tokens, the oldest first */
  tokens: TokenOut[];
}

export interface SessionBody {
  token: string;
}

/** A browser that is signed in. */
export interface SessionOut {
  id: string;
  token_id: string;
  token_name: string;
  browser: string | null;
  /** From where it was signed in */
  address: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  last_used_at: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  /** True for the session that asks */
  current: boolean;
}

/** to: the project that gets the money; null: write it off. */
export interface SettleBody {
  /** Kept in the audit log */
  reason: string;
  to?: string | null;
}

/** How soon a person has to look. PAGE: at once. TICKET: within days. INFO: never, it only explains. */
export type Severity = "info" | "ticket" | "page";

/** The cost of one machine, job, GPU model, person or project in a month. */
export interface ShareOut {
  /** Null: what has none */
  id: string | null;
  name: string;
  /** A decimal amount of money */
  amount: string;
  /** Billed, of each host */
  running_hours: number;
  /** By day of the month, as `days` has them */
  days: string[];
}

/** An identity provider for sign-in. */
export interface SignInProviderOut {
  name: string;
}

/** A browser that has just signed in. */
export interface SignedInOut {
  account: AccountOut;
  session: MySessionOut;
  /** The bearer token for further requests of this browser */
  secret: string;
}

/** Bytes and their Ed25519 signature, both in base64. */
export interface SignedOut {
  signed: string;
  signature: string;
}

/** For how long nothing is told, and why. */
export interface SilenceBody {
  duration_s: number;
  reason?: string;
}

/** A silence: what fits is not told while it lasts. */
export interface SilenceOut {
  id: string;
  /** `operators`, or the id of an account */
  owner: string;
  rule: string | null;
  cause: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  starts_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  ends_at: string;
  reason: string;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  created_by: string;
}

/** The simulated hosts of a market on one machine. */
export interface SimulatedHostsOut {
  /** True where `windrow up` started the market */
  can_set: boolean;
  /** How many there are to be; they join within a minute */
  wanted: number;
  at_most: number;
}

/** How many simulated hosts there are to be. */
export interface SimulatedHostsSet {
  count: number;
}

/** The unit that one renter can hold: a GPU, a part of one, or a share of a host's processors. */
export interface SlotOut {
  id: string;
  host_id: string;
  gpu_uuid: string | null;
  kind: string;
  state: string;
  /** rented, idle, paused, faulty or offline: as people read it */
  state_text: string;
  /** Why nobody may rent it now */
  state_reason: string | null;
  unavailable: string | null;
  /** Grows with every grant; a host refuses commands with a lower one. Shown as cluster_id is */
  token: number | null;
  /** Who holds it; for the holder, the host's owner, operators and auditors */
  cluster_id: string | null;
  /** What keeps it apart from its neighbours: whole, mig, mps or shared */
  isolation: string | null;
  /** The GPU that it is, or is a part of */
  card_uuid: string | null;
  /** Of a slice, such as 1g.10gb */
  profile: string | null;
  /** How much of its GPU it is, in thousandths */
  share_milli: number | null;
  /** Processors of its host that its holder has with it */
  cpus: number;
  tier: string | null;
}

/** A row that a figure is the sum of: what one host ran of a rental, the time of a slot, or an incident. */
export interface SourceRowOut {
  source: string;
  /** Of the rental, the slot, or what had the incident */
  id: string;
  name: string;
  workload_id: string | null;
  /** When it began, or the begin of the period */
  at: string;
  /** By dimension */
  keys: Record<string, string>;
  /** By measure: money as a decimal text, hours of GPUs, a ratio, or a count; null of no time */
  values: Record<string, string | null>;
  /** The path of its receipt, with receipts and transfers */
  receipt: string | null;
}

/** The kind of what spends, and whose spending can be limited. */
export type SpenderKind = "project" | "token" | "service_account";

/** A month's spending. Amounts of the rows add up to those of the days, and these to `spent`. What goes on now (`per_hour` to `empty_at`) is of this moment, whatever the month. */
export interface SpendingOut {
  month: string;
  /** Those that can be asked for, the latest first */
  months: string[];
  by: string;
  scope: string;
  currency: string;
  test_money: boolean;
  /** A decimal amount of money */
  spent: string;
  /** 0 in months that have passed */
  today: string;
  /** At the month's end; null in months that have passed */
  forecast: string | null;
  forecast_method: string;
  /** The project's spending limit for a month; null: none */
  limit: string | null;
  /** The price of all that runs now */
  per_hour: string;
  /** Machines and clusters that run now */
  running: number;
  /** Set aside for what runs now */
  held: string;
  /** Null for all projects */
  balance: string | null;
  /** When balance and hold are spent if nothing changes; null: never */
  empty_at: string | null;
  days: DaySpentOut[];
  /** The greatest first; at most 200, the last one is the rest */
  rows: ShareOut[];
}

/** The stage that a host has reached. */
export interface StageOut {
  /** downloaded, certified, tested, verified or listed */
  name: string;
  /** done, running, waiting, failed or skipped */
  state: string;
  /** Null where it was not reached, or where nobody knows when */
  at: string | null;
  words: string;
}

/** The standing of a host. */
export interface StandingOut {
  host_id: string;
  reliability: ReliabilityOut;
  unrented: UnrentedOut[];
}

/** The price limit of a new start, and the secrets that were kept nowhere. */
export interface StartBody {
  /** Of all of it; else as was asked */
  max_price_per_hour?: string | null;
  /** For the image; to be given again where it was at the creation */
  registry_login?: RegistryLoginBody | null;
}

/** The state of a purchase. */
export type State = "wanted" | "asking" | "doubtful" | "booting" | "joined" | "serving" | "idle" | "draining" | "ending" | "gone" | "refused" | "never_made";

/** The statement of a project, a provider or everybody. */
export interface StatementOut {
  view: string;
  name: string;
  reports: ReportOut[];
  /** By when they were posted, seconds after what they pay */
  transfers: TransfersOut[];
}

/** One step of a cluster's way. */
export interface StepOut {
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  name: string;
  /** From 0 to 1 */
  progress: number | null;
  detail: string | null;
  /** Whose step it is, of a cluster of several members */
  member: string | null;
}

/** The relay to kill, said once more. */
export interface Stop {
  /** Its `stop_name`, or its id */
  confirm?: string;
  reason?: string;
}

/** A test that killed a relay. */
export interface StopOut {
  access_id: string;
  name: string;
  region: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  asked_at: string;
  asked_by: string;
  reason: string | null;
  /** Unfinished: not every agent was back and had sent anew in two minutes */
  phase: Phase;
  finished_at: string | null;
  /** Connected through it when it was killed */
  agents: number;
  /** Of those, how many have connected again */
  back: number;
  /** Of those, how many are at another relay */
  elsewhere: number;
  /** The longest that one of them was, or is, without a connection */
  away_s: number;
  /** Why nothing could be counted */
  problem: string | null;
  /** Null while it runs */
  counted: CountedOut | null;
  /** How it is counted, in words */
  how: string;
}

/** The purchases that were asked to end. */
export interface StoppedOut {
  ended: string[];
}

/** The health of the database of decisions. */
export interface StoreHealthOut {
  problem: string | null;
  commits: number;
  writes: number;
  failures: number;
  pending: number;
}

/** One GPU in one stretch of time. */
export interface StretchOut {
  utilization_ratio: FiguresOut;
  memory_used_bytes: FiguresOut;
  power_watts: FiguresOut;
  /** Of the steps, in how many its clocks were held back */
  throttled_ratio: number | null;
}

/** A GPU, host, job or other thing that has, or had, the trouble. */
export interface SubjectOut {
  id: string;
  name: string;
  /** RFC 3339 in UTC, with milliseconds */
  since: string;
  cleared_at: string | null;
  /** It is another alert's, by `rule`, which is not told while this one lasts */
  held: boolean;
  rule: string;
  /** The rule in words */
  rule_title: string;
}

/** The reason to suspend an account. */
export interface SuspendBody {
  reason?: string;
}

/** The market whose machines are looked for. Null: this one. */
export interface SweepBody {
  market_id?: string | null;
}

/** The result of a sweep. */
export interface SweepOut {
  /** Of this market, without a living purchase */
  ended: SweptOut[];
  /** Of a living purchase, or of another market */
  left_alone: SweptOut[];
  /** Not ended: the provider refused, or did not answer */
  unknown: SweptOut[];
}

/** Something that a sweep found at the provider. */
export interface SweptOut {
  id: string;
  purchase_id: string | null;
  said: string;
}

/** A request for a cluster, to be sent to `POST /clusters` as it is or changed. */
export interface TemplateOut {
  name: string;
  request: KeptRequestOut;
  /** RFC 3339 in UTC, with milliseconds */
  saved_at: string;
}

/** The member to enter, where there are several. */
export interface TerminalBody {
  rank?: number;
}

/** A ticket for one terminal. */
export interface TerminalOut {
  /** Shown once, in the WebSocket's handshake */
  ticket: string;
  /** The subprotocol to offer, with the ticket as the second */
  protocol: string;
  /** To connect by */
  expires_at: string;
}

/** The terms of the score, each from 0 to 1. */
export interface TermsOut {
  locality: number;
  availability: number;
  cost: number;
  latency: number;
}

/** One tier, real and simulated apart. */
export interface TierCounts {
  tier: string;
  simulated: boolean;
  hosts: UseCounts;
  gpus: UseCounts;
}

/** One metric over time, the mean of all GPUs of a tier. */
export interface TierSeriesOut {
  metric: string;
  /** Null for GPUs that had none */
  tier: string | null;
  unit: string;
  points: ([number, number | null])[];
}

export interface TokenBody {
  name: string;
  roles?: Role[] | null;
  expires_in_s?: number;
  limits?: LimitsBody;
}

/** A new API token. */
export interface TokenMadeOut {
  id: string;
  name: string;
  roles: Role[];
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  last_used_at: string | null;
  /** From where it was last used */
  last_used_address: string | null;
  /** Its text, shown this once */
  token: string;
}

/** An API token, without its text. */
export interface TokenOut {
  id: string;
  name: string;
  roles: Role[];
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
  last_used_at: string | null;
  /** From where it was last used */
  last_used_address: string | null;
}

/** The traffic of a service over HTTPS, without connections under way; or the traffic between the members of a private network, as one of each two counts it, and how often such two were joined. Written every ten seconds. */
export interface TrafficOut {
  connections: number;
  bytes_in: number;
  bytes_out: number;
}

/** An offer to transfer a project to another organisation. */
export interface TransferOfferOut {
  project: string;
  name: string;
  /** The organisation that has it */
  source: string;
  /** The organisation that may accept it */
  target: string;
  /** True if the caller's organisation offers it */
  is_mine: boolean;
  /** RFC 3339 in UTC, with milliseconds */
  expires_at: string;
}

/** One row of the ledger. */
export interface TransferOut {
  id: string;
  debit: string;
  credit: string;
  /** A decimal amount of money */
  amount: string;
  currency: string;
  kind: string;
  rental_id: string | null;
  memo: string;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
}

/** What the ledger posted of one kind. */
export interface TransfersOut {
  kind: string;
  /** The kind in words */
  kind_title: string;
  /** A decimal amount of money */
  given: string;
  /** A decimal amount of money */
  got: string;
}

/** A host that a person has to look after: it is degraded, offline or in quarantine. */
export interface TroubledHostOut {
  id: string;
  name: string;
  simulated: boolean;
  headline: string;
  reason: string;
  /** What to do about it */
  remedy: string | null;
}

/** A place that was tried for a job or machine because there was no room here. */
export interface TryOut {
  number: number;
  /** `aws eu-central-1b` */
  place: string;
  backend: string;
  /** A run at a service, and no machine of ours */
  service: boolean;
  /** Its type, such as m5.large */
  machine: string;
  region: string;
  zone: string | null;
  spot: boolean;
  /** A decimal amount of money */
  price_per_hour: string;
  currency: string;
  /** asking, booting, ready (it has joined: the work starts there next), used, failed, or dropped: the work started elsewhere, or is over */
  state: TryState;
  /** Why it failed or was dropped */
  said: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  purchase_id: string | null;
  run_id: string | null;
}

/** The state of a try. ASKING: its provider is asked. BOOTING: there is a machine. READY: it has joined, and the work starts there next. USED: the work has run there. FAILED: it was not had, or did not suit. DROPPED: the work started elsewhere, or has ended. */
export type TryState = "asking" | "booting" | "ready" | "used" | "failed" | "dropped";

/** A relay by which tunnels may go. */
export interface TunnelAccessOut {
  id: string;
  /** host:port; the time that connecting takes is what to measure */
  address: string;
}

/** The TCP port of the workload to reach, and the relay to go by. */
export interface TunnelBody {
  port: number;
  /** Round trips to `accesses` of an earlier answer */
  measured?: MeasuredAccess[];
  /** Relays that do not answer from here */
  without?: string[];
}

/** The address of a tunnel, and the ticket that a renter shows there. */
export interface TunnelOut {
  id: string;
  /** Shown once, as bearer token, to the relay */
  grant: string;
  /** host:port of the relay */
  address: string;
  /** What its certificate has to name */
  server_name: string;
  /** The authority of that certificate */
  ca_pem: string;
  /** What the connection is upgraded to */
  protocol: string;
  /** The host's certificate for this tunnel, and the only one to trust then */
  host_pem: string;
  /** What that certificate names */
  host_server_name: string;
  /** In hexadecimal; its bytes are what the host is told first, inside TLS */
  secret: string;
  /** To connect by; the tunnel itself has no end of its own */
  expires_at: string;
  /** Whose `address` it is; null where the Master does not know */
  access_id: string | null;
  /** Those that may be measured for the next one; empty without a choice */
  accesses: TunnelAccessOut[];
}

/** The messages that are left. */
export interface UnreadOut {
  unread: number;
}

/** A slot that nobody rents, and why. */
export interface UnrentedOut {
  slot_id: string;
  /** `GPU 3`, or `CPU share 0` */
  name: string;
  gpu: string | null;
  tier: string | null;
  /** The most telling first */
  reasons: string[];
}

/** A backend where the work of the caller's project may buy machines, in the currency of its caps. */
export interface UsableBackendOut {
  name: string;
  title: string;
  /** How far the adapter was tried */
  level: LevelOutput;
  /** The same in a sentence */
  level_text: string;
  currency: string;
  /** The most that the project may spend on a day (UTC); null: no cap */
  per_day: string | null;
  /** The most that it may spend in all; null: no cap */
  in_all: string | null;
}

/** The resources that a cluster has used. */
export interface UsageHistoryOut {
  series: MemberSeriesOut[];
  step_s: number;
}

/** The resources that a cluster uses now. */
export interface UsageOut {
  /** Those with figures, by rank; the first figures come ten seconds after the start */
  members: MemberUsageOut[];
}

/** The number in each state; their sum is `total`. */
export interface UseCounts {
  total: number;
  idle: number;
  rented: number;
  faulty: number;
  offline: number;
  paused: number;
}

/** GPUs by state over time. A span in which no Master looked is absent. */
export interface UseHistoryOut {
  step_s: number;
  points: UsePointOut[];
}

/** The mean number of GPUs in each state in one span of time. */
export interface UsePointOut {
  /** RFC 3339 in UTC, with milliseconds */
  at: string;
  rented: number;
  idle: number;
  paused: number;
  faulty: number;
  offline: number;
}

/** The code that a device shows. */
export interface UserCodeBody {
  /** As the device shows it: ABCD-EFGH */
  user_code: string;
}

/** The user or service account that asks. */
export interface UserOut {
  id: string;
  name: string;
}

/** The state of a host's verification. */
export interface VerificationOut {
  host_id: string;
  state: string;
  words: string;
  /** When it is challenged next; null: as soon as it can be */
  due_at: string | null;
  /** Challenges since one had a good end */
  tries: number;
  gpus: CardVerificationOut[];
  /** Of all cards, the newest first, at most 100 */
  past: PastVerificationOut[];
}

/** A challenge of a host's free cards that has begun. */
export interface VerifyingOut {
  operation: OperationOut;
  host_id: string;
}

/** The health of a view of history. */
export interface ViewHealthOut {
  is_open: boolean;
  path: string;
  problem: string;
  /** How old the newest record is that it took in; 0 if it took in all */
  lag_ns: number;
  rows: number;
  bad_batches: number;
  misdated: number;
}

/** A volume to make. */
export interface VolumeBody {
  /** At most 40 small letters, digits, dots and dashes; the first a letter or digit */
  name: string;
  /** Of one version */
  max_bytes?: number;
}

/** A volume, and who has it now. */
export interface VolumeOut {
  id: string;
  name: string;
  /** The newest that was begun; 0: none */
  version: number;
  /** Of its newest whole version */
  size_bytes: number;
  files: number;
  max_bytes: number;
  saved_at: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** Why the last save came to nothing, or what it left out */
  problem: string | null;
  used_by: VolumeUseOut[];
}

/** A cluster that has it. */
export interface VolumeUseOut {
  cluster_id: string;
  cluster_name: string;
  phase: string;
  /** Whether it is the one that writes it */
  writes: boolean;
}

/** Seconds until the program starts. */
export interface WaitOut {
  p50: number;
  p90: number;
}

/** Why an entry is not ready, or that it is. */
export type Waits = "held" | "no_share" | "dependency_never_satisfied" | "dependency" | "begin" | "throttled" | "ready";

/** A change of the request with which it would fit now. */
export interface WayOut {
  /** In a sentence, with the host and the price */
  text: string;
  /** Fields of the request and their new values; null: leave it out */
  changes: Record<string, unknown>;
  /** Names of the hosts on which it would run */
  hosts: string[];
  /** A decimal amount of money */
  price_per_hour: string;
}

/** The weight of each term of a score; terms are from 0 to 1000. */
export interface WeightsOut {
  cost: number;
  packing: number;
  trust: number;
  home: number;
  grade: number;
}

/** The ability of the Master to store what it acknowledges: `ok` or `failing`. */
export interface WellOut {
  status: string;
  epoch: number;
  /** In words; only those of the store make it fail */
  problems: string[];
  /** Codes of what /operators/health describes */
  conditions: string[];
}

/** An alert with its subjects, its history and its messages. */
export interface WholeAlertOut {
  id: string;
  rule: string;
  /** The rule in words */
  rule_title: string;
  /** The id of what groups it: a host, relay, job, cluster, or `master` */
  cause: string;
  state: AlertState;
  severity: Severity;
  title: string;
  text: string;
  /** What to do about it */
  remedy: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  opened_at: string;
  /** When people were told; null: they were not */
  fired_at: string | null;
  acknowledged_at: string | null;
  acknowledged_by: string | null;
  silenced_until: string | null;
  resolved_at: string | null;
  /** How often it came back before it was resolved */
  flaps: number;
  assignee: string | null;
  /** GPUs, hosts or jobs that have the trouble now, with those held back */
  subject_count: number;
  /** The names of the first of them */
  subjects: string[];
  simulated: boolean;
  /** Of a host, cluster or job that is still known */
  cause_name: string | null;
  /** `operators`, and the ids of accounts */
  audiences: string[];
  affected: SubjectOut[];
  notes: NoteOut[];
  messages: MessageOut[];
}

/** The same, with what its machine wrote. */
export interface WholePurchaseOut {
  id: string;
  backend: string;
  state: State;
  /** Why it is in this state */
  reason: string | null;
  /** The project that it is for: nobody else's work runs on it */
  account_id: string;
  /** The name of that project */
  account: string | null;
  offer: string;
  kind: Kind;
  gpu: string | null;
  gpu_count: number;
  cpus: number;
  memory_bytes: number;
  region: string;
  zone: string | null;
  currency: string;
  /** A decimal amount of money */
  price_per_hour: string;
  /** The most that it may cost until it is ended */
  reserved: string;
  /** Its cost as it was expected when it was decided; null: nothing said how long */
  forecast: string | null;
  /** Owed to the provider so far */
  spent: string;
  /** Paid by the work that ran on it; null: it is not over */
  paid: string | null;
  /** Null: it is not over */
  billed_seconds: number | null;
  /** Without work */
  idle_seconds: number;
  /** By which the provider knows it */
  machine_id: string | null;
  host_id: string | null;
  /** The name of that host */
  host: string | null;
  /** The job or machine that caused it; null: an operator */
  for_id: string | null;
  /** The name of that job or machine */
  for_name: string | null;
  /** RFC 3339 in UTC, with milliseconds */
  created_at: string;
  /** RFC 3339 in UTC, with milliseconds */
  ends_at: string;
  ended_at: string | null;
  /** End of its console where it never joined, without secrets */
  console: string | null;
}

/** A reason why slots are not rented, or a step to a better grade, with the hosts that it is about. */
export interface WhyOut {
  tier: string;
  words: string;
  /** The first of them by name */
  host_id: string;
  host_name: string;
  hosts: number;
}

/** The part of a cluster that runs on one host. */
export interface WorkloadOut {
  id: string;
  host_id: string;
  host_name: string;
  phase: string;
  is_lost: boolean;
  detail: string | null;
  runtime: string;
  image: string | null;
  slots: string[];
  /** What keeps it apart from its neighbours: whole, mig, mps or shared */
  isolation: string | null;
  exit_code: number | null;
  ports: Record<string, number>;
  /** Signed by the host, in seconds */
  running_s: number;
  /** Which member it is; 0 where there is only one */
  rank: number;
  /** Where the other members reach it; null where there are none */
  address: string | null;
  /** False once another has its rank, or is to have it */
  is_member: boolean;
  /** Null until its command has ended by itself and they are brought in */
  results: ResultsOut | null;
}

/** Why; it is kept in the alert's history. */
export interface windrowmasterapialertroutesReasonBody {
  reason?: string;
}

/** A reason. */
export interface windrowmasterapilifecycleroutesReasonBody {
  /** Kept in the audit log */
  reason: string;
}
