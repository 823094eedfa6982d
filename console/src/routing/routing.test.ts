import { expect, test } from "vitest";
import type { Recommendation } from "../api/types.ts";
import {
  askedRoute,
  BLANK,
  barsOf,
  placeOf,
  saysStart,
  share,
  soon,
  toCommand,
  toRoute,
  usableFirst,
} from "./routing.ts";

const place = (backend: string, hourly: string, total: string | null = null, low = total, high = total) =>
  ({ backend, cost_estimate: { hourly, total, low, high } }) as Recommendation;

test("places where work can start come first, and say once when", () => {
  const one = (backend: string, usable: boolean) => ({ ...place(backend, "1"), usable });
  const bought = { ...one("e", false), buys: "aws" };
  const found = usableFirst([one("a", false), one("b", true), bought, one("c", false), one("d", true)]);
  expect(found.map(({ backend }) => backend)).toEqual(["b", "d", "e", "a", "c"]);
  expect(saysStart({ ...place("a", "1"), pros: ["cheap"], cons: ["starts in about 5 min"] })).toBe(true);
  expect(saysStart({ ...place("a", "1"), pros: ["cheap"], cons: [] })).toBe(false);
});

test("a place is put into a form by its host, its tier, or the backend where it is bought", () => {
  const one = (more: Partial<Recommendation>) =>
    placeOf({ ...place("x/spot", "1"), host: null, buys: null, offer: "h100/A", ...more });
  expect(one({ usable: true })).toEqual({ host: "", tier: "h100/A", backend: "", spot: false });
  expect(one({ host: "host_1" })).toEqual({ host: "host_1", tier: "", backend: "", spot: false });
  expect(one({ buys: "aws", offer: "g5.xlarge" })).toEqual({ host: "", tier: "", backend: "aws", spot: true });
  expect(one({ buys: "aws", backend: "aws/on-demand" }).spot).toBe(false);
});

test("a blank form asks for one GPU and nothing else", () => {
  const made = toRoute(BLANK);
  expect(made).toEqual({ request: { requirements: { gpu_count: 1 } }, faults: {} });
  expect(toCommand(made)).toBe("windrow route");
});

test("every field has its place in the request and its option in the command", () => {
  const made = toRoute({
    code: "import torch",
    hours: "3",
    gpus: 2,
    cpus: 8,
    gpu: " NVIDIA A100 ",
    dataset: "50",
    results: "7",
    limit: "20",
    optimize: "cost",
    interruptible: true,
  });
  expect(made.request).toEqual({
    code: "import torch",
    requirements: {
      gpu_count: 2,
      cpu_count: 8,
      gpu: "NVIDIA A100",
      duration_hours_estimated: 3,
      dataset_size_gb: 50,
      results_size_gb: 7,
      max_cost_usd: 20,
      interruptible: true,
    },
    preferences: { optimize_for: "cost" },
  });
  expect(toCommand(made)).toBe(
    "windrow route FILE --gpus 2 --cpus 8 --gpu 'NVIDIA A100' --hours 3 --dataset-gb 50 --results-gb 7 --max-cost 20 " +
      "--interruptible --optimize cost",
  );
});

test("a form asks for its GPUs by model or by memory", () => {
  const asked = { program: " ", gpus: 2, cpus: 4, gpu: "24GiB" };
  expect(askedRoute(asked)).toEqual({ requirements: { gpu_count: 2, cpu_count: 4, gpu_memory_gb: 24 } });
  expect(askedRoute({ ...asked, gpu: "H100" }).requirements).toEqual({ gpu_count: 2, cpu_count: 4, gpu: "H100" });
  expect(askedRoute({ program: "import jax", gpus: 0, cpus: 1, gpu: "H100" })).toEqual({
    code: "import jax",
    requirements: { gpu_count: 0 },
  });
});

test("what is no number is a fault of its field", () => {
  for (const hours of ["x", "-1", "0", "1e999"]) expect(toRoute({ ...BLANK, hours }).faults.hours, hours).toBeTruthy();
  expect(toRoute({ ...BLANK, dataset: "-5" }).faults.dataset).toBeTruthy();
  expect(toRoute({ ...BLANK, hours: "0.5", dataset: "0" }).faults).toEqual({});
});

test("bars are of the run, or of an hour where its length is not known", () => {
  const bars = barsOf([place("a", "1.00", "3.00", "2.50", "4.00"), place("b", "0.50")]);
  expect(bars).toEqual([
    { backend: "a", cost: 3, low: 2.5, high: 4 },
    { backend: "b", cost: 0.5, low: 0.5, high: 0.5 },
  ]);
  expect(share(3, bars)).toBe(75);
  expect(share(1, [])).toBe(0);
  expect(share(0, barsOf([place("free", "0.00", "0.00")]))).toBe(0);
});

test("a wait is read in seconds or minutes", () => {
  expect([soon(5), soon(89), soon(300)]).toEqual(["5 s", "89 s", "5 min"]);
});
