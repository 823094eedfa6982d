import { expect, it } from "vitest";
import { BLANK_JOB, toJob } from "../jobs/jobs.ts";
import { BLANK, toRequest } from "./request.ts";
import { clusterWays, jobWays } from "./ways.ts";

it("tries nothing but simulated hosts for a request without conditions", () => {
  expect(clusterWays(BLANK).map((way) => way.words)).toEqual(["on simulated hosts, which compute nothing"]);
  expect(jobWays(BLANK_JOB).map((way) => way.words)).toEqual(["on simulated hosts, which compute nothing"]);
});

it("leaves out one condition at a time, and each change is a valid request", () => {
  const draft = {
    ...BLANK,
    hardware: "gpu" as const,
    gpus: 4,
    gpuModel: "H100",
    gpuMemoryGib: "80",
    tier: "h100",
    cpus: 64,
    memoryGib: "512",
    maxPrice: "1",
    host: "host_1",
    image: "a",
    command: "true",
    kind: "gang" as const,
  };
  const ways = clusterWays(draft);
  expect(ways.map((way) => way.words)).toEqual([
    "on any host",
    "with any GPU model",
    "with any GPU memory",
    "with any memory",
    "at any price",
    "on 1 host",
    "with 1 GPU",
    "in any tier",
    "with 1 processor",
    "without a container image",
    "on processors instead of GPUs",
    "on simulated hosts, which compute nothing",
  ]);
  for (const way of ways) expect(toRequest({ ...draft, ...way.change }).faults).toEqual({});
});

it("does the same for a job, and keeps a GPU's kind away from a job without GPUs", () => {
  const draft = { ...BLANK_JOB, command: "true", gpus: 2, gpu: "H100", simulated: true };
  const ways = jobWays(draft);
  expect(ways.map((way) => way.words)).toEqual([
    "with any GPU",
    "with 1 GPU",
    "on processors instead of GPUs",
    "on real hosts",
  ]);
  for (const way of ways) expect(toJob({ ...draft, ...way.change }).faults).toEqual({});
});
