import { expect, test } from "vitest";
import { found, grown, LINES_MOST, marked, NO_LOG, shown } from "./logs.ts";

test("lines grow from pieces cut anywhere", () => {
  const log = grown(grown(NO_LOG, "one\ntw"), "o\nthree");
  expect(log.lines).toEqual(["one", "two"]);
  expect(log.open).toBe("three");
});

test("escape sequences go, carriage returns overwrite, control characters show", () => {
  expect(shown("\u001b[1;31mred\u001b[0m")).toBe("red");
  expect(shown("10%\r20%\r30%")).toBe("30%");
  expect(shown("windows line\r")).toBe("windows line");
  expect(shown("\u001b]0;title\u0007text")).toBe("text");
  expect(shown("bell\u0007")).toBe("bell�");
  expect(shown("")).toBe("");
});

test("a flood is bounded and said", () => {
  const log = grown(NO_LOG, "x\n".repeat(LINES_MOST + 5));
  expect(log.lines.length).toBe(LINES_MOST);
  expect(log.dropped).toBe(5);
  expect(shown("y".repeat(100_000)).length).toBeLessThan(5_000);
});

test("a log is searched without regard to capitals, and what was found is marked", () => {
  expect(found(["Loss 1", "step", "LOSS 2"], "loss")).toEqual(["Loss 1", "LOSS 2"]);
  expect(found(["a", "b"], "")).toEqual(["a", "b"]);
  expect(marked("aXbxc", "x")).toEqual(["a", "X", "b", "x", "c"]);
  expect(marked("abc", "")).toEqual(["abc"]);
});
