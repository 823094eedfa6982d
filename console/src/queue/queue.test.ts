import { expect, test } from "vitest";
import type { Explained, Job, Queued, QueueList } from "../api/types.ts";
import {
  changedRequest,
  classText,
  heldHosts,
  heldText,
  isRepeatable,
  ordinal,
  standingText,
  startText,
  whyText,
} from "./queue.ts";

const NOW = Date.parse("2026-11-30T12:00:00Z");
const at = (minutes: number) => new Date(NOW + minutes * 60_000).toISOString();
const estimate = (start: number, low: number, high: number) => ({
  start_at: at(start),
  low_at: at(low),
  high_at: at(high),
  words: "",
});
const local = (minutes: number) => new Date(NOW + minutes * 60_000).toTimeString().slice(0, 5);

test("places are counted as people count", () => {
  expect([1, 2, 3, 4, 11, 12, 21, 112, 1_003].map(ordinal)).toEqual(
    "1st 2nd 3rd 4th 11th 12th 21st 112th 1,003rd".split(" "),
  );
});

test("a start has its error bar, and its date where it is not today", () => {
  expect(startText(estimate(140, 134, 143), NOW)).toBe(`${local(140)} ± 6 min`);
  expect(startText(estimate(140, 140, 140), NOW)).toBe(`${local(140)} ± 1 min`);
  expect(startText(estimate(600, 420, 700), NOW)).toBe(`${local(600)} ± 3 h`);
  expect(startText(estimate(2 * 24 * 60, 0, 3 * 24 * 60), NOW)).toBe(`2 Dec, ${local(0)} ± 2 d`);
  expect(startText(null, NOW)).toBe("–");
});

test("an entry is told by its place and start, or by what it waits for", () => {
  const entry = { state: "ready", place: 3, estimate: estimate(140, 134, 143) } as Queued;
  expect(standingText(entry, NOW)).toBe(`3rd in the queue, starts ${local(140)} ± 6 min`);
  expect(standingText({ ...entry, estimate: null }, NOW)).toBe("3rd in the queue, start not known yet");
  expect(standingText({ ...entry, state: "held", place: null }, NOW)).toBe("Held");
  expect(whyText("3rd in the queue: no host has 8 GPUs free.")).toBe("No host has 8 GPUs free.");
  expect(whyText("Held by ada until it is released.")).toBe("Held by ada until it is released.");
  const told = { queue: entry, not_yet: ["It waits.", "gpu-7 would do.", "It is expected to start at 14:20."] };
  expect(heldHosts(told as Explained)).toEqual(["gpu-7 would do."]);
  expect(heldHosts({ ...told, queue: null } as Explained)).toEqual([]);
  expect(classText({ priority_class: "low", priority: -5 })).toBe("Low, priority −5");
  expect(classText({ priority_class: "normal", priority: 0 })).toBe("Normal");
});

test("no share of estimates is said before one was scored", () => {
  expect(heldText({ estimates_held: 0, estimates_scored: 0 } as QueueList)).toBe("–");
  expect(heldText({ estimates_held: 81, estimates_scored: 100 } as QueueList)).toBe("81%");
});

test("only a job that the console knows whole is submitted again with a change", () => {
  const request = { argv: ["true"], await_files: false, array_size: 0, env: { A: "b" }, gpu_model: "H100", tier: null };
  const job = { request, folder_bytes: null, attempts: [] } as unknown as Job;
  expect(isRepeatable(job)).toBe(true);
  expect(isRepeatable({ ...job, folder_bytes: 7 })).toBe(false);
  expect(isRepeatable({ ...job, request: { ...job.request, env: { A: null } } })).toBe(false);
  const changed = changedRequest(job, { gpu_model: "A100", memory_bytes: null });
  expect(changed).toMatchObject({ argv: ["true"], gpu_model: "A100", env: { A: "b" } });
  expect(Object.keys(changed)).not.toContain("tier");
  expect(Object.keys(changed)).not.toContain("memory_bytes");
});
