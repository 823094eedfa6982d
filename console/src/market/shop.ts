// The shop's rules: the filter in the address and as the Master reads it, totals, the histogram of prices. Pure.
import type { Query } from "../api/client.ts";
import type { MachineType } from "../api/types.ts";
import { GIB } from "../parts/format.ts";
import type { SearchWords } from "../tables/address.ts";

/** Of the address; each is a word or a number as people type it, and absent where nothing is asked. */
export interface Filter {
  gpu?: string;
  /** GiB of one GPU. */
  memory?: string;
  gpus?: string;
  hours?: string;
  region?: string;
  /** The range of prices of one GPU per hour. */
  from?: string;
  to?: string;
  /** Per cent. */
  reliability?: string;
  /** Mbit/s. */
  up?: string;
  down?: string;
  driver?: string;
  source?: string;
  verified?: string;
  free?: string;
}

export const FIELDS = [
  ...["gpu", "memory", "gpus", "hours", "region", "from", "to", "reliability"],
  ...["up", "down", "driver", "source", "verified", "free"],
] as readonly (keyof Filter)[];
export const HOURS_FIRST = 8;
const MEGABIT = 1e6;
const AS_SOLD = 0.97;

export function filterFrom(search: SearchWords): Filter {
  return Object.fromEntries(FIELDS.flatMap((name) => (search[name] ? [[name, search[name]]] : [])));
}

const above = (text: string | undefined, least: number): number | undefined => {
  const value = Number(text);
  return text !== undefined && Number.isFinite(value) && value >= least ? value : undefined;
};

export const gpusOf = ({ gpus }: Filter): number => Math.floor(Math.min(above(gpus, 1) ?? 1, 1024));
export const hoursOf = ({ hours }: Filter): number => Math.min(above(hours, 0.01) ?? HOURS_FIRST, 100_000);

/** What the Master is asked; what is not understood is not asked. */
export function queryOf(filter: Filter): Query {
  const times = (text: string | undefined, unit: number, least = 0) => {
    const value = above(text, least);
    return value === undefined ? undefined : Math.min(Math.round(value * unit), 1e15);
  };
  const price = (text: string | undefined) => (/^\d{1,9}(\.\d{1,8})?$/.test(text ?? "") ? text : undefined);
  const reliability = above(filter.reliability, 0);
  return {
    model: filter.gpu?.slice(0, 64),
    // A card sold with 80 GiB says a little less.
    min_memory_bytes: times(filter.memory, GIB * AS_SOLD),
    min_gpus: gpusOf(filter) > 1 ? gpusOf(filter) : undefined,
    min_price: price(filter.from),
    max_price: price(filter.to),
    region: filter.region,
    min_reliability: reliability === undefined ? undefined : Math.min(1, reliability / 100),
    min_up_bps: times(filter.up, MEGABIT),
    min_down_bps: times(filter.down, MEGABIT),
    driver: /^[0-9.]{1,32}$/.test(filter.driver ?? "") ? filter.driver : undefined,
    simulated: filter.source === "simulated" ? true : filter.source === "real" ? false : undefined,
    verified: filter.verified ? true : undefined,
    free: filter.free ? true : undefined,
  };
}

/** The same as the command line. */
export function commandOf(filter: Filter, quoted: (word: string) => string): string {
  const asked = queryOf(filter);
  const flags = [
    ["--model", asked.model],
    ["--vram", asked.min_memory_bytes && `${Number(asked.min_memory_bytes) / GIB}GiB`],
    ["--gpus", asked.min_gpus],
    ["--min-price", asked.min_price],
    ["--max-price", asked.max_price],
    ["--hours", filter.hours && `${hoursOf(filter)}h`],
    ["--region", asked.region],
    ["--reliability", asked.min_reliability !== undefined ? filter.reliability : undefined],
    ["--up", asked.min_up_bps !== undefined ? filter.up : undefined],
    ["--down", asked.min_down_bps !== undefined ? filter.down : undefined],
    ["--driver", asked.driver],
  ].flatMap(([name, value]) => (value === undefined || value === "" ? [] : [name, quoted(String(value))]));
  if (asked.simulated !== undefined) flags.push(asked.simulated ? "--simulated" : "--real");
  return ["windrow gpus", ...flags, ...(asked.verified ? ["--verified"] : []), ...(asked.free ? ["--free"] : [])].join(
    " ",
  );
}

export const isProcessors = ({ unit }: { unit: string }): boolean => unit === "processor";
export const classOf = ({ tier }: { tier: string }): string => tier.split("/")[0] ?? tier;
export const gradeOf = ({ tier }: { tier: string }): string => tier.split("/")[1] ?? "";

/** `H100 PCIe`, `H100 1g.10gb`, `CPUs`: from a tier. */
export function modelOf(row: { tier: string; unit: string }): string {
  if (isProcessors(row)) return "CPUs";
  const [model = "", profile] = classOf(row).split(":");
  return [model.replace(/-/g, " ").toUpperCase().replace("PCIE", "PCIe"), profile].filter(Boolean).join(" ");
}

