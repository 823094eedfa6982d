// Every query of the console by name: its address, its key in the cache, how often it is repeated.
import { keepPreviousData, QueryCache, QueryClient, queryOptions, type UseQueryOptions } from "@tanstack/react-query";
import { paceOf } from "../hosts/stages.ts";
import { DAY_S } from "../parts/format.ts";
import { ApiProblem, everyPage, get, IDENTITIES, INVITATION, post, type Query } from "./client.ts";
import { connection } from "./connection.ts";
import { REGISTRY } from "./paths.ts";
import { handedOver, keepProject, projectHere, secret } from "./secret.ts";
import type {
  Access,
  AgentRow,
  Alert,
  AlertMail,
  AlertRules,
  AttentionList,
  AuditRow,
  AuditVerdict,
  BandwidthRounds,
  Binding,
  Box,
  Channel,
  CloudBackend,
  CloudBuyer,
  CloudKind,
  CloudOffer,
  CloudPurchase,
  Cluster,
  ClusterPlan,
  ClusterRequest,
  CommandLineOffer,
  CommandRow,
  DeletedProject,
  Delivery,
  Earnings,
  EventRow,
  Explained,
  FairShare,
  Findings,
  Forecast,
  GpuList,
  GpuPage,
  Health,
  History,
  Host,
  HostFacts,
  HostProofs,
  Inbox,
  Invitation,
  InvitationOpened,
  Job,
  JobImpact,
  JobRequest,
  JoinTokenRow,
  KeptEstimate,
  LinkedIdentity,
  MachineType,
  MaintenancePlan,
  MaintenanceWindow,
  MarketUser,
  Me,
  ObjectShare,
  Offer,
  Organisation,
  OrganisationMember,
  Overview,
  OwnHosts,
  OwnRuleRequest,
  Page,
  PaidDay,
  Person,
  Price,
  Profile,
  Project,
  ProjectOffer,
  Provider,
  ProviderButton,
  QueueList,
  Quota,
  Receipt,
  Report,
  ReportRow,
  ReportSchedule,
  Resource,
  RouteAnswer,
  RouteRequest,
  RulePreview,
  Secret,
  ServiceAccount,
  SessionRow,
  Silence,
  SimulatedHosts,
  Spending,
  SpendingLimit,
  Standing,
  StopTest,
  Template,
  TokenRow,
  UsableBackend,
  UsageHistory,
  UseHistory,
  Verification,
  Volume,
  WholeAlert,
} from "./types.ts";

/** Lists are kept fresh by streams where there are any; the rest is looked at again this often. */
const CALM_MS = 15_000;
const BRISK_MS = 4_000;
const MINUTE_MS = 60_000;
/** While somebody watches agents leave. */
const LIVE_MS = 1_000;
const LIST_MOST = 100;

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      if (error instanceof ApiProblem && error.problem.status === 401) signedOut();
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiProblem && error.problem.status > 0 && !error.problem.retryable),
      refetchOnWindowFocus: true,
      networkMode: "always", // the Master may be on this very machine: the browser's idea of "offline" says nothing
    },
    mutations: { networkMode: "always" },
  },
});

let before: Me | null = null;

/** Who was signed in last; null: nobody was. */
export const meBefore = (): Me | null => before;

export function signedOut(): void {
  if (secret() === null && queryClient.getQueryData(me.queryKey) !== null) queryClient.setQueryData(me.queryKey, null);
}

connection.subscribe(() => {
  if (connection.since() === null) void queryClient.invalidateQueries();
});

type Options<T> = Pick<UseQueryOptions<T>, "refetchInterval" | "staleTime" | "retry" | "enabled">;

const one = <T>(queryKey: readonly unknown[], path: string, options: Options<T> = {}) =>
  queryOptions<T>({ queryKey, queryFn: ({ signal }) => get<T>(path, undefined, signal), ...options });

