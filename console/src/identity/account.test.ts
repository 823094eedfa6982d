import { expect, it } from "vitest";
import type { Profile } from "../api/types.ts";
import { codesFile, inFours, needsPassword, passwordFault, toNewUser, toProfileChange } from "./account.ts";

const ADA: Profile = {
  id: "user_1",
  name: "Ada",
  address: "ada@example.org",
  has_password: true,
  has_second_factor: false,
  recovery_codes_left: null,
  organisations: [],
};

it("takes a new user with a name, an address and 12 characters of password", () => {
  const draft = { name: " Ada ", address: "ada@example.org ", password: "violet kettle" };
  expect(toNewUser("wi_1", draft, null)).toEqual({
    body: { secret: "wi_1", name: "Ada", address: "ada@example.org", password: "violet kettle" },
    faults: {},
  });
  expect(Object.keys(toNewUser("wi_1", { name: "", address: "ada", password: "short" }, null).faults)).toEqual([
    "name",
    "address",
    "password",
  ]);
});

it("keeps to the address of the invitation", () => {
  const draft = { name: "Ada", address: "other@example.org", password: "violet kettle" };
  expect(toNewUser("wi_1", draft, "ada@example.org").body.address).toBe("ada@example.org");
});

it("counts characters as people do", () => {
  expect(passwordFault("🔑".repeat(12))).toBeUndefined();
  expect(passwordFault("🔑".repeat(11))).toContain("12");
});

it("sends what changed alone, and the password with another address", () => {
  const same = { name: "Ada", address: "ada@example.org", password: "" };
  expect(toProfileChange(same, ADA)).toBeNull();
  expect(toProfileChange({ ...same, name: "Ada L" }, ADA)).toEqual({ name: "Ada L" });
  const moved = { ...same, address: "ada@example.net" };
  expect(needsPassword(moved, ADA)).toBe(true);
  expect(toProfileChange(moved, ADA)).toBeNull();
  expect(toProfileChange({ ...moved, password: "p" }, ADA)).toEqual({ address: "ada@example.net", password: "p" });
  expect(toProfileChange(moved, { ...ADA, has_password: false })).toEqual({ address: "ada@example.net" });
  expect(toProfileChange({ ...same, address: "" }, { ...ADA, has_password: false })).toBeNull();
});

it("writes secrets and recovery codes for people", () => {
  expect(inFours("ABCDEFGHIJ")).toBe("ABCD EFGH IJ");
  expect(codesFile(["AAAA-BBBB", "CCCC-DDDD"])).toContain("\nAAAA-BBBB\nCCCC-DDDD\n");
});
