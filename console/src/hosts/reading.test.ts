import { expect, test } from "vitest";
import type { Host, HostLiveFrame } from "../api/types.ts";
import { withReading } from "./reading.ts";

const host = {
  id: "host_a",
  live: { cpu_ratio: 0.1, at: "2027-01-15T08:00:01.000Z" },
  gpus: [
    { uuid: "g1", index: 0, live: null },
    { uuid: "g2", index: 1, live: null },
  ],
} as Host;
const frame = (at: string): HostLiveFrame => ({
  at,
  host: { host_cpu_ratio: 0.5 },
  gpus: { g1: { gpu_utilization_ratio: 0.9, gpu_power_watts: null } },
});

test(
  "a newer frame is what the host and its cards read; what it does not name is absent, and a " +
    "card it leaves out stays",
  () => {
    const read = withReading(host, frame("2027-01-15T08:00:02.000Z"));
    expect([read.live?.cpu_ratio, read.live?.memory_used_bytes]).toEqual([0.5, null]);
    expect([
      read.gpus[0]?.live?.utilization_ratio,
      read.gpus[0]?.live?.power_watts,
      read.gpus[0]?.live?.temperature_celsius,
    ]).toEqual([0.9, null, null]);
    expect(read.gpus[1]).toBe(host.gpus[1]);
  },
);

test("an older frame changes nothing", () => {
  expect(withReading(host, frame("2027-01-15T08:00:01.000Z"))).toBe(host);
});