/** A list that is short enough to be read whole. */
const all = <T>(queryKey: readonly unknown[], path: string, options: Options<T[]> = {}) =>
  queryOptions<T[]>({ queryKey, queryFn: ({ signal }) => everyPage<T>(path, {}, signal), ...options });

export interface DocsPlace {
  title: string;
  heading: string;
  address: string;
}

export interface Paged<T> {
  first: UseQueryOptions<Page<T>>;
  before: (cursor: string) => Promise<Page<T>>;
}

/** A list that is read from its newest end: its first page again and again, older pages when asked for. */
function paged<T>(queryKey: readonly unknown[], path: string, refetchInterval: number, query: Query = {}): Paged<T> {
  const page = (cursor?: string, signal?: AbortSignal) =>
    get<Page<T>>(path, { ...query, limit: LIST_MOST, cursor }, signal);
  return {
    first: queryOptions<Page<T>>({ queryKey, queryFn: ({ signal }) => page(undefined, signal), refetchInterval }),
    before: (cursor) => page(cursor),
  };
}

/** Who is signed in, in the project of this tab; where that is closed to the user, in the session's. */
async function whoIsHere(signal: AbortSignal): Promise<Me> {
  const asked = projectHere();
  let found: Me;
  try {
    found = await get<Me>("/me", undefined, signal);
  } catch (failure) {
    if (asked === null || !(failure instanceof ApiProblem && [403, 404].includes(failure.problem.status)))
      throw failure;
    keepProject(null);
    found = await get<Me>("/me", undefined, signal);
  }
  if (projectHere() === null) keepProject(found.account.id); // what other tabs change is not this one's
  return found;
}

/** Null: nobody is signed in. */
export const me = queryOptions<Me | null>({
  queryKey: ["me"],
  queryFn: async ({ signal }) => {
    await handedOver();
    if (secret() === null) return null;
    try {
      before = await whoIsHere(signal);
      return before;
    } catch (failure) {
      if (!(failure instanceof ApiProblem && failure.problem.status === 401)) throw failure;
      return null;
    }
  },
  refetchInterval: CALM_MS,
});

export const gpus = one<GpuList>(["gpus"], "/gpus");
export const hosts = all<Host>(["hosts"], "/hosts", { refetchInterval: CALM_MS });
export const host = (id: string) =>
  one<Host>(["host", id], `/hosts/${encodeURIComponent(id)}`, { refetchInterval: BRISK_MS });

const PACES = { live: LIVE_MS, brisk: BRISK_MS, calm: CALM_MS } as const;
/** The stages of a host: every second while the Master tests it. */
export const hostProof = (id: string) =>
  one<HostProofs>(["host-proof", id], `/hosts/${encodeURIComponent(id)}/proof`, {
    refetchInterval: (query) => PACES[paceOf(query.state.data?.stages ?? [])],
  });

export const gpu = (id: string) =>
  one<GpuPage>(["gpu", id], `/gpus/${encodeURIComponent(id)}`, { refetchInterval: BRISK_MS });

/** The results of the challenges of a host's GPUs. */
export const verification = (hostId: string) =>
  one<Verification>(["verification", hostId], `/hosts/${encodeURIComponent(hostId)}/verification`, {
    refetchInterval: CALM_MS,
  });

/** The reliability of a host, and the reasons why it is not rented. */
export const hostFacts = (hostId: string) =>
  one<HostFacts>(["host-facts", hostId], `/hosts/${encodeURIComponent(hostId)}/facts`, { staleTime: CALM_MS });
/** Bandwidth measurements of a host, the newest first. */
export const bandwidthRounds = (hostId: string) =>
  one<BandwidthRounds>(["bandwidth-rounds", hostId], `/hosts/${encodeURIComponent(hostId)}/bandwidth`, {
    refetchInterval: CALM_MS,
  });
export const standing = (hostId: string) =>
  one<Standing>(["standing", hostId], `/hosts/${encodeURIComponent(hostId)}/standing`, { refetchInterval: CALM_MS });

