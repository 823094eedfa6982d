import { expect, test } from "vitest";
import { USES } from "./Bars.tsx";
import { toneOf } from "./states.ts";

test("each of the five states of a GPU has a tone, with the count of its parts as well", () => {
  expect(USES.map(([use]) => toneOf(use))).toEqual(["busy", "ok", "warn", "bad", "bad"]);
  expect(toneOf("rented, 1 of 2 parts")).toBe("busy");
  expect(toneOf("degraded")).toBe("warn");
});

test("a state that is not known here is told apart from good and bad", () => {
  expect(toneOf("new_word")).toBe("off");
  expect(toneOf(null)).toBe("off");
});
