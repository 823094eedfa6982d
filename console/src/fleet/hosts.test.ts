import { expect, test } from "vitest";
import { hostsOf } from "./hosts.ts";
import type { FleetRow } from "./rows.ts";

const row = (hostId: string, more: Partial<FleetRow> = {}): FleetRow => ({
  key: `${hostId} ${Math.random()}`,
  kind: "gpu",
  hostId,
  host: `name of ${hostId}`,
  region: "north",
  simulated: false,
  model: "NVIDIA H100",
  tier: "h100/A",
  memoryBytes: null,
  link: "online",
  state: "idle",
  stateText: "idle",
  why: null,
  price: null,
  index: 0,
  clusterId: null,
  use: null,
  memoryUsedBytes: null,
  temperature: null,
  power: null,
  at: null,
  ...more,
});

test("a host has its GPUs counted, the worst state of them, and what they do together", () => {
  const [one, other] = hostsOf([
    row("a", { state: "rented", use: 0.5, temperature: 60, power: 300 }),
    row("b", { kind: "cpu", model: "64 × EPYC" }),
    row("a", { state: "faulty", use: 0.1, temperature: 92, power: 100 }),
  ]);
  expect(one).toMatchObject({
    key: "a",
    hardware: "2 × H100",
    state: "faulty",
    stateText: "faulty, 1 of 2",
    rented: 1,
  });
  expect(one).toMatchObject({ use: 0.3, hottest: 92, power: 400, of: 2 });
  expect(other).toMatchObject({ key: "b", hardware: "64 × EPYC", state: "idle", stateText: "idle", use: null });
});