export const history = (hostId: string, metrics: readonly string[], spanS: number) =>
  queryOptions({
    queryKey: ["history", hostId, spanS, metrics],
    staleTime: Infinity,
    gcTime: 0,
    queryFn: ({ signal }) => {
      const to = Date.now();
      const query = {
        metric: [...metrics],
        from: new Date(to - spanS * 1000).toISOString(),
        to: new Date(to).toISOString(),
        // Of a week and a month the Master chooses: means of hours.
        step_s: spanS > DAY_S ? undefined : Math.max(5, Math.round(spanS / 300)),
      };
      return get<History>(`/hosts/${encodeURIComponent(hostId)}/history`, query, signal);
    },
  });

export const overview = one<Overview>(["overview"], "/overview", { refetchInterval: BRISK_MS });
/** The same with the revenue of one's own hosts alone. */
export const ownOverview = one<Overview>(["overview", "own"], "/overview?own=true", { refetchInterval: CALM_MS });
/** Of the whole market for who looks after it; own: of one's own hosts. */
export const attention = (own: boolean) =>
  one<AttentionList>(["overview", "attention", own], `/overview/attention?own=${own}`, { refetchInterval: CALM_MS });
export const useHistory = (span: "day" | "week" | "month") =>
  queryOptions({
    queryKey: ["use-history", span],
    queryFn: ({ signal }) => get<UseHistory>("/overview/history", { span }, signal),
    refetchInterval: MINUTE_MS,
    placeholderData: keepPreviousData,
  });
export const ownHosts = one<OwnHosts>(["overview", "hosts"], "/overview/hosts", { refetchInterval: CALM_MS });
/** What a search of the documentation found, for the palette. */
export const docsFound = (text: string) =>
  queryOptions<readonly DocsPlace[]>({
    queryKey: ["docs-found", text],
    staleTime: DAY_S * 1000,
    retry: false,
    queryFn: async ({ signal }) => {
      const answer = await fetch(`/docs/search.json?q=${encodeURIComponent(text)}`, { signal, credentials: "omit" });
      return answer.ok ? ((await answer.json()) as { items: DocsPlace[] }).items : [];
    },
  });
/** For the palette: the few hosts that a typed text may mean. */
export const hostsFound = (text: string) =>
  queryOptions({
    queryKey: ["hosts-found", text],
    staleTime: CALM_MS,
    queryFn: ({ signal }) => get<Page<Host>>("/hosts", { q: text, limit: 8 }, signal),
  });

/** The keys of all that an event of an alert changes: `Bell` reads them again. */
export const ALERT_KEYS = [["alerts"], ["inbox"]] as const;
export const alerts = (state: "open" | "resolved" | "silenced") =>
  paged<Alert>(["alerts", state], "/alerts", CALM_MS, { state });
/** own: those of one's own project alone, for the home of a product. */
export const openAlerts = (own: boolean) =>
  one<Page<Alert>>(["alerts", "home", own], `/alerts?own=${own}`, { refetchInterval: CALM_MS });
/** The open ones about one thing. */
export const alertsOf = (cause: string) =>
  one<Page<Alert>>(["alerts", "of", cause], `/alerts?limit=20&cause=${encodeURIComponent(cause)}`, {
    refetchInterval: CALM_MS,
  });
export const alert = (id: string) =>
  one<WholeAlert>(["alerts", "one", id], `/alerts/${encodeURIComponent(id)}`, { refetchInterval: CALM_MS });
export const inbox = one<Inbox>(["inbox"], "/inbox?limit=20", { refetchInterval: MINUTE_MS });
export const alertRules = one<AlertRules>(["alert rules"], "/alert-rules?limit=500", { staleTime: CALM_MS });
/** The firings of the last 7 days; nothing is saved. */
export const rulePreview = (body: OwnRuleRequest) =>
  queryOptions({
    queryKey: ["rule preview", body],
    queryFn: () => post<RulePreview>("/alert-rules/preview", body),
    staleTime: MINUTE_MS,
    retry: false,
  });
