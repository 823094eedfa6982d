import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { labelOf, lay, legend, MEASURES, moved, placeOf, readingOf, stepOf } from "./heat.ts";
import type { FleetRow } from "./rows.ts";

const row = (key: string, change: Partial<FleetRow> = {}): FleetRow => ({
  key,
  kind: "gpu",
  hostId: "h",
  host: "north-1",
  region: "north",
  simulated: false,
  model: "H100",
  tier: "h100/A",
  memoryBytes: 80,
  link: "online",
  state: "idle",
  stateText: "idle",
  why: null,
  price: null,
  index: 0,
  clusterId: null,
  use: 0.5,
  memoryUsedBytes: 0,
  temperature: 60,
  power: null,
  at: null,
  ...change,
});
const looks = (rows: FleetRow[], measure: (typeof MEASURES)[number]) => rows.map((one) => stepOf(one, measure).look);

test("absent is a dash in every measure, and zero is not absent", () => {
  const unknown = row("u", { use: null, temperature: null, memoryUsedBytes: null, tier: null, state: null });
  for (const measure of MEASURES) expect(stepOf(unknown, measure)).toEqual({ look: "none", mark: "–" });
  expect(readingOf(unknown, "use")).toBe("–");
  expect(stepOf(row("z", { use: 0, temperature: 0 }), "use")).toEqual({ look: "s0", mark: "0" });
  expect(stepOf(row("z"), "memory")).toEqual({ look: "s0", mark: "0" });
});

test("a colour begins where the legend says", () => {
  expect(
    looks(
      [0.19, 0.2, 0.795, 1, 1.2].map((use) => row("k", { use })),
      "use",
    ),
  ).toEqual(["s0", "s1", "s4", "s4", "s4"]);
  expect(
    looks(
      [-3, 29, 30, 74, 75, 120].map((temperature) => row("k", { temperature })),
      "temperature",
    ),
  ).toEqual(["s0", "s0", "s1", "s3", "s4", "s4"]);
  expect(legend([row("a"), row("b", { use: null })], "use").map((one) => [one.label, one.cells])).toEqual([
    ["below 20%", 0],
    ["20 to 39%", 0],
    ["40 to 59%", 1],
    ["60 to 79%", 0],
    ["80% and more", 0],
    ["not known", 1],
  ]);
});

test("health is the state that the Master says, and a state not known here is no health", () => {
  const states = ["idle", "rented", "paused", "faulty", "offline", "new_word"];
  expect(
    looks(
      states.map((state) => row(state, { state })),
      "health",
    ),
  ).toEqual(["ok", "busy", "warn", "bad", "bad", "warn"]);
  expect(legend([row("a"), row("d", { state: "offline" })], "health").map((one) => one.cells)).toEqual([1, 0, 0, 1]);
});

test("a card that cannot be rented says why, and one in parts how many are rented", () => {
  const why = "Something other than rented work uses this GPU.";
  const closed = row("a", { state: "paused", stateText: "paused", why });
  expect(labelOf(closed, "health")).toBe(`north-1, H100: Health Paused: ${why}`);
  expect(labelOf(closed, "use")).not.toContain(why);
  const shared = row("b", { state: "rented", stateText: "rented, 1 of 2 parts" });
  expect(readingOf(shared, "health")).toBe("Rented, 1 of 2 parts");
});

test("a cell says everything in words, and hostile names harm nobody", () => {
  expect(labelOf(row("a", { host: "x\u202ey", simulated: true }), "tier")).toBe("x�y (simulated), H100: Tier h100/A");
});

const FLEET = [
  row("s", { hostId: "s", host: "n-0", simulated: true }),
  row("z", { hostId: "z", host: "n-10" }),
  row("b0", { hostId: "b", host: "n-2" }),
  row("b1", { hostId: "b", host: "n-2" }),
  row("x", { hostId: "x", region: null }),
  row("e", { hostId: "e", region: "east" }),
];

test("regions by name and the unknown last; in each real hosts first, numbers as numbers", () => {
  expect(
    lay(FLEET).map((line) =>
      line.kind === "region"
        ? `${line.region} ${line.hosts}/${line.cells}`
        : line.cells.map((one) => one.key).join(" "),
    ),
  ).toEqual(["east 1/1", "e", "north 3/4", "b0 b1", "z", "s", "null 1/1", "x"]);
});

test("a host with many cards goes on in the next line, and none is lost", () => {
  const lines = lay(Array.from({ length: 40 }, (_, index) => row(String(index))));
  expect(lines.map((line) => line.kind === "host" && line.cells.length)).toEqual([false, 16, 16, 8]);
});

test("arrows go over headings and stop at the edges", () => {
  const lines = lay(FLEET);
  const at = (key: string, press: string) => moved(lines, placeOf(lines, key)!, press);
  expect(at("b0", "ArrowRight")).toEqual({ line: 3, cell: 1 });
  expect(at("b1", "ArrowRight")).toBeNull();
  expect(at("b1", "ArrowUp")).toEqual({ line: 1, cell: 0 });
  expect(at("s", "ArrowDown")).toEqual({ line: 7, cell: 0 });
  expect([at("x", "ArrowDown"), at("e", "ArrowUp"), at("e", "Enter")]).toEqual([null, null, null]);
  expect(at("b0", "End")).toEqual({ line: 3, cell: 1 });
  expect(placeOf(lines, "gone")).toEqual({ line: 1, cell: 0 });
  expect(placeOf([], null)).toBeNull();
});

const luminance = (hex: string) => {
  const [red, green, blue] = [1, 3, 5]
    .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!; // the relative luminance of WCAG 2.2
};

test("steps differ by lightness alone, one way, and their figures can be read in both schemes", () => {
  const css = readFileSync(new URL("../app/app.css", import.meta.url), "utf8");
  const pairs = [...css.matchAll(/--wr-heat-(\d): (#[0-9a-f]{6});\s+--wr-heat-text-\d: (#[0-9a-f]{6})/g)];
  expect(pairs.map((pair) => pair[1])).toEqual(["0", "1", "2", "3", "4", "0", "1", "2", "3", "4"]);
  const lights = pairs.map((pair) => luminance(pair[2]!));
  for (const [index, pair] of pairs.entries()) {
    const [low, high] = [lights[index]!, luminance(pair[3]!)].sort((a, b) => a - b);
    expect((high! + 0.05) / (low! + 0.05), pair[0]).toBeGreaterThanOrEqual(4.5);
  }
  expect(lights.slice(0, 5)).toEqual(lights.slice(0, 5).sort((a, b) => b - a));
  expect(lights.slice(5)).toEqual(lights.slice(5).sort((a, b) => a - b));
});
