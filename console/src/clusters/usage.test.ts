import { expect, test } from "vitest";
import { DRAWN, hasFigures, topOf, usageByRank, usageLines } from "./usage.ts";

const CPU = DRAWN.find((drawn) => drawn.title === "CPUs in use")!;
const series = (rank: number, ...values: (number | null)[]) => ({
  metric: "workload_cpu_cores",
  rank,
  unit: "1",
  points: values.map((value, index): [number, number | null] => [index * 15_000, value]),
});

test("a line of one member has the metric's name, those of several their ranks as well", () => {
  expect(usageLines(CPU, { series: [series(0, 1, 2)], step_s: 15 })).toEqual([
    {
      key: "workload_cpu_cores 0",
      label: "CPUs",
      points: [
        [0, 1],
        [15_000, 2],
      ],
    },
  ]);
  const both = usageLines(CPU, { series: [series(0, 1), series(3, 2)], step_s: 15 });
  expect(both.map((line) => line.label)).toEqual(["CPUs 0", "CPUs 3"]);
});

test("each member has lines of its own, and all of them one scale", () => {
  const members = usageByRank(CPU, { series: [series(3, 2, 8), series(0, 1)], step_s: 15 });
  expect(members.map(([rank, lines]) => [rank, lines.map((line) => line.label)])).toEqual([
    [0, ["CPUs"]],
    [3, ["CPUs"]],
  ]);
  expect(topOf(members.flatMap(([, lines]) => lines))).toBeCloseTo(8.8);
  expect(topOf([])).toBeNull();
});

test("steps without any reading are no figures", () => {
  expect(hasFigures({ series: [series(0, null, null)], step_s: 15 })).toBe(false);
  expect(hasFigures({ series: [], step_s: 15 })).toBe(false);
  expect(hasFigures({ series: [series(0, null, 0)], step_s: 15 })).toBe(true);
});
