import { expect, it } from "vitest";
import { notNow, wayBack } from "./undoing.ts";

const host = (admin_state: string, headline_reason = "", headline = admin_state) => ({
  admin_state,
  headline,
  headline_reason,
});

it("brings each host back into its own earlier state, with the reason it had", () => {
  expect(wayBack("maintenance", host("draining", "moves out"))).toEqual({ verb: "drain", reason: "moves out" });
  expect(wayBack("maintenance", host("active", "ready for work", "idle"))).toEqual({
    verb: "activate",
    reason: "maintenance undone",
  });
  expect(wayBack("drain", host("active", "ready for work", "idle"))?.verb).toBe("activate");
  expect(wayBack("drain", host("maintenance", "PSU"))).toEqual({ verb: "maintenance", reason: "PSU" });
  expect(wayBack("activate", host("maintenance", "PSU replaced"))).toEqual({
    verb: "maintenance",
    reason: "PSU replaced",
  });
});

it("undoes nothing that this act did not change, or that no act brings back", () => {
  expect(wayBack("maintenance", host("maintenance", "PSU"))).toBeNull();
  expect(wayBack("activate", host("active"))).toBeNull();
  expect(wayBack("activate", host("quarantined"))).toBeNull();
  expect(wayBack("retire", host("active"))).toBeNull();
});

it("leaves alone what somebody has changed since", () => {
  expect(notNow("drain", host("draining"))).toBeNull();
  expect(notNow("drain", host("maintenance"))).toContain("maintenance now");
});
