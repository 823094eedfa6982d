import { describe, expect, it } from "vitest";
import type { Problem } from "../api/types.ts";
import { aboutText, grouped, readProblem, readReason } from "./problems.ts";

const KNOWN: Problem = {
  type: "about:blank",
  title: "Error",
  status: 409,
  detail: "The Master answered 409.",
  code: "http_409",
  subject: null,
  retryable: false,
  request_id: null,
  reasons: [],
};

describe("readProblem", () => {
  it("takes what the answer gives and keeps what is known for the rest", () => {
    const read = readProblem(
      { title: "Conflict", detail: "No host fits.", reasons: [{ host_name: "vm", reason: "it is off" }] },
      KNOWN,
    );
    expect(read).toEqual({
      ...KNOWN,
      title: "Conflict",
      detail: "No host fits.",
      reasons: [{ about: "vm", text: "it is off" }],
    });
  });

  it.each([null, "text", 7, [], { detail: { not: "text" }, reasons: "none", title: 7, subject: [] }])(
    "never hands on what is no text: %j",
    (told) => {
      expect(readProblem(told, KNOWN)).toEqual(KNOWN);
    },
  );
});

describe("readReason", () => {
  it.each([
    ["plain words", { about: "", text: "plain words" }],
    [
      { code: "busy", text: "12 hosts: no free GPU", reason: "no free GPU", count: 12 },
      { about: "", text: "12 hosts: no free GPU" },
    ],
    [
      { host_id: "host_1", host_name: "vm", reason: "it is off" },
      { about: "vm", text: "it is off" },
    ],
    [
      { host_id: "host_1", host_name: "", reason: "it is off" },
      { about: "host_1", text: "it is off" },
    ],
    [
      { field: "argv", reason: "List should have at least 1 item" },
      { about: "argv", text: "List should have at least 1 item" },
    ],
    [{ other: 1 }, { about: "", text: '{"other":1}' }],
    [null, { about: "", text: "null" }],
    [["a"], { about: "", text: '["a"]' }],
  ])("reads %j", (told, reason) => expect(readReason(told)).toEqual(reason));
});

it("says a reason once, the rarest first", () => {
  const reasons = ["a", "b", "c", "d"].map((about) => ({ about, text: "it is simulated" }));
  const found = grouped([...reasons, { about: "vm", text: "it has no GPU" }]);
  expect(found).toEqual([
    { text: "it has no GPU", of: ["vm"] },
    { text: "it is simulated", of: ["a", "b", "c", "d"] },
  ]);
  expect(found.map((group) => aboutText(group.of))).toEqual(["vm", "a, b and 2 more"]);
  expect(aboutText(["a", "b", "c"])).toBe("a, b, c");
});
