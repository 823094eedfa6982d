import { expect, it } from "vitest";
import { BLANK_JOB, toJob } from "../jobs/jobs.ts";
import { GIB } from "../parts/format.ts";
import { BLANK, toRequest } from "./request.ts";
import { clusterChange, jobChange } from "./ways.ts";

it("makes a cluster's form ask for what the way says", () => {
  const draft = {
    ...BLANK,
    hardware: "gpu" as const,
    kind: "gang" as const,
    gpus: 8,
    gpuModel: "B200",
    command: "true",
    maxPrice: "1",
    image: "a",
  };
  const changes = {
    hosts: 3,
    gpus: 2,
    gpu_model: "NVIDIA L4",
    gpu_memory_bytes: 17_000_000_000,
    tier: "l4/C",
    cpus: 4,
    memory_bytes: 64 * GIB,
    max_price_per_hour: "2.50",
    slice: "1g.10gb",
    image: null,
  };
  const { request, faults } = toRequest({ ...draft, ...clusterChange(changes) });
  const { image, ...kept } = changes;
  expect([image, request.image]).toEqual([null, undefined]);
  expect(request).toMatchObject(kept);
  expect(faults).toEqual({});
  expect(toRequest({ ...draft, host: "host_1", ...clusterChange({ host_id: null }) }).request.host_id).toBeUndefined();
});

it("does the same for a job", () => {
  const draft = { ...BLANK_JOB, command: "true", gpus: 8, gpu: "B200", tier: "b200" };
  const memory = toJob({ ...draft, ...jobChange({ gpus: 1, tier: "l4/C", gpu_memory_bytes: 16 * GIB }) });
  expect(memory.request).toMatchObject({ gpus: 1, tier: "l4/C", gpu_memory_bytes: 16 * GIB });
  const model = toJob({ ...draft, ...jobChange({ gpu_model: "NVIDIA L4", cpus: 2 }) });
  expect(model.request).toMatchObject({ gpu_model: "NVIDIA L4", cpus: 2 });
  expect([memory.faults, model.faults]).toEqual([{}, {}]);
});
