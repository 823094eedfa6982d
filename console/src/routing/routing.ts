// A workload as the form has it, the request that asks where it should run, and the bars of what it would cost. Pure.
import type { Recommendation, RouteRequest } from "../api/types.ts";
import { GIB, toBytes } from "../parts/format.ts";

export interface RouteDraft {
  code: string;
  hours: string;
  gpus: number;
  cpus: number;
  gpu: string;
  dataset: string;
  results: string;
  /** The most that the run may cost, in USD. */
  limit: string;
  optimize: "balanced" | "cost" | "speed";
  interruptible: boolean;
}

export const BLANK: RouteDraft = {
  code: "",
  hours: "",
  gpus: 1,
  cpus: 1,
  gpu: "",
  dataset: "",
  results: "",
  limit: "",
  optimize: "balanced",
  interruptible: false,
};

/** Characters of a program that is read, as the API bounds it. */
const PROGRAM_MAX = 1 << 20;
/** Characters up to which the editor grows with its text; measuring more than this stops the page. */
export const MEASURED_MAX = 50_000;
export const TOO_LONG = "More than 1 MiB is not read. Leave the program out, and say below what it needs.";
export const isTooLong = (code: string): boolean => code.length > PROGRAM_MAX;

const amount = (text: string): number | undefined => (text.trim() === "" ? undefined : Number(text));

const isFault = (value: number | undefined, least: number): boolean =>
  value !== undefined && !(Number.isFinite(value) && value >= least);

/** What a form asks for. gpu: a model, or a memory that each has at least. */
export interface Asked {
  program: string;
  gpus: number;
  cpus: number;
  gpu: string;
}

/** The question that stands for a form. */
export const askedRoute = ({ program, gpus, cpus, gpu }: Asked): RouteRequest => {
  const memory = toBytes(gpu);
  return {
    ...(program.trim() ? { code: program } : {}),
    requirements: {
      gpu_count: gpus,
      ...(cpus > 1 ? { cpu_count: cpus } : {}),
      ...(gpus === 0 || gpu.trim() === "" ? {} : memory ? { gpu_memory_gb: memory / GIB } : { gpu: gpu.trim() }),
    },
  };
};

export function toRoute(draft: RouteDraft): {
  request: RouteRequest;
  faults: Partial<Record<keyof RouteDraft, string>>;
} {
  const hours = amount(draft.hours);
  const dataset = amount(draft.dataset);
  const results = amount(draft.results);
  const limit = amount(draft.limit);
  const gpu = draft.gpu.trim();
  return {
    request: {
      ...(draft.code.trim() ? { code: draft.code } : {}),
      requirements: {
        gpu_count: draft.gpus,
        ...(draft.cpus > 1 ? { cpu_count: draft.cpus } : {}),
        ...(gpu && draft.gpus > 0 ? { gpu } : {}),
        ...(hours === undefined ? {} : { duration_hours_estimated: hours }),
        ...(dataset === undefined ? {} : { dataset_size_gb: dataset }),
        ...(results === undefined ? {} : { results_size_gb: results }),
        ...(limit === undefined ? {} : { max_cost_usd: limit }),
        ...(draft.interruptible ? { interruptible: true } : {}),
      },
      ...(draft.optimize === "balanced" ? {} : { preferences: { optimize_for: draft.optimize } }),
    },
    faults: {
      ...(isFault(hours, 0) || hours === 0 ? { hours: "Hours, such as 3 or 0.5" } : {}),
      ...(isFault(dataset, 0) ? { dataset: "GB, such as 50" } : {}),
      ...(isFault(results, 0) ? { results: "GB, such as 50" } : {}),
      ...(isFault(limit, 0) || limit === 0 ? { limit: "USD, such as 20" } : {}),
    },
  };
}

/** The same as a command; the program is a file there. */
export function toCommand({ request }: ReturnType<typeof toRoute>): string {
  const needs = request.requirements ?? {};
  const words = ["windrow route"];
  if (request.code) words.push("FILE");
  if (needs.gpu_count !== 1) words.push(`--gpus ${needs.gpu_count}`);
  if (needs.cpu_count) words.push(`--cpus ${needs.cpu_count}`);
  if (needs.gpu) words.push(`--gpu '${needs.gpu.replaceAll("'", "")}'`);
  if (needs.duration_hours_estimated) words.push(`--hours ${needs.duration_hours_estimated}`);
  if (needs.dataset_size_gb) words.push(`--dataset-gb ${needs.dataset_size_gb}`);
  if (needs.results_size_gb) words.push(`--results-gb ${needs.results_size_gb}`);
  if (needs.max_cost_usd) words.push(`--max-cost ${needs.max_cost_usd}`);
  if (needs.interruptible) words.push("--interruptible");
  if (request.preferences?.optimize_for) words.push(`--optimize ${request.preferences.optimize_for}`);
  return words.join(" ");
}

export interface Bar {
  backend: string;
  /** What the bar stands for: the run, or an hour where its length is not known. */
  cost: number;
  low: number;
  high: number;
}

/** One bar for each place, in the order given. */
export const barsOf = (found: readonly Recommendation[]): Bar[] =>
  found.map(({ backend, cost_estimate: { hourly, total, low, high } }) => ({
    backend,
    cost: Number(total ?? hourly),
    low: Number(low ?? hourly),
    high: Number(high ?? hourly),
  }));

/** The places in their order, those first where work can start now, then those where a machine can be bought. */
export const usableFirst = (found: readonly Recommendation[]): readonly Recommendation[] => [
  ...found.filter((one) => one.usable),
  ...found.filter((one) => !one.usable && one.buys),
  ...found.filter((one) => !one.usable && !one.buys),
];

/** The fields of a form by which its work goes to a place. */
export const placeOf = ({ host, offer, buys, backend }: Recommendation) => ({
  host: buys ? "" : (host ?? ""),
  tier: buys || host ? "" : offer,
  backend: buys ?? "",
  spot: buys !== null && backend.endsWith("/spot"),
});
export type ChosenPlace = ReturnType<typeof placeOf>;

/** True where its good or bad points say when it starts. */
export const saysStart = ({ pros, cons }: Recommendation): boolean =>
  [...pros, ...cons].some((word) => word.startsWith("starts "));

/** A cost as a share of the dearest bound, in percent. */
export function share(cost: number, bars: readonly Bar[]): number {
  const most = Math.max(...bars.map((bar) => bar.high), 0);
  return most > 0 ? (100 * cost) / most : 0;
}

/** Seconds as people say them. */
export const soon = (seconds: number): string =>
  seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
