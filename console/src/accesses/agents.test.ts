import { expect, test } from "vitest";
import type { AgentRow, HostSummary } from "../api/types.ts";
import { agentsOf } from "./agents.ts";

const row = (id: string, version: number, change: Partial<AgentRow> = {}): AgentRow =>
  ({
    id,
    name: id,
    simulated: false,
    link_state: "online",
    access_id: "access_a",
    rtt_ms: 3,
    version,
    ...change,
  }) as AgentRow;
const host = (id: string, version: number, change: Partial<HostSummary> = {}) =>
  ({ ...row(id, version), admin_state: "active", ...change }) as HostSummary;

test("the newer word counts, whichever way it came", () => {
  const [one] = agentsOf([row("h", 3)], [host("h", 4, { access_id: "access_b" })]);
  expect(one?.access).toBe("access_b");
  const [other] = agentsOf([row("h", 9)], [host("h", 4, { access_id: "access_b" })]);
  expect(other?.access).toBe("access_a");
});

test("of two of one version the streamed one counts: its round trip is of now", () => {
  expect(agentsOf([row("h", 3)], [host("h", 3, { rtt_ms: 8 })])[0]?.rttMs).toBe(8);
});

test("who was never heard, and who is retired, is not on the map", () => {
  const unseen = row("u", 1, { access_id: null, link_state: "unseen" } as Partial<AgentRow>);
  expect(agentsOf([unseen, row("h", 1)], [host("h", 2, { admin_state: "retired" } as Partial<HostSummary>)])).toEqual(
    [],
  );
});
