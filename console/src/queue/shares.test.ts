import { expect, test } from "vitest";
import type { FairShare, Me, Quota } from "../api/types.ts";
import {
  BLANK_QUOTA,
  barText,
  depthOf,
  draftOfQuota,
  draftOfShare,
  itemName,
  maySet,
  partText,
  quotaCommand,
  quotaPath,
  quotaRatio,
  quotaText,
  scaleOf,
  shareCommand,
  toQuota,
  toShare,
} from "./shares.ts";

const share = (id: string, more: Partial<FairShare> = {}): FairShare => ({
  id,
  level: "project",
  name: "lab",
  parent_id: "organisation_1",
  guarantee_ppm: 250_000,
  ceiling_ppm: 1_000_000,
  weight: 2,
  is_borrowing: true,
  may_use_urgent: false,
  held_ppm: 200_000,
  used_ppm: 125_000,
  rank: 1,
  ...more,
});

test("parts are told in per cent, small ones with more decimals", () => {
  expect([0, 125, 4_000, 125_000, 1_000_000].map(partText)).toEqual(["0%", "0.01%", "0.4%", "12.5%", "100%"]);
  expect(barText(share("a"))).toBe("20% in use, of 25% guaranteed");
  expect(barText(share("a", { ceiling_ppm: 500_000 }))).toContain("and 50% at most");
  expect(barText(share("a", { is_borrowing: false }))).toContain("and 25% at most");
});

test("bars end at the largest figure below the installation", () => {
  const all = share("installation", { level: "installation", parent_id: null, guarantee_ppm: 1_000_000 });
  expect(scaleOf([all, share("a"), share("b", { guarantee_ppm: 0, held_ppm: 10_000 })])).toBe(250_000);
  expect(scaleOf([all])).toBe(1_000_000);
  expect([all, share("a", { parent_id: "installation" }), share("b")].map(depthOf)).toEqual([0, 1, 2]);
});

test("operators set all shares, owners and admins of an organisation those of its projects", () => {
  const who = (...roles: string[]) => ({ roles }) as unknown as Me;
  expect(maySet(who("operator"), { level: "organisation" })).toBe(true);
  expect(maySet(who("org_admin"), { level: "project" })).toBe(true);
  expect(maySet(who("org_admin"), { level: "organisation" })).toBe(false);
  expect(maySet(who("renter", "admin"), { level: "project" })).toBe(false);
});

test("a share comes back from its own draft, and its command says the same", () => {
  const row = share("account_1", { guarantee_ppm: 125_000, ceiling_ppm: 500_000, is_borrowing: false });
  const { body, faults } = toShare(draftOfShare(row));
  expect(faults).toEqual({});
  expect(row).toMatchObject(body);
  expect(shareCommand(row.id, body)).toBe(
    "windrow fair-share set account_1 --guarantee 12.5% --ceiling 50% --weight 2 --no-borrowing --no-urgent",
  );
  const wrong = toShare({ ...draftOfShare(row), guarantee: "60", weight: "0" });
  expect(wrong.faults).toEqual({ ceiling_ppm: "No less than the guarantee", weight: "A whole number from 1" });
  expect(toShare({ ...draftOfShare(row), guarantee: "much" }).faults.guarantee_ppm).toBe("A number from 0 to 100");
});

test("quotas are read in the units of people and sent in those of the API", () => {
  const known = [share("account_1")];
  const memory = toQuota({ node: "project lab", item: "memory", tier: "h100", limit: "64" }, known);
  expect(memory).toEqual({ body: { node: "account_1", item: "memory", limit: String(64 * 2 ** 30) }, faults: {} });
  const gpus = toQuota({ node: "other", item: "gpus", tier: "h100", limit: "8" }, known).body;
  expect(gpus).toEqual({ node: "other", item: "gpus", tier: "h100", limit: "8" });
  expect(quotaCommand(gpus)).toBe("windrow quota set other gpus --limit 8 --tier h100");
  expect(toQuota({ ...BLANK_QUOTA, item: "clusters", limit: "1.5" }, known).faults).toEqual({
    node: "An organisation or a project",
    limit: "A whole number, 0 or more",
  });
  const quota = { node_id: "account_1", level: "project", name: "lab", item: "memory", tier: null } as Quota;
  const row = { ...quota, limit: String(64 * 2 ** 30), used: String(16 * 2 ** 30) };
  expect(toQuota(draftOfQuota(row), known).body).toEqual(memory.body);
  expect([quotaText("memory", row.used), quotaRatio(row), itemName(row)]).toEqual(["16 GiB", 0.25, "Memory"]);
  expect(itemName({ item: "gpus", tier: "h100" })).toBe("h100 GPUs");
  expect(quotaPath({ ...row, item: "gpus", tier: "h100" })).toBe("/quotas?node=account_1&item=gpus&tier=h100");
  expect(quotaRatio({ used: "0", limit: "0" })).toBeNull();
});
