import { expect, test } from "vitest";
import type { Role } from "../api/types.ts";
import { isRenter, mayEnd, mayOperate } from "./rights.ts";

const who = (...roles: Role[]) => ({ account: { id: "account_1", name: "ada" }, roles });

test("work is its renter's alone, and operators may end it", () => {
  expect([isRenter(who("renter"), "account_1"), isRenter(who("renter"), "account_2")]).toEqual([true, false]);
  expect([isRenter(who("operator"), "account_1"), mayEnd(who("operator"), "account_2")]).toEqual([false, true]);
  expect([mayEnd(who("auditor"), "account_1"), mayEnd(null, "account_1")]).toEqual([false, false]);
});

test("a provider decides about hosts of their own, an operator about all", () => {
  const [own, other] = [{ owner_account: "account_1" }, { owner_account: null }];
  expect([mayOperate(who("provider"), own), mayOperate(who("provider"), other)]).toEqual([true, false]);
  expect([mayOperate(who("operator"), other), mayOperate(who("renter", "auditor"), own)]).toEqual([true, false]);
});
