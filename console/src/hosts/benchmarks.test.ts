import { expect, test } from "vitest";
import { figures, RUNS_SHOWN, rateText } from "./benchmarks.ts";

const run = (name: string, value: number, at = "2026-01-01T00:00:00Z", unit = "By/s") => ({
  name,
  title: name === "gpu.memory_bytes_per_s" ? "GPU memory speed" : "matrix speed",
  value,
  unit,
  measured_at: at,
  proof_id: "proof_1",
});

test("a figure's runs stand together, the newest first, and no more than people read", () => {
  const memory = Array.from({ length: 9 }, (_, at) => run("gpu.memory_bytes_per_s", 9 - at));
  const found = figures([memory[0]!, run("gpu.matrix_operations_per_s", 5), ...memory.slice(1)]);
  expect(found.map(([label]) => label)).toEqual(["GPU memory speed", "Matrix speed"]);
  expect(found[0]![1].map((one) => one.value)).toEqual([9, 8, 7, 6, 5, 4]);
  expect(found[0]![1]).toHaveLength(RUNS_SHOWN);
  expect(figures([])).toEqual([]);
});

test("a rate is written as sheets of cards write it", () => {
  expect(rateText(run("m", 2_983_000_000_000))).toBe("2.98 TB/s");
  expect(rateText(run("m", 20_500_000_000_000, "", "{operation}/s"))).toBe("20.5 Top/s");
  expect(rateText(run("m", 12))).toBe("12 B/s");
});
