import { expect, test } from "vitest";
import type { Affected, Attention } from "../api/types.ts";
import { emptyIn, idleMinutes, isShared, placeOf, rentedSimulated, wayOf } from "./home.ts";

const affected = (change: Partial<Affected> = {}): Affected => ({
  name: "rack7",
  detail: "it is hot",
  host_id: "host_1",
  gpu_id: "GPU-1",
  gpu: 5,
  access_id: null,
  rented: false,
  simulated: false,
  since: null,
  ...change,
});
const group = (change: Partial<Attention>): Attention => ({
  kind: "hot",
  title: "1 GPU too hot",
  remedy: "",
  severity: "ticket",
  count: 1,
  affected: [affected()],
  ...change,
});

test("simulated hosts are counted on which something runs", () => {
  const host = (simulated: boolean, ...clusters: (string | null)[]) =>
    ({ simulated, slots: clusters.map((cluster_id) => ({ cluster_id })) }) as Parameters<typeof rentedSimulated>[0][0];
  expect(rentedSimulated([host(true, null, "cluster_1"), host(true, null), host(true), host(false, "cluster_2")])).toBe(
    1,
  );
});

test("a balance lasts as long as it and what is reserved pay the hour", () => {
  expect(emptyIn("73.15", "26.85", "10")).toBe(10 * 3600);
  expect(emptyIn("73.15", "0", "0.00")).toBeNull();
});

test("a GPU is idle since it was last used, after ten minutes of it", () => {
  const now = 100 * 60_000;
  const at = (minute: number, ratio: number | null) => [minute * 60_000, ratio] as const;
  expect(idleMinutes([[at(57, 0.9), at(60, 0.01), at(99, 0)]], now)).toBe(43);
  expect(idleMinutes([[at(40, 0), at(99, 0)]], now)).toBe(60);
  expect(idleMinutes([[at(95, 0.9), at(99, 0)]], now)).toBeNull();
  expect(idleMinutes([[at(40, 0), at(99, 0)], [at(99, 0.8)]], now)).toBeNull();
  expect(idleMinutes([[at(99, null)]], now)).toBeNull();
});

test("a trouble leads to the place where it is looked after", () => {
  expect(placeOf(affected())).toBe("rack7 · GPU 5");
  expect(wayOf(group({}))).toMatchObject({ to: "/gpus/$gpuId", params: { gpuId: "GPU-1" } });
  expect(wayOf(group({ kind: "faulty", count: 3 }))).toMatchObject({ to: "/fleet", search: { state: "faulty" } });
  expect(wayOf(group({ affected: [affected({ gpu_id: null })] }))).toMatchObject({ to: "/hosts/$hostId" });
  const relay = affected({ gpu_id: null, host_id: null, access_id: "access_1" });
  expect(wayOf(group({ kind: "relay", affected: [relay] }))).toMatchObject({ to: "/regions" });
  const master = affected({ gpu_id: null, host_id: null });
  expect(wayOf(group({ kind: "master:bus_alone", affected: [master] }))).toMatchObject({ to: "/health" });
});

test("a colleague in the organisation counts as somebody, as an account of its own does", () => {
  expect([isShared(1, 1), isShared(1, 2), isShared(2, 1)]).toEqual([false, true, true]);
});
