import { expect, it } from "vitest";
import type { SpendingLimit } from "../api/types.ts";
import {
  draftOfLimits,
  limitCommand,
  limitsPath,
  limitsText,
  limitWords,
  NO_LIMITS,
  shareOf,
  toLimits,
  usedLimits,
} from "./limits.ts";

const limit: SpendingLimit = {
  id: "token_1",
  kind: "token",
  name: "ci",
  project_id: "account_1",
  max_hourly_cost: "2.00",
  max_monthly_cost: null,
  max_total_cost: "0.30",
  max_leases: 3,
  idle_seconds: 1800,
  hourly_cost: "0.50",
  monthly_cost: "0.10",
  total_cost: "0.10",
  leases: 1,
  held: "0.05",
  month: "2030-01",
  updated_at: null,
  updated_by: null,
};
const ci = { kind: "token", id: "token_1", name: "ci" } as const;

it("limits what is filled in, and names what is none", () => {
  expect(toLimits(NO_LIMITS)).toEqual({ body: {}, faults: {} });
  expect(toLimits({ ...NO_LIMITS, max_total_cost: " 50.5 ", max_leases: "0" })).toEqual({
    body: { max_total_cost: "50.5", max_leases: 0 },
    faults: {},
  });
  expect(toLimits({ ...NO_LIMITS, idle_seconds: "45" }).body).toEqual({ idle_seconds: 2700 });
  const { faults } = toLimits({ ...NO_LIMITS, max_hourly_cost: "-1", max_leases: "1.5" });
  expect(Object.keys(faults)).toEqual(["max_hourly_cost", "max_leases"]);
});

it("begins with the limits as they are", () => {
  expect(draftOfLimits(limit)).toEqual({
    max_hourly_cost: "2.00",
    max_monthly_cost: "",
    max_total_cost: "0.30",
    max_leases: "3",
    idle_seconds: "30",
  });
  expect(draftOfLimits(undefined)).toEqual(NO_LIMITS);
});

it("puts all limits, as its command does", () => {
  expect(limitsPath(ci)).toBe("/tokens/token_1/limits");
  expect(limitCommand(ci, { max_hourly_cost: "2" })).toBe(
    "windrow limit set --token token_1 --max-hourly 2 --max-monthly none " +
      "--max-total none --max-leases none --idle none",
  );
  expect(limitCommand({ ...ci, kind: "service_account" }, {})).toBe("windrow limit rm --service-account token_1 --yes");
  expect(limitWords({ max_leases: 0, max_total_cost: "5" })).toEqual(["--max-total 5", "--max-leases 0"]);
});

it("shows what is used of each limit without a float", () => {
  expect(usedLimits(limit)).toEqual([
    { label: "Per hour", text: "0.50 / 2.00", share: 0.25 },
    { label: "In all", text: "0.10 / 0.30", share: 0.5, held: "0.05" },
    { label: "Leases", text: "1 / 3", share: 0.333 },
  ]);
  expect(usedLimits({ ...limit, held: "0.00" })[1]?.share).toBe(0.333);
  expect(limitsText(limit)).toBe("Per hour 0.50 / 2.00, In all 0.10 / 0.30, Leases 1 / 3");
  expect(limitsText(undefined)).toBe("");
});

it.each<[string, string, number]>([
  ["0.00", "0.00", 1],
  ["3.00", "2.00", 1],
  ["0.00000001", "90000000.00000001", 0],
  ["0.30", "0.30", 1],
  ["1", "3", 0.333],
])("draws %s of %s", (used, most, share) => {
  expect(shareOf(used, most)).toBe(share);
});
