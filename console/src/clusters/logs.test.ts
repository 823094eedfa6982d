import { expect, test } from "vitest";
import { found, grown, LINES_MOST, type Mark, markBefore, marked, markIn, NO_LOG, pageBefore, shown } from "./logs.ts";

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

test("the page before a line is found again from a mark, wherever the pieces were cut", () => {
  const text = Array.from({ length: 30_000 }, (_, line) => `line ${line} é\n`).join("");
  const bytes = new TextEncoder().encode(text);
  const marks: Mark[] = [{ bytes: 0, lines: 0 }];
  for (let at = 0; at < bytes.length; at += 9_973) {
    const mark = markIn(bytes.subarray(at, at + 9_973), { bytes: at, lines: marks.at(-1)!.lines });
    if (mark) marks.push(mark);
  }
  expect(marks.at(-1)).toEqual({ bytes: bytes.length, lines: 30_000 });
  for (const first of [20_000, 1_500]) {
    const from = markBefore(marks, first);
    const rest = new TextDecoder().decode(bytes.subarray(from.bytes));
    expect(pageBefore(grown(NO_LOG, rest.slice(0, 20)), from, first)).toBeNull();
    const page = pageBefore(grown(NO_LOG, rest.split("\n").slice(0, 5_000).join("\n")), from, first)!;
    expect([page[0], page.at(-1)]).toEqual([`line ${Math.max(0, first - 2_000)} é`, `line ${first - 1} é`]);
  }
});
