// The charts of what a cluster's work uses, and their lines of the Master's answer. Pure.
import type { UsageHistory } from "../api/types.ts";
import { bridged, type Line, summarise } from "../parts/series.ts";

export interface Drawn {
  title: string;
  unit: string;
  /** Metric and the name of its line. */
  lines: readonly (readonly [string, string])[];
  ofGpus?: boolean;
}

export const DRAWN: readonly Drawn[] = [
  { title: "GPU use", unit: "ratio", lines: [["workload_gpu_ratio", "GPU"]], ofGpus: true },
  { title: "GPU memory", unit: "By", lines: [["workload_gpu_memory_used_bytes", "GPU memory"]], ofGpus: true },
  { title: "CPUs in use", unit: "1", lines: [["workload_cpu_cores", "CPUs"]] },
  { title: "Memory", unit: "By", lines: [["workload_memory_used_bytes", "Memory"]] },
  {
    title: "Network",
    unit: "By/s",
    lines: [
      ["workload_network_receive_bytes_per_second", "Received"],
      ["workload_network_transmit_bytes_per_second", "Sent"],
    ],
  },
  {
    title: "Disk",
    unit: "By/s",
    lines: [
      ["workload_disk_read_bytes_per_second", "Read"],
      ["workload_disk_write_bytes_per_second", "Written"],
    ],
  },
  { title: "Disk space", unit: "By", lines: [["workload_disk_used_bytes", "Used"]] },
];

/** The lines of one chart: one for each metric of each member, named by its rank where there are several. */
export function usageLines(drawn: Drawn, found: UsageHistory): Line[] {
  const ranks = new Set(found.series.map((one) => one.rank));
  return drawn.lines.flatMap(([metric, label]) =>
    found.series
      .filter((one) => one.metric === metric)
      .map((one) => ({
        key: `${metric} ${one.rank}`,
        label: ranks.size > 1 ? `${label} ${one.rank}` : label,
        points: bridged(one.points as [number, number | null][], found.step_s * 1000),
      })),
  );
}

/** The same for each member alone, by rank. */
export function usageByRank(drawn: Drawn, found: UsageHistory): (readonly [number, Line[]])[] {
  const ranks = [...new Set(found.series.map((one) => one.rank))].sort((a, b) => a - b);
  const of = (rank: number) => found.series.filter((one) => one.rank === rank);
  return ranks.map((rank) => [rank, usageLines(drawn, { ...found, series: of(rank) })]);
}

/** The highest value of all lines, with some room above; null: there is none. */
export function topOf(lines: readonly Line[]): number | null {
  const top = Math.max(...lines.map((line) => summarise(line.points).most ?? 0));
  return top > 0 ? top * 1.1 : null;
}

export const hasFigures = (found: UsageHistory): boolean =>
  found.series.some((one) => one.points.some((point) => point[1] !== null));
