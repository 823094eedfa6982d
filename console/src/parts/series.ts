// The lines of charts: joins history and live readings on one time axis. Pure.
import type { BandwidthRound, HostLiveFrame, Series } from "../api/types.ts";

/** [milliseconds since the epoch, value or null where there was none], in order of time. */
export type Point = readonly [number, number | null];

export interface Line {
  key: string;
  label: string;
  points: readonly Point[];
}

/** A moment that charts mark. */
export interface Mark {
  atMs: number;
  label: string;
  tone: "bad" | "warn" | "off";
}

/** Beyond this many points a line is wider than any screen. */
export const POINTS_MOST = 4000;

/** A counter as its growth per second; where it fell (a reboot) or was not read, there is no rate. */
export function rates(points: readonly Point[]): Point[] {
  const out: Point[] = [];
  for (let index = 1; index < points.length; index += 1) {
    const [before, from] = points[index - 1]!;
    const [at, to] = points[index]!;
    const grown =
      from === null || to === null || to < from || at <= before ? null : ((to - from) * 1000) / (at - before);
    out.push([at, grown]);
  }
  return out;
}

/** Add one reading; readings that are not newer are dropped, and so is what has left the span. */
export function append(points: readonly Point[], point: Point, spanMs: number): Point[] {
  const last = points.at(-1);
  if (last && point[0] <= last[0]) return points as Point[];
  const kept = points.filter(([at]) => at >= point[0] - spanMs);
  return [...kept.slice(-POINTS_MOST + 1), point];
}

/** One x axis for several lines, as uPlot wants it: seconds, then one column per line. */
export function align(lines: readonly Line[]): [number[], ...(number | null | undefined)[][]] {
  const times = new Set<number>();
  for (const line of lines) for (const [at] of line.points) times.add(at);
  const axis = [...times].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const values = new Map(line.points);
    return axis.map((at) => values.get(at)); // undefined: this line has no point here; null: it was not read
  });
  return [axis.map((at) => at / 1000), ...columns];
}

export interface Summary {
  last: number | null;
  least: number | null;
  most: number | null;
}

export function summarise(points: readonly Point[]): Summary {
  let least: number | null = null;
  let most: number | null = null;
  for (const [, value] of points) {
    if (value === null) continue;
    least = least === null || value < least ? value : least;
    most = most === null || value > most ? value : most;
  }
  return { last: points.at(-1)?.[1] ?? null, least, most };
}

/** The key of a series: the metric of a host, metric and GPU of a GPU. */
export const seriesKey = (metric: string, gpu: string | null): string => (gpu === null ? metric : `${metric} ${gpu}`);

/**
 * A host that nobody watches is read every 5 s, in a huge fleet every 30 s: less than this between readings is no
 * gap.
 */
const GAP_MS = 40_000;

/** History has a point per step, null where no reading fell into it. Nulls between near readings only say that. */
export function bridged(points: readonly Point[], stepMs: number): Point[] {
  const gap = Math.max(GAP_MS, 2 * stepMs);
  const out: Point[] = [];
  let nulls: Point[] = [];
  let last: number | null = null;
  const end = points.at(-1)?.[0] ?? 0;
  for (const point of points) {
    if (point[1] === null) {
      nulls.push(point);
      continue;
    }
    if (last === null || point[0] - last > gap) out.push(...nulls);
    nulls = [];
    out.push(point);
    last = point[0];
  }
  return last === null || end - last > gap ? [...out, ...nulls] : out;
}

export function fromHistory(series: readonly Series[], stepMs: number): Map<string, Point[]> {
  return new Map(series.map((one) => [seriesKey(one.metric, one.gpu), bridged(one.points, stepMs)]));
}

/** History with one live frame on top. Only series that somebody charts are kept. */
export function withFrame(
  held: ReadonlyMap<string, Point[]>,
  frame: HostLiveFrame,
  wanted: ReadonlySet<string>,
  spanMs: number,
): Map<string, Point[]> {
  const at = Date.parse(frame.at);
  const next = new Map(held);
  const put = (metric: string, gpu: string | null, value: number | null) => {
    if (!wanted.has(metric)) return;
    const key = seriesKey(metric, gpu);
    next.set(key, append(next.get(key) ?? [], [at, value], spanMs));
  };
  for (const [metric, value] of Object.entries(frame.host)) put(metric, null, value);
  for (const [uuid, values] of Object.entries(frame.gpus))
    for (const [metric, value] of Object.entries(values)) put(metric, uuid, value);
  return next;
}

/** Measured rounds, the newest first as the API tells them, as two lines for each region. */
export function roundLines(rounds: readonly BandwidthRound[]): Line[] {
  const regions = [...new Set(rounds.map((one) => one.region))].sort();
  return regions.flatMap((region) => {
    const mine = rounds.filter((one) => one.region === region).reverse();
    const of = (word: string, value: (one: BandwidthRound) => number): Line => ({
      key: `${region} ${word}`,
      label: regions.length > 1 ? `${region} ${word}` : word,
      points: mine.map((one): Point => [Date.parse(one.at), value(one)]),
    });
    return [of("down", (one) => one.down_bps), of("up", (one) => one.up_bps)];
  });
}
