import { expect, it } from "vitest";
import type { ObjectShare, Role } from "../api/types.ts";
import { givableLevels, levelText, reachOf, readsShares, receiverText, shareCommand, toShare } from "./shares.ts";

const who = (...roles: Role[]) => ({ account: { id: "account_1", name: "lab" }, roles });
const cluster = { object_kind: "cluster", object_id: "cluster_1" } as const;
const draft = { kind: "user", receiver: " Ada Lovelace ", level: "use", lasts: "" } as const;

it("lets a renter share at every level, an admin the page, and nobody what is another project's", () => {
  expect(givableLevels(who("renter"), "account_1")).toEqual(["see", "use", "manage"]);
  expect(givableLevels(who("admin"), "account_1")).toEqual(["see"]);
  expect(givableLevels(who("viewer"), "account_1")).toEqual([]);
  expect(givableLevels(who("renter"), "account_2")).toEqual([]);
  expect(givableLevels(null, "account_1")).toEqual([]);
  expect([readsShares(who("viewer"), "account_1"), readsShares(who("renter"), "account_2")]).toEqual([true, false]);
});

it.each([
  [true, "renter", "user", [], true, true],
  [false, "renter", "user", [], false, false],
  [false, "renter", "project", ["see"], false, false],
  [false, "renter", "organisation", ["see", "use"], true, false],
  [false, "viewer", "user", ["manage"], true, true],
  [false, "viewer", "project", ["manage"], false, false],
  [false, "viewer", "organisation", ["use"], false, false],
] as const)("of the own %s, a %s with shares with a %s %j", (isOwn, role, receiver_kind, levels, uses, manages) => {
  const shares = levels.map((level) => ({ level, receiver_kind }));
  expect(reachOf(isOwn, [role], shares)).toEqual({ uses, manages });
});

it("makes a request and a command of a draft", () => {
  expect(toShare(cluster, { ...draft, receiver: " " })).toBeNull();
  const body = toShare(cluster, draft)!;
  expect(body).toEqual({ ...cluster, receiver_kind: "user", receiver: "Ada Lovelace", level: "use" });
  expect(shareCommand(body)).toBe("windrow share add --with 'Ada Lovelace' --level use cluster_1");
  const lab = toShare(cluster, { kind: "organisation", receiver: "lab", level: "see", lasts: "86400" })!;
  expect(lab.expires_in_s).toBe(86_400);
  expect(shareCommand(lab)).toBe("windrow share add --with org:lab --level see --for 24h cluster_1");
});

it("names a receiver with its kind, and says when a share is not in force", () => {
  const share = { receiver_kind: "project", receiver: "lab", level: "use", is_active: true } as ObjectShare;
  expect(receiverText(share)).toBe("project lab");
  expect(receiverText({ ...share, receiver_kind: "user", receiver: "Ada" })).toBe("Ada");
  expect([levelText(share), levelText({ ...share, is_active: false })]).toEqual(["Use", "Use (not in force)"]);
});
