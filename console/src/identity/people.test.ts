import { expect, it } from "vitest";
import { toCredit, toPerson } from "./people.ts";

it("needs a name and a role, and takes a credit or none", () => {
  expect(toPerson({ name: " ada ", roles: ["renter"], credit: "50" })).toEqual({
    body: { name: "ada", roles: ["renter"], credit: "50" },
    faults: {},
  });
  expect(toPerson({ name: "ada", roles: ["renter"], credit: "" }).body).toEqual({ name: "ada", roles: ["renter"] });
  expect(Object.keys(toPerson({ name: " ", roles: [], credit: "lots" }).faults)).toEqual(["name", "roles", "credit"]);
});

it.each([
  ["50", "50"],
  ["0.5", "0.5"],
  ["0", ""],
  ["-1", ""],
  ["1e9", ""],
  ["", ""],
])("reads a credit of %j", (text, credit) => {
  expect(toCredit(text).credit).toBe(credit);
});
