// Benchmarks of a GPU by figure: the newest run first, earlier ones beside it. Pure.
import type { GpuPage } from "../api/types.ts";
import { inUnit, rate, words } from "../parts/format.ts";

type Run = GpuPage["benchmarks"][number];

export const RUNS_SHOWN = 6;

/** The figures in the order of their names, each with its runs, the newest first. */
export function figures(runs: readonly Run[]): readonly (readonly [string, readonly Run[]])[] {
  const found = new Map<string, Run[]>();
  for (const run of runs) found.set(run.name, [...(found.get(run.name) ?? []), run]);
  return [...found]
    .sort(([one], [other]) => (one < other ? 1 : -1))
    .map(([name, all]) => [words(all[0]?.title ?? name), all.slice(0, RUNS_SHOWN)] as const);
}

/** One run as people read it: bytes and operations per second in decimal units, as sheets of cards count them. */
export function rateText(run: Run): string {
  const of = { "By/s": "B/s", "{operation}/s": "op/s" }[run.unit];
  return of === undefined ? inUnit(run.value, run.unit) : rate(run.value, of);
}
