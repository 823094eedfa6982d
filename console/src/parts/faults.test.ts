import { expect, it } from "vitest";
import { ApiProblem } from "../api/client.ts";
import { faultsOf, isAtFields } from "./faults.ts";

const KNOWN = { type: "", title: "Not valid", status: 422, code: "invalid_input", retryable: false, request_id: "r" };
const refused = (detail: string, subject = "", reasons: { about: string; text: string }[] = []) =>
  new ApiProblem({ ...KNOWN, detail, subject, reasons });

it.each([
  [refused("address: this is no mail address.", "address"), { address: "This is no mail address." }],
  [refused("max_monthly_cost: money has two decimals."), { max_monthly_cost: "Money has two decimals." }],
  [refused("There is no such member.", "receiver"), { receiver: "There is no such member." }],
  [refused("Not valid: a.", "", [{ about: "a", text: "has to be 1 or more" }]), { a: "Has to be 1 or more" }],
  [refused("The password is wrong."), {}],
  [new Error("name: none"), {}],
])("gives each field its fault: %s", (error, told) => expect(faultsOf(error)).toEqual(told));

it("leaves to a note what is about no field of the form", () => {
  expect(isAtFields(refused("name: too long", "name"), ["name"])).toBe(true);
  expect(isAtFields(refused("name: too long", "name"), ["address"])).toBe(false);
  expect(isAtFields(refused("The password is wrong."), ["name"])).toBe(false);
});
