import { describe, expect, test } from "vitest";
import { BLANK, gpusOf, placeOf, type ResourceDraft, toResource } from "./resources.ts";

const of = (draft: Partial<ResourceDraft>) => toResource({ ...BLANK, ...draft });

describe("a resource from a form", () => {
  test("has what was filled in, and the command says the same", () => {
    const { request, command, faults } = of({
      id: "aws-p4d",
      type: "cloud",
      provider: "AWS",
      region: "us-east-1",
      gpus: "8",
      gpuType: "NVIDIA A100",
      frameworks: "pytorch, jax",
      jobs: "10",
      cost: "32.77",
    });
    expect(faults).toEqual({});
    expect(request).toEqual({
      resource_id: "aws-p4d",
      resource_type: "cloud",
      provider: "AWS",
      region: "us-east-1",
      capabilities: { gpu: true, gpu_count: 8, gpu_type: "NVIDIA A100" },
      supported_frameworks: ["pytorch", "jax"],
      max_parallel_jobs: 10,
      cost_per_hour_usd: 32.77,
    });
    expect(command).toBe(
      "windrow resource add aws-p4d --type cloud --provider AWS --region us-east-1 --gpu-count 8 " +
        "--gpu-type 'NVIDIA A100' --framework pytorch --framework jax --max-parallel-jobs 10 --cost-per-hour-usd 32.77",
    );
  });

  test("without GPUs says so, and what was left empty is left out", () => {
    expect(of({ id: "edge", type: "edge", gpus: "0", memory: "1.5" }).request).toEqual({
      resource_id: "edge",
      resource_type: "edge",
      capabilities: { gpu: false, gpu_count: 0, memory_gb: 1.5 },
    });
  });

  test.each([
    [{ id: "a/b" }, "id"],
    [{ id: "" }, "id"],
    [{ id: "a", type: "cloud" }, "provider"],
    [{ id: "a", gpus: "two" }, "gpus"],
    [{ id: "a", cores: "1.5" }, "cores"],
    [{ id: "a", memory: "-1" }, "memory"],
    [{ id: "a", jobs: "0" }, "jobs"],
    [{ id: "a", cost: "Infinity" }, "cost"],
  ] as const)("%o has a fault", (draft, field) => {
    expect(Object.keys(of(draft).faults)).toEqual([field]);
  });
});

test("its GPUs and its place in words", () => {
  const row = { provider: "AWS", region: null, location: "hall 2", capabilities: {} } as never;
  expect(placeOf(row)).toBe("AWS, hall 2");
  expect(gpusOf(row)).toBe("none");
  expect(gpusOf({ capabilities: { gpu: true } } as never)).toBe("? × GPU");
  expect(gpusOf({ capabilities: { gpu_count: 2, gpu_type: "T4" } } as never)).toBe("2 × T4");
});
