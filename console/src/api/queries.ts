// What the screens read, by name; how long it stays good; what one action makes stale.
import { QueryCache, QueryClient, queryOptions } from "@tanstack/react-query";
import { paceOf } from "../stages.ts";
import { ApiProblem, everyPage, get, post } from "./client.ts";
import { connection } from "./connection.ts";
import { handedOver, secret } from "./secret.ts";
import type {
  Access,
  AgentRow,
  AuditRow,
  AuditVerdict,
  BandwidthRounds,
  Box,
  Cluster,
  ClusterPlan,
  ClusterRequest,
  CommandRow,
  EventRow,
  Explanation,
  GpuList,
  GpuPage,
  Health,
  History,
  Host,
  HostFacts,
  HostProofs,
  Job,
  JobImpact,
  JobRequest,
  JoinTokenRow,
  Me,
  Offer,
  Overview,
  Page,
  Person,
  Receipt,
  SessionRow,
  Standing,
  StopTest,
  Template,
  TokenRow,
  Verification,
  Volume,
} from "./types.ts";

/** Lists are kept fresh by streams where there are any; the rest is looked at again this often. */
const CALM_MS = 15_000;
const BRISK_MS = 4_000;
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

export function signedOut(): void {
  if (secret() === null && queryClient.getQueryData(me.queryKey) !== null) queryClient.setQueryData(me.queryKey, null);
}

connection.subscribe(() => {
  if (connection.since() === null) void queryClient.invalidateQueries();
});

/** Null: nobody is signed in. */
export const me = queryOptions<Me | null>({
  queryKey: ["me"],
  queryFn: async ({ signal }) => {
    await handedOver();
    if (secret() === null) return null;
    try {
      return await get<Me>("/me", undefined, signal);
    } catch (failure) {
      if (!(failure instanceof ApiProblem && failure.problem.status === 401)) throw failure;
      return null;
    }
  },
  refetchInterval: CALM_MS,
});

export const gpus = queryOptions({
  queryKey: ["gpus"],
  queryFn: ({ signal }) => get<GpuList>("/gpus", undefined, signal),
});
export const hosts = queryOptions({
  queryKey: ["hosts"],
  queryFn: ({ signal }) => everyPage<Host>("/hosts", {}, signal),
  refetchInterval: CALM_MS,
});
export const host = (id: string) =>
  queryOptions({
    queryKey: ["host", id],
    queryFn: ({ signal }) => get<Host>(`/hosts/${encodeURIComponent(id)}`, undefined, signal),
    refetchInterval: BRISK_MS,
  });

const PACES = { live: LIVE_MS, brisk: BRISK_MS, calm: CALM_MS } as const;
/** How far a host has come: every second while the Master tries it. */
export const hostProof = (id: string) =>
  queryOptions({
    queryKey: ["host-proof", id],
    queryFn: ({ signal }) => get<HostProofs>(`/hosts/${encodeURIComponent(id)}/proof`, undefined, signal),
    refetchInterval: (query) => PACES[paceOf(query.state.data?.stages ?? [])],
  });

export const gpu = (id: string) =>
  queryOptions({
    queryKey: ["gpu", id],
    queryFn: ({ signal }) => get<GpuPage>(`/gpus/${encodeURIComponent(id)}`, undefined, signal),
    refetchInterval: BRISK_MS,
  });

/** What the challenges of a host's cards came to. */
export const verification = (hostId: string) =>
  queryOptions({
    queryKey: ["verification", hostId],
    queryFn: ({ signal }) => get<Verification>(`/hosts/${encodeURIComponent(hostId)}/verification`, undefined, signal),
    refetchInterval: CALM_MS,
  });

/** How far one can rely on a host, and why nobody rents what it offers. */
export const hostFacts = (hostId: string) =>
  queryOptions({
    queryKey: ["host-facts", hostId],
    queryFn: ({ signal }) => get<HostFacts>(`/hosts/${encodeURIComponent(hostId)}/facts`, undefined, signal),
    staleTime: CALM_MS,
  });
/** What relays found of its line, the newest round first. */
export const bandwidthRounds = (hostId: string) =>
  queryOptions({
    queryKey: ["bandwidth-rounds", hostId],
    queryFn: ({ signal }) => get<BandwidthRounds>(`/hosts/${encodeURIComponent(hostId)}/bandwidth`, undefined, signal),
    refetchInterval: CALM_MS,
  });