export const silences = all<Silence>(["silences"], "/alert-silences", { refetchInterval: CALM_MS });
export const maintenance = all<MaintenanceWindow>(["maintenance"], "/maintenance-windows", { staleTime: CALM_MS });
export const maintenanceOf = (id: string) =>
  one<Page<MaintenanceWindow>>(["maintenance", id], `/maintenance-windows?host=${encodeURIComponent(id)}`, {
    staleTime: CALM_MS,
  });
/** When nothing runs any more on these hosts. */
export const maintenancePlan = (hosts: readonly string[]) =>
  queryOptions({
    queryKey: ["maintenance plan", hosts],
    queryFn: () => post<MaintenancePlan>("/maintenance-windows/plan", { hosts }),
    staleTime: CALM_MS,
    retry: false,
  });
export const channels = all<Channel>(["channels"], "/channels", { staleTime: CALM_MS });
/** words: `alert` or `state`, as the API takes them. */
export const deliveries = (words: Readonly<Record<string, string>>) =>
  paged<Delivery>(["deliveries", words], "/deliveries", CALM_MS, words);
export const alertMail = one<AlertMail>(["alert mail"], "/user/alert-mail", { staleTime: CALM_MS });

export interface EventsWanted {
  subject?: string | undefined;
  /** At least so severe. */
  severity: EventRow["severity"];
  since?: string | undefined;
}
export const events = (wanted: EventsWanted) => paged<EventRow>(["events", wanted], "/events", CALM_MS, { ...wanted });

export const commands = (hostId?: string) =>
  paged<CommandRow>(["commands", hostId ?? ""], "/commands", BRISK_MS, { host: hostId });
export const command = (id: string) =>
  one<CommandRow>(["command", id], `/commands/${encodeURIComponent(id)}`, { refetchInterval: BRISK_MS });

/** Filters of the audit log: exact texts; an action may be a prefix that ends with a dot. */
export interface AuditWanted {
  actor?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}
export const audit = (wanted: AuditWanted) => paged<AuditRow>(["audit", wanted], "/audit", CALM_MS, { ...wanted });
export const auditVerdict = () => get<AuditVerdict>("/audit/verify");
export const sessions = all<SessionRow>(["sessions"], "/sessions", { refetchInterval: CALM_MS });

export const offers = all<Offer>(["offers"], "/offers", { refetchInterval: CALM_MS });
/** What can be rented, by machine type, narrowed by the Master. */
export const machineTypes = (query: Query) =>
  queryOptions<MachineType[]>({
    queryKey: ["machine-types", query],
    queryFn: ({ signal }) => everyPage<MachineType>("/machine-classes", query, signal),
    refetchInterval: CALM_MS,
    placeholderData: keepPreviousData,
  });
/** The prices at which rentals of a tier began, by day. */
export const paid = (tier: string, simulated: boolean) =>
  queryOptions<PaidDay[]>({
    queryKey: ["paid", tier, simulated],
    queryFn: ({ signal }) => everyPage<PaidDay>("/machine-classes/paid", { tier, simulated }, signal),
    staleTime: MINUTE_MS,
  });
/** The cheapest at each other provider. The Master's book changes with its release. */
export const prices = queryOptions<Price[]>({
  queryKey: ["prices"],
  queryFn: ({ signal }) => everyPage<Price>("/prices", { compare: true }, signal),
  staleTime: DAY_S * 1000,
});
export const templates = all<Template>(["templates"], "/templates", { refetchInterval: CALM_MS });
export const resources = one<Resource[]>(["resources"], REGISTRY, { refetchInterval: CALM_MS });
export const bindings = all<Binding>(["bindings"], "/resources", { refetchInterval: CALM_MS });
export const volumes = all<Volume>(["volumes"], "/volumes", { refetchInterval: CALM_MS });
export const secrets = all<Secret>(["secrets"], "/secrets", { refetchInterval: CALM_MS });
export const clusters = paged<Cluster>(["clusters"], "/clusters", BRISK_MS);
/** With those by which the Master tests hosts. */
export const clustersAndTests = paged<Cluster>(["clusters", "tests"], "/clusters", BRISK_MS, { tests: true });
export const cluster = (id: string) =>
  one<Cluster>(["cluster", id], `/clusters/${encodeURIComponent(id)}`, { refetchInterval: BRISK_MS });
