import { expect, test } from "vitest";
import { phasesOf, totalAtEnd } from "./startup.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 12, 0, second)).toISOString();
const step = (second: number, name: string, member: string | null = null, progress: number | null = null) => ({
  at: at(second),
  name,
  member,
  progress,
  detail: null,
});

test("each phase of a start lasts until the next", () => {
  const phases = phasesOf({ phase: "running", steps: [step(0, "placed"), step(2, "pulling"), step(10, "running")] }, 0);
  expect(phases.map((one) => [one.tookMs, one.left, one.isGoing])).toEqual([
    [2000, 0, false],
    [8000, 20, false],
    [0, 99.2, false],
  ]);
  expect(phasesOf({ phase: "queued", steps: [] }, 0)).toEqual([]);
});

test("the last phase goes on until now, and members go side by side", () => {
  const steps = [
    step(0, "placed"),
    step(1, "pulling", "rank 0"),
    step(1, "pulling", "rank 1"),
    step(3, "starting", "rank 0"),
  ];
  const phases = phasesOf({ phase: "creating", steps }, Date.parse(at(5)));
  expect(phases.map((one) => [one.tookMs, one.isGoing])).toEqual([
    [1000, false],
    [2000, false],
    [4000, true],
    [2000, true],
  ]);
});

test("the cost at the end is what it cost so far and the hours that are left", () => {
  const cluster = { cost_so_far: "1.50", price_per_hour: "2.00", ends_at: at(0), ended_at: null };
  expect(totalAtEnd(cluster, Date.parse(at(0)) - 3_600_000)).toBe("3.50");
  expect(totalAtEnd({ ...cluster, ends_at: null }, 0)).toBeNull();
});