export const standing = (hostId: string) =>
  queryOptions({
    queryKey: ["standing", hostId],
    queryFn: ({ signal }) => get<Standing>(`/hosts/${encodeURIComponent(hostId)}/standing`, undefined, signal),
    refetchInterval: CALM_MS,
  });

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
        step_s: Math.max(5, Math.round(spanS / 300)),
      };
      return get<History>(`/hosts/${encodeURIComponent(hostId)}/history`, query, signal);
    },
  });

export const overview = queryOptions({
  queryKey: ["overview"],
  queryFn: ({ signal }) => get<Overview>("/overview", undefined, signal),
  refetchInterval: BRISK_MS,
});
/** For the palette: the few hosts that a typed text may mean. */
export const hostsFound = (text: string) =>
  queryOptions({
    queryKey: ["hosts-found", text],
    enabled: text !== "",
    staleTime: CALM_MS,
    queryFn: ({ signal }) => get<Page<Host>>("/hosts", { q: text, limit: 8 }, signal),
  });

export const events = (subject?: string) =>
  queryOptions({
    queryKey: ["events", subject ?? ""],
    queryFn: ({ signal }) => get<Page<EventRow>>("/events", { subject, limit: LIST_MOST }, signal),
    refetchInterval: CALM_MS,
  });
export const eventsBefore = (subject: string | undefined, cursor: string) =>
  get<Page<EventRow>>("/events", { subject, limit: LIST_MOST, cursor });

export const commands = (hostId?: string) =>
  queryOptions({
    queryKey: ["commands", hostId ?? ""],
    queryFn: ({ signal }) => get<Page<CommandRow>>("/commands", { host: hostId, limit: LIST_MOST }, signal),
    refetchInterval: BRISK_MS,
  });
export const commandsBefore = (hostId: string | undefined, cursor: string) =>
  get<Page<CommandRow>>("/commands", { host: hostId, limit: LIST_MOST, cursor });
export const command = (id: string) =>
  queryOptions({
    queryKey: ["command", id],
    queryFn: ({ signal }) => get<CommandRow>(`/commands/${encodeURIComponent(id)}`, undefined, signal),
    refetchInterval: BRISK_MS,
  });

/** What of the audit log: exact texts; an action may be a beginning that ends with a dot. */
export interface AuditWanted {
  actor?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}
export const audit = (wanted: AuditWanted) =>
  queryOptions({
    queryKey: ["audit", wanted],
    queryFn: ({ signal }) => get<Page<AuditRow>>("/audit", { ...wanted, limit: LIST_MOST }, signal),
    refetchInterval: CALM_MS,
  });
export const auditBefore = (wanted: AuditWanted, cursor: string) =>
  get<Page<AuditRow>>("/audit", { ...wanted, limit: LIST_MOST, cursor });
export const auditVerdict = () => get<AuditVerdict>("/audit/verify");
export const sessions = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => everyPage<SessionRow>("/sessions", {}, signal),
  refetchInterval: CALM_MS,
});

export const offers = queryOptions({
  queryKey: ["offers"],
  queryFn: ({ signal }) => everyPage<Offer>("/offers", {}, signal),
  refetchInterval: CALM_MS,
});
export const templates = queryOptions({
  queryKey: ["templates"],
  queryFn: ({ signal }) => everyPage<Template>("/templates", {}, signal),
  refetchInterval: CALM_MS,
});
export const volumes = queryOptions({
  queryKey: ["volumes"],
  queryFn: ({ signal }) => everyPage<Volume>("/volumes", {}, signal),
  refetchInterval: CALM_MS,
});
export const clusters = queryOptions({
  queryKey: ["clusters"],
  queryFn: ({ signal }) => get<Page<Cluster>>("/clusters", { limit: LIST_MOST }, signal),
  refetchInterval: BRISK_MS,
});
export const cluster = (id: string) =>
  queryOptions({
    queryKey: ["cluster", id],
    queryFn: ({ signal }) => get<Cluster>(`/clusters/${encodeURIComponent(id)}`, undefined, signal),
    refetchInterval: BRISK_MS,
  });