export const backends = all<CloudBackend>(["backends"], "/backends", { refetchInterval: BRISK_MS });
export const backendKinds = all<CloudKind>(["backend-kinds"], "/backend-kinds", { staleTime: Infinity });
/** The projects whose work may buy at a backend. */
export const buyers = (backend: string) =>
  all<CloudBuyer>(["buyers", backend], `/backends/${encodeURIComponent(backend)}/buyers`);
/** The backends where the work of this project may buy machines. */
export const usableBackends = all<UsableBackend>(["usable backends"], "/me/backends", { staleTime: CALM_MS });
export const livingPurchases = queryOptions<CloudPurchase[]>({
  queryKey: ["purchases", "living"],
  queryFn: ({ signal }) => everyPage<CloudPurchase>("/purchases", { living: true }, signal),
  refetchInterval: BRISK_MS,
});
export const endedPurchases = paged<CloudPurchase>(["purchases", "ended"], "/purchases", CALM_MS, { living: false });
/** Machines that could be bought there now: read anew by each form. */
export const cloudOffers = (backend: string, wanted: Query) =>
  queryOptions({
    queryKey: ["cloud-offers", backend, wanted],
    queryFn: ({ signal }) => everyPage<CloudOffer>(`/backends/${encodeURIComponent(backend)}/offers`, wanted, signal),
    enabled: backend !== "",
    gcTime: 0,
  });

/** The resources that a cluster has used. endedAt: where the charts end; null: now. */
export const usage = (id: string, spanS: number, endedAt: string | null) =>
  queryOptions({
    queryKey: ["usage", id, spanS, endedAt],
    refetchInterval: endedAt !== null ? false : spanS > DAY_S ? CALM_MS : BRISK_MS,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const to = endedAt === null ? Date.now() : Date.parse(endedAt);
      const query = { from: new Date(to - spanS * 1000).toISOString(), to: new Date(to).toISOString() };
      return get<UsageHistory>(`/clusters/${encodeURIComponent(id)}/usage/history`, query, signal);
    },
  });
export const box = (id: string) =>
  one<Box>(["box", id], `/clusters/${encodeURIComponent(id)}/box`, { staleTime: CALM_MS, retry: false });
export const fairShares = all<FairShare>(["fair-shares"], "/fair-shares", { refetchInterval: CALM_MS });
export const quotas = all<Quota>(["quotas"], "/quotas", { refetchInterval: CALM_MS });
/** The first entries in the order in which they start. */
export const queue = (limit: number) =>
  queryOptions({
    queryKey: ["queue", limit],
    queryFn: ({ signal }) => get<QueueList>("/queue", { limit }, signal),
    refetchInterval: BRISK_MS,
    placeholderData: keepPreviousData,
  });
/** Of a job or a machine. host: why not there. */
export const explain = (id: string, host?: string) =>
  queryOptions({
    queryKey: ["explain", id, host],
    queryFn: ({ signal }) => get<Explained>(`/explain/${encodeURIComponent(id)}`, { host }, signal),
    staleTime: CALM_MS,
    refetchInterval: CALM_MS,
  });
export const plan = (request: ClusterRequest) =>
  queryOptions({
    queryKey: ["plan", request],
    queryFn: () => post<ClusterPlan>("/clusters/plan", request),
    staleTime: BRISK_MS,
    refetchInterval: CALM_MS,
    retry: false,
  });

