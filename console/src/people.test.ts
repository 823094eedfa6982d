import { expect, it } from "vitest";
import type { Person } from "./api/types.ts";
import { matchingPeople, toCredit, toPerson } from "./people.ts";

const person = (name: string, roles: Person["roles"], state: Person["state"] = "active"): Person => ({
  id: `account_${name}`,
  name,
  roles,
  state,
  balance: { amount: "1", currency: "TEST" },
  created_at: "",
});
const PEOPLE = [
  person("Ada", ["renter"]),
  person("Bob", ["provider", "renter"], "suspended"),
  person("Cleo", ["operator"]),
];

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

it.each([
  ["", 3],
  ["ad", 1],
  ["RENTER", 2],
  ["renter suspended", 1],
  ["account_cleo", 1],
  ["nobody", 0],
])("finds by %j", (typed, number) => {
  expect(matchingPeople(PEOPLE, typed)).toHaveLength(number);
});