export const box = (id: string) =>
  queryOptions({
    queryKey: ["box", id],
    queryFn: ({ signal }) => get<Box>(`/clusters/${encodeURIComponent(id)}/box`, undefined, signal),
    staleTime: CALM_MS,
    retry: false,
  });
export const explain = (id: string) =>
  queryOptions({
    queryKey: ["explain", id],
    queryFn: ({ signal }) => get<Explanation>(`/clusters/${encodeURIComponent(id)}/explain`, undefined, signal),
    staleTime: CALM_MS,
  });
export const plan = (request: ClusterRequest) =>
  queryOptions({
    queryKey: ["plan", request],
    queryFn: () => post<ClusterPlan>("/clusters/plan", request),
    staleTime: BRISK_MS,
    refetchInterval: CALM_MS,
    retry: false,
  });

export const jobs = queryOptions({
  queryKey: ["jobs"],
  queryFn: ({ signal }) => get<Page<Job>>("/jobs", { limit: LIST_MOST }, signal),
  refetchInterval: BRISK_MS,
});
export const job = (id: string) =>
  queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) => get<Job>(`/jobs/${encodeURIComponent(id)}`, undefined, signal),
    refetchInterval: (query) => (query.state.data?.ended_at ? CALM_MS : BRISK_MS),
  });
export const jobImpact = (id: string, over: boolean) =>
  queryOptions({
    queryKey: ["job impact", id, over],
    queryFn: ({ signal }) => get<JobImpact>(`/jobs/${encodeURIComponent(id)}/impact`, undefined, signal),
    refetchInterval: CALM_MS,
  });
export const jobPlan = (request: JobRequest) =>
  queryOptions({
    queryKey: ["job plan", request],
    queryFn: () => post<ClusterPlan>("/jobs/plan", request),
    staleTime: BRISK_MS,
    refetchInterval: CALM_MS,
    retry: false,
  });
export const receipts = (clusterId?: string) =>
  queryOptions({
    queryKey: ["receipts", clusterId ?? ""],
    queryFn: ({ signal }) => get<Page<Receipt>>("/receipts", { cluster: clusterId, limit: LIST_MOST }, signal),
    refetchInterval: CALM_MS,
  });
export const receipt = (id: string) =>
  queryOptions({
    queryKey: ["receipt", id],
    queryFn: ({ signal }) => get<Receipt>(`/receipts/${encodeURIComponent(id)}`, undefined, signal),
    refetchInterval: BRISK_MS,
  });

export const people = queryOptions({
  queryKey: ["people"],
  queryFn: ({ signal }) => everyPage<Person>("/accounts", {}, signal),
  refetchInterval: CALM_MS,
});
export const tokens = queryOptions({
  queryKey: ["tokens"],
  queryFn: ({ signal }) => everyPage<TokenRow>("/tokens", {}, signal),
});
export const joinTokens = queryOptions({
  queryKey: ["join-tokens"],
  queryFn: ({ signal }) => everyPage<JoinTokenRow>("/join-tokens", {}, signal),
});
export const health = queryOptions({
  queryKey: ["health"],
  queryFn: ({ signal }) => get<Health>("/operators/health", undefined, signal),
  refetchInterval: BRISK_MS,
});
export const accesses = queryOptions({
  queryKey: ["accesses"],
  queryFn: ({ signal }) => everyPage<Access>("/accesses", {}, signal),
  refetchInterval: (query) =>
    query.state.data?.some((one) => one.state === "draining" && one.agents > 0) ? LIVE_MS : BRISK_MS,
});
/** Where each agent is; what changes meanwhile is on the fleet's stream. */
export const accessAgents = queryOptions({
  queryKey: ["access-agents"],
  queryFn: ({ signal }) => everyPage<AgentRow>("/accesses/agents", {}, signal),
  refetchInterval: CALM_MS,
});
export const accessStop = (id: string) =>
  queryOptions({
    queryKey: ["access-stop", id],
    queryFn: ({ signal }) => get<StopTest>(`/accesses/${encodeURIComponent(id)}/stop`, undefined, signal),
    refetchInterval: (query) => (query.state.data?.phase === "running" ? LIVE_MS : false),
  });