export const jobs = paged<Job>(["jobs"], "/jobs", BRISK_MS);
export const job = (id: string) =>
  one<Job>(["job", id], `/jobs/${encodeURIComponent(id)}`, {
    refetchInterval: (query) => (query.state.data?.ended_at ? CALM_MS : BRISK_MS),
  });
export const jobImpact = (id: string, over: boolean) =>
  one<JobImpact>(["job impact", id, over], `/jobs/${encodeURIComponent(id)}/impact`, { refetchInterval: CALM_MS });
export const findings = (of: string, over: boolean) =>
  one<Findings>(["findings", of, over], `${of}/findings`, { refetchInterval: over ? false : CALM_MS });
export const jobPlan = (request: JobRequest) =>
  queryOptions({
    queryKey: ["job plan", request],
    queryFn: () => post<ClusterPlan>("/jobs/plan", request),
    staleTime: BRISK_MS,
    refetchInterval: CALM_MS,
    retry: false,
  });
export const routed = (request: RouteRequest) =>
  queryOptions({
    queryKey: ["route", request],
    queryFn: () => post<RouteAnswer>("/route", request),
    staleTime: CALM_MS,
    gcTime: CALM_MS,
    retry: false,
  });
export const forecast = (routeId: string, over: boolean) =>
  queryOptions({
    queryKey: ["forecast", routeId],
    queryFn: ({ signal }) => get<Forecast>(`/routes/${encodeURIComponent(routeId)}`, undefined, signal),
    refetchInterval: over ? false : CALM_MS,
    retry: false,
  });
export const keptEstimates = paged<KeptEstimate>(["kept estimates"], "/routes", CALM_MS);
export const receipts = (clusterId?: string, tests?: true) =>
  paged<Receipt>(["receipts", clusterId ?? "", tests ?? false], "/receipts", CALM_MS, { cluster: clusterId, tests });
export const receipt = (id: string) =>
  one<Receipt>(["receipt", id], `/receipts/${encodeURIComponent(id)}`, { refetchInterval: BRISK_MS });

const ofMonth = <T>(path: string, by: string, month: string | undefined, isAll: boolean) =>
  queryOptions<T>({
    queryKey: [path, by, month ?? "", isAll],
    queryFn: ({ signal }) => get<T>(path, { by, month, scope: isAll ? "all" : undefined }, signal),
    refetchInterval: CALM_MS,
    placeholderData: keepPreviousData,
  });
/** What a month cost, and what it brought; month: undefined: the present one. */
export const spending = (by: string, month: string | undefined, isAll: boolean) =>
  ofMonth<Spending>("/usage", by, month, isAll);
export const earnings = (by: string, month: string | undefined, isAll: boolean) =>
  ofMonth<Earnings>("/earnings", by, month, isAll);

/** Sums of a period; words: as the API takes them. */
export const report = (words: Readonly<Record<string, string>>) =>
  queryOptions<Report>({
    queryKey: ["report", words],
    queryFn: ({ signal }) => get<Report>("/reports", words, signal),
    placeholderData: keepPreviousData,
  });
/** The greatest of the rows that they are the sums of. */
export const reportRows = (words: Readonly<Record<string, string>>) =>
  queryOptions<Page<ReportRow> & { count: number }>({
    queryKey: ["report rows", words],
    queryFn: ({ signal }) => get("/reports/rows", { ...words, by: undefined, limit: 500 }, signal),
  });
export const schedules = all<ReportSchedule>(["report schedules"], "/report-schedules", { staleTime: CALM_MS });

