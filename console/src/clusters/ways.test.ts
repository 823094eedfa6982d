import { expect, it } from "vitest";
import { asJobCommand, BLANK_JOB, toJob } from "../jobs/jobs.ts";
import { GIB } from "../parts/format.ts";
import { asCommand, BLANK, toDraft, toRequest } from "./request.ts";
import { clusterChange, jobChange, waitText } from "./ways.ts";

it("says what waiting does for a request that fits nowhere now, unless no host will ever do", () => {
  expect(waitText(true, 3600)).toContain("will wait");
  expect(waitText(true, undefined)).toContain("Wait for a place");
  expect(waitText(false, 3600)).toBe("");
});

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

it("reads a place, says it in a command and takes a change of it", () => {
  const place = {
    region: "eu-1",
    near: "eu-1:20",
    country: "DE",
    provider_id: "lab",
    labels: "quiet, disk=nvme",
    min_bandwidth_mbps: "500",
    min_reliability_percent: "98",
    verified: true,
  };
  const { request, faults } = toRequest({ ...BLANK, ...place });
  const said = "--region eu-1 --near eu-1:20 --country DE --provider lab --label quiet --label disk=nvme";
  expect(asCommand(request)).toContain(`${said} --min-bandwidth 500 --min-reliability 98 --verified`);
  expect(toRequest(toDraft(request)).request).toEqual(request);
  expect(faults).toEqual({});
  const job = toJob({ ...BLANK_JOB, command: "true", ...place });
  expect(asJobCommand(job.request)).toContain(said);
  const changes = { near: "eu-1:42", labels: ["quiet"], min_bandwidth_mbps: null, verified: false };
  const changed = toRequest({ ...BLANK, ...place, ...clusterChange(changes) }).request;
  expect(changed).toMatchObject({ near: "eu-1:42", labels: ["quiet"], region: "eu-1" });
  expect([changed.min_bandwidth_mbps, changed.verified]).toEqual([undefined, undefined]);
  const amounts = { min_bandwidth_mbps: "0", min_reliability_percent: "101" };
  const absurd = { near: "eu-1:2000", country: "Germany", labels: "a b=", ...amounts };
  expect(Object.keys(toRequest({ ...BLANK, ...absurd }).faults).sort()).toEqual(Object.keys(absurd).sort());
});

it("does the same for a job", () => {
  const draft = { ...BLANK_JOB, command: "true", gpus: 8, gpu: "B200", tier: "b200" };
  const memory = toJob({ ...draft, ...jobChange({ gpus: 1, tier: "l4/C", gpu_memory_bytes: 16 * GIB }) });
  expect(memory.request).toMatchObject({ gpus: 1, tier: "l4/C", gpu_memory_bytes: 16 * GIB });
  const model = toJob({ ...draft, ...jobChange({ gpu_model: "NVIDIA L4", cpus: 2 }) });
  expect(model.request).toMatchObject({ gpu_model: "NVIDIA L4", cpus: 2 });
  expect([memory.faults, model.faults]).toEqual([{}, {}]);
});
