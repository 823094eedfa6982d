import { expect, test } from "vitest";
import type { Cluster } from "../api/types.ts";
import { afterFailure, isDear, logOf, phasesOf, totalAtEnd } from "./startup.ts";

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

test("what has finished goes on no more while its machine is deleted", () => {
  const steps = [step(0, "running"), step(2, "finished")];
  expect(phasesOf({ phase: "deleting", steps }, Date.parse(at(9))).map((one) => one.isGoing)).toEqual([false, false]);
});

test("the cost at the end is what it cost so far and the hours that are left", () => {
  const cluster = { cost_so_far: "1.50", price_per_hour: "2.00", ends_at: at(0), ended_at: null };
  expect(totalAtEnd(cluster, Date.parse(at(0)) - 3_600_000)).toBe("3.50");
  expect(totalAtEnd({ ...cluster, ends_at: null }, 0)).toBeNull();
});

test("only a real machine of an hour and more has its name typed before it is deleted", () => {
  const one = { started_at: at(0), ended_at: null, request: { simulated: false } as Cluster["request"] };
  const [soon, late] = [Date.parse(at(50)), Date.parse(at(0)) + 3_600_000];
  expect([isDear(one, soon), isDear(one, late)]).toEqual([false, true]);
  expect(isDear({ ...one, request: { simulated: true } as Cluster["request"] }, late)).toBe(false);
  expect(isDear({ ...one, started_at: null }, late)).toBe(false);
});

test.each([
  // [phase of the machine, of its member, bytes of the log that is kept, answer]
  ["Creating", null, null, "none"],
  ["Running", "running", null, "there"],
  ["Failed", "gone", null, "gone"],
  ["Failed", "failed", null, "there"],
  ["Failed", null, null, "gone"],
  ["Finished", "exited", null, "gone"],
  ["Finished", "gone", 12, "there"],
  ["Stopped", "gone", null, "gone"],
] as const)("the log of a %s machine whose member is %s", (phase, member, log_bytes, answer) => {
  const results = log_bytes === null ? null : { log_bytes };
  const workloads = member === null ? [] : [{ rank: 0, phase: member, results }];
  expect(logOf({ phase, workloads: workloads as Cluster["workloads"] })).toBe(answer);
});

test("after a failure it says what to do, and names the image where that is at fault", () => {
  const request = { image: "a/b:1" } as Cluster["request"];
  expect(afterFailure({ reason: "dial tcp: lookup images.example", request })).toMatch(/image a\/b:1.*another/);
  expect(afterFailure({ reason: "its host was lost", request })).toMatch(/on another host/);
});
