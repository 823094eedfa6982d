import { expect, test } from "vitest";
import type { GpuRow, HostSummary } from "../api/types.ts";
import { type Batch, byName, mayActOn, merge, NO_FLEET } from "./rows.ts";

const gpu = (uuid: string, change: Partial<GpuRow> = {}): GpuRow => ({
  uuid,
  index: 0,
  host_id: "host_a",
  host_name: "a",
  region: "north",
  simulated: false,
  name: "H100",
  tier: "h100/A",
  memory_bytes: 80,
  link_state: "online",
  state: "idle",
  state_text: "idle",
  state_reason: null,
  parts: 0,
  parts_rented: 0,
  slot_state: "free",
  unavailable_reason: null,
  price_per_hour: "1.9",
  cluster_id: null,
  utilization_ratio: null,
  memory_used_bytes: null,
  temperature_celsius: null,
  power_watts: null,
  at: null,
  ...change,
});
const host = (id: string, change: Partial<HostSummary> = {}): HostSummary =>
  ({
    id,
    name: id,
    simulated: false,
    admin_state: "active",
    link_state: "online",
    cpu_count: 2,
    cpu_model: "EPYC",
    memory_bytes: 8,
    live: null,
    last_seen_at: null,
    price_per_hour: null,
    tier: "cpu/A",
    region: null,
    slots: [],
    ...change,
  }) as HostSummary;
const batch = (version: number, gpus: GpuRow[], hosts: HostSummary[] = [], whole = false): Batch => ({
  version,
  gpus,
  hosts,
  whole,
});

test("a provider acts on own hosts alone", () => {
  const mine = host("host_b", { owner_account: "account_pia" });
  const fleet = merge(NO_FLEET, [batch(1, [gpu("g1")], [host("host_a", { owner_account: null }), mine], true)]);
  const account = { id: "account_pia", name: "pia" };
  expect(mayActOn(fleet, { account, roles: ["provider"] })).toEqual(["host_b"]);
  expect(mayActOn(fleet, { account, roles: ["renter"] })).toEqual([]);
  expect(mayActOn(fleet, { account, roles: ["operator"] })).toEqual(["host_a", "host_b"]);
});

test("a host without cards is a row of its own; a host with cards is not", () => {
  const fleet = merge(NO_FLEET, [batch(1, [gpu("g1")], [host("host_a"), host("host_b")], true)]);
  expect(fleet.rows.map((row) => row.key)).toEqual(["g1", "host_b"]);
});

test("real hosts come before simulated ones", () => {
  const fleet = merge(NO_FLEET, [
    batch(1, [gpu("s", { simulated: true, host_id: "host_s" })], [host("host_real")], true),
  ]);
  expect(fleet.rows.map((row) => row.key)).toEqual(["host_real", "s"]);
});

test("rows that did not change keep their identity", () => {
  const before = merge(NO_FLEET, [batch(1, [gpu("g1"), gpu("g2")], [], true)]);
  const after = merge(before, [batch(2, [gpu("g2", { utilization_ratio: 0.5 })])]);
  expect(after.rows[0]).toBe(before.rows[0]);
  expect(after.rows[1]).not.toBe(before.rows[1]);
  expect(after.rows[1]?.use).toBe(0.5);
});

test("an older list never replaces a newer row", () => {
  const streamed = merge(NO_FLEET, [batch(5, [gpu("g1", { temperature_celsius: 50 })])]);
  const listed = merge(streamed, [batch(4, [gpu("g1", { temperature_celsius: 40 })], [], true)]);
  expect(listed.rows[0]?.temperature).toBe(50);
});

test("a whole list forgets what it does not name, but not what came after it", () => {
  const known = merge(NO_FLEET, [batch(1, [gpu("old")]), batch(9, [gpu("new")])]);
  expect(
    merge(known, [batch(5, [gpu("g1")], [], true)])
      .rows.map((row) => row.key)
      .sort(),
  ).toEqual(["g1", "new"]);
});

test("a retired host leaves with its cards", () => {
  const known = merge(NO_FLEET, [batch(1, [gpu("g1")], [host("host_a")], true)]);
  expect(merge(known, [batch(2, [], [host("host_a", { admin_state: "Retired" })])]).rows).toEqual([]);
});

test("absent readings stay absent", () => {
  const row = merge(NO_FLEET, [batch(1, [gpu("g1")], [], true)]).rows[0];
  expect([row?.use, row?.temperature, row?.power, row?.memoryUsedBytes]).toEqual([null, null, null, null]);
});

test("hosts are counted once, whether they have cards or not", () => {
  const fleet = merge(NO_FLEET, [batch(1, [gpu("g1"), gpu("g2")], [host("host_a"), host("host_b")], true)]);
  expect(fleet.hostCount).toBe(2);
});

test("names are in the order of their numbers, and what shares a name stays in its order", () => {
  const rows = ["n-10 a", "n-2 a", "n-10 b"].map((text) => text.split(" ") as [string, string]);
  expect(byName(rows, ([name]) => name).map((row) => row.join(" "))).toEqual(["n-2 a", "n-10 a", "n-10 b"]);
});

test("why a card cannot be rented goes with its row, and with the slot of a host without cards", () => {
  const slots = [
    { state: "free", state_text: "paused", state_reason: "the disk is full", cluster_id: null },
  ] as unknown as HostSummary["slots"];
  const fleet = merge(NO_FLEET, [
    batch(
      1,
      [gpu("g1", { state: "paused", state_text: "paused", state_reason: "it is hot" }), gpu("g2")],
      [host("host_b", { slots })],
      true,
    ),
  ]);
  expect(fleet.rows.map((row) => row.why)).toEqual(["it is hot", null, "the disk is full"]);
  expect(fleet.rows.map((row) => row.state)).toEqual(["paused", "idle", "paused"]);
});