export const people = all<Person>(["people"], "/accounts", { refetchInterval: CALM_MS });
export const users = all<MarketUser>(["users"], "/users", { refetchInterval: CALM_MS });
/** The user who asks, with organisations and projects. */
export const user = one<Profile>(["user"], "/user", { staleTime: CALM_MS });
export const identities = all<LinkedIdentity>(["identities"], IDENTITIES, { staleTime: CALM_MS });
/** By which one can sign in; asked without a session. */
export const signInProviders = all<ProviderButton>(["sign-in providers"], "/sign-in/providers", { staleTime: CALM_MS });
export const providers = all<Provider>(["providers"], "/identity-providers", { refetchInterval: CALM_MS });
export const organisation = one<Organisation>(["organisation"], "/organisation", { staleTime: CALM_MS, retry: false });
export const members = all<OrganisationMember>(["members"], "/members", { refetchInterval: CALM_MS });
export const invitations = all<Invitation>(["invitations"], "/invitations", { refetchInterval: CALM_MS });
export const INVITATION_KEY = "invitation";
/** The invitation that a link is for. Its key holds the secret: it is kept no longer than it is looked at. */
export const invitationOf = (secret: string) =>
  queryOptions({
    queryKey: [INVITATION_KEY, secret],
    queryFn: () => post<InvitationOpened>(INVITATION, { secret }),
    staleTime: Infinity,
    gcTime: 0,
  });
export const SHARES_KEY = "shares";
const sharesAt = (path: string, objectId?: string) =>
  queryOptions<ObjectShare[]>({
    queryKey: [SHARES_KEY, path, objectId ?? ""],
    queryFn: ({ signal }) => everyPage<ObjectShare>(path, { object_id: objectId }, signal),
    refetchInterval: CALM_MS,
  });
/** The shares of one object of the project. */
export const shares = (objectId: string) => sharesAt("/shares", objectId);
/** What others share with the user; of one object where it is named. */
export const receivedShares = (objectId?: string) => sharesAt("/shares/received", objectId);
/** The line that installs `windrow`. */
export const cli = one<CommandLineOffer>(["cli"], "/cli", { staleTime: CALM_MS, retry: false });
export const projects = all<Project>(["projects"], "/projects");
export const deletedProjects = all<DeletedProject>(["deleted projects"], "/projects/deleted");
/** Projects that the organisation offers to others, or that others offer to it. */
export const projectOffers = all<ProjectOffer>(["project offers"], "/project-transfers", {
  refetchInterval: CALM_MS,
});
export const serviceAccounts = all<ServiceAccount>(["service-accounts"], "/service-accounts");
export const tokens = all<TokenRow>(["tokens"], "/tokens");
/** Of the present project, its tokens and service accounts, and of other projects that the user sees. */
export const limits = all<SpendingLimit>(["limits"], "/limits", { refetchInterval: CALM_MS });
export const simulatedHosts = one<SimulatedHosts>(["simulated-hosts"], "/simulated-hosts", {
  staleTime: CALM_MS,
  retry: false,
});
/** Those of one, set or not: read anew by each form, which puts all of them. */
export const limitsOf = (path: string) =>
  queryOptions({
    queryKey: [...limits.queryKey, path],
    queryFn: ({ signal }) => get<SpendingLimit>(path, undefined, signal),
    staleTime: Infinity,
    gcTime: 0,
  });
export const joinTokens = all<JoinTokenRow>(["join-tokens"], "/join-tokens");
export const health = one<Health>(["health"], "/operators/health", { refetchInterval: BRISK_MS });
export const accesses = all<Access>(["accesses"], "/accesses", {
  refetchInterval: (query) =>
    query.state.data?.some((one) => one.state === "draining" && one.agents > 0) ? LIVE_MS : BRISK_MS,
});
/** The Access of each agent; changes come by the fleet's stream. */
export const accessAgents = all<AgentRow>(["access-agents"], "/accesses/agents", { refetchInterval: CALM_MS });
export const accessStop = (id: string) =>
  one<StopTest>(["access-stop", id], `/accesses/${encodeURIComponent(id)}/stop`, {
    refetchInterval: (query) => (query.state.data?.phase === "running" ? LIVE_MS : false),
  });