/**
 * The rows of a list without a filter that are folded into one line: simulated ones where there is something real, else
 * the processors of simulated hosts with GPUs.
 */
export function foldedOf(rows: readonly MachineType[], filter: Filter): readonly MachineType[] {
  if (FIELDS.some((name) => name !== "hours" && filter[name])) return [];
  const isReal = rows.some((row) => !row.simulated);
  const hasGpus = rows.some((row) => !isProcessors(row));
  return rows.filter((row) => row.simulated && (isReal || (hasGpus && isProcessors(row))));
}

/** The price of so many GPUs, or processors, for so many hours; an estimate, by floats. */
export const totalOf = (row: MachineType, gpus: number, hours: number): number =>
  Number(row.price_per_hour) * gpus * hours;

/** Measured bytes per second of GPU memory for each unit of money an hour; null: not measured, or it costs nothing. */
export function speedForMoney({ memory_bytes_per_s: speed, price_per_hour }: MachineType): number | null {
  return speed === null || Number(price_per_hour) <= 0 ? null : speed / Number(price_per_hour);
}

export interface Bin {
  from: number;
  to: number;
  free: number;
  total: number;
}

/** The GPUs at each price, in bins of one width; none where all cost the same. */
export function binsOf(rows: readonly MachineType[], most = 24): Bin[] {
  const levels = rows.filter((row) => !isProcessors(row)).flatMap((row) => row.prices);
  const prices = levels.map((one) => Number(one.price_per_hour));
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  if (!(high > low)) return [];
  const many = Math.min(most, 4 * new Set(prices).size);
  const width = (high - low) / many;
  const bins = Array.from({ length: many }, (_, at) => ({
    from: low + at * width,
    to: at === many - 1 ? high : low + (at + 1) * width,
    free: 0,
    total: 0,
  }));
  for (const [index, { free, total }] of levels.entries()) {
    const bin = bins[Math.min(many - 1, Math.floor((prices[index]! - low) / width))]!;
    bin.free += free;
    bin.total += total;
  }
  return bins;
}

/** The memory sizes in the filter, in GiB: each size that some GPU has. */
export function memoriesOf(rows: readonly MachineType[]): number[] {
  const sizes = rows.flatMap((row) => (isProcessors(row) || row.memory_bytes === null ? [] : [row.memory_bytes / GIB]));
  const top = Math.max(0, ...sizes);
  return [8, 12, 16, 24, 32, 40, 48, 80, 96, 141, 180, 288].filter((size) => size * AS_SOLD <= top);
}

/** What the form of a new machine takes over: the tier and how much of it, and the host where only some of it fit. */
export function rentOf(row: MachineType, filter: Filter, isPinned: boolean): SearchWords {
  return {
    tier: row.tier,
    hardware: isProcessors(row) ? "cpu" : "gpu",
    ...(row.simulated ? { simulated: "true" } : {}),
    [isProcessors(row) ? "cpus" : "gpus"]: String(gpusOf(filter)),
    hours: String(hoursOf(filter)),
    // A request's limit is for all of it.
    ...(Number(filter.to) > 0 ? { max_price: String(Number((Number(filter.to) * gpusOf(filter)).toFixed(8))) } : {}),
    ...(isPinned && row.host_id ? { host: row.host_id } : {}),
  };
}

/** Whether hosts of the row's tier that do not fit could be taken, too: then the request names one that does. */
export function isNarrowed(row: MachineType, filter: Filter, all: readonly MachineType[]): boolean {
  const byHost = [
    filter.region,
    filter.reliability,
    filter.up,
    filter.down,
    filter.driver,
    filter.verified,
    filter.from,
  ];
  const alike = all.filter((one) => one.tier === row.tier && one.simulated === row.simulated);
  return byHost.some(Boolean) || new Set(alike.map((one) => one.region)).size > 1;
}

// --- setting a price -------------------------------------------------------------------------------------------------

/** How many times dearer or cheaper a price is than before, 1 or more. */
export function timesOf(before: string, after: string): number {
  const [one, other] = [Number(before), Number(after)];
  if (one === other) return 1;
  return Math.min(one, other) <= 0 ? Number.POSITIVE_INFINITY : Math.max(one / other, other / one);
}

/** The same in words. */
export function timesText(before: string, after: string): string {
  const times = timesOf(before, after);
  if (!Number.isFinite(times)) return Number(after) === 0 ? "This gives it away for nothing" : "It was free before";
  const much = Number(times.toPrecision(3));
  return Number(after) > Number(before) ? `This is ${much} times the price now` : `The price now is ${much} times this`;
}

/** "+10%", "−50%", "× 100", "none". */
export function changeText(before: string, after: string): string {
  const [one, other] = [Number(before), Number(after)];
  if (one === other) return "none";
  if (one <= 0) return `from nothing to ${after}`;
  if (other / one >= 10) return `× ${Number((other / one).toPrecision(3))}`;
  const share = Math.round((other / one - 1) * 1000) / 10;
  return `${share > 0 ? "+" : "−"}${Math.abs(share)}%`;
}
