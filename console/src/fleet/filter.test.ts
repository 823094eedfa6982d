import { expect, test } from "vitest";
import { fleetMatcher } from "./filter.ts";
import type { FleetRow } from "./rows.ts";

const row = (change: Partial<FleetRow>): FleetRow => ({
  key: "k",
  kind: "gpu",
  hostId: "h",
  host: "north-1",
  region: "north",
  simulated: false,
  model: "H100 80GB",
  tier: "h100/A",
  memoryBytes: 80 * 1024 ** 3,
  link: "online",
  state: "idle",
  stateText: "idle",
  why: null,
  price: "1.90",
  index: 0,
  clusterId: null,
  use: 0.5,
  memoryUsedBytes: 0,
  temperature: 60,
  power: 300,
  at: null,
  ...change,
});

test("all words must match, wherever they stand", () => {
  expect(fleetMatcher("NORTH h100")(row({}))).toBe(true);
  expect(fleetMatcher("north a100")(row({}))).toBe(false);
});

test("comparisons read units a person thinks in, and never match what is absent", () => {
  const keeps = (text: string, change: Partial<FleetRow> = {}) => fleetMatcher(text)(row(change));
  expect(keeps("util>=50 mem>=80 price<2")).toBe(true);
  expect(keeps("temp>60")).toBe(false);
  expect(keeps("temp<1000", { temperature: null })).toBe(false);
  expect(keeps("temp>=0", { temperature: null })).toBe(false);
});
