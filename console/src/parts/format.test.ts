import { describe, expect, test } from "vitest";
import MONEY from "../../../tests/support/money_shown.json";
import {
  amount,
  bitrate,
  bytes,
  celsius,
  count,
  DASH,
  duration,
  exact,
  fieldText,
  inUnit,
  percent,
  perHour,
  plain,
  relative,
  sentence,
  shortId,
  shortIds,
  words,
} from "./format.ts";

describe("absent is a dash and never zero", () => {
  test.each([count, percent, bytes, bitrate, celsius, duration])("%o", (format) => {
    expect(format(null)).toBe(DASH);
    expect(format(undefined)).toBe(DASH);
    expect(format(Number.NaN)).toBe(DASH);
    expect(format(0)).not.toBe(DASH);
  });
  test("money, times and ids", () => {
    expect([
      amount(null),
      perHour(null),
      relative(null, 0),
      exact(null),
      shortId(null),
      plain(""),
      words(null),
    ]).toEqual(Array(7).fill(DASH));
  });
});

test("sizes are binary, networks decimal", () => {
  expect(bytes(80 * 1024 ** 3)).toBe("80 GiB");
  expect(bytes(1536)).toBe("1.50 KiB");
  expect(bytes(1023)).toBe("1.00 KiB");
  expect(bitrate(938e6)).toBe("938 Mbit/s");
  expect(bitrate(1.5e9)).toBe("1.50 Gbit/s");
  expect(inUnit(0.374, "ratio")).toBe("37%");
  expect(inUnit(2048, "By/s")).toBe("2 KiB/s");
});

test("a field of a GPU is a figure, yes or no, or words, and a dash where it was not said", () => {
  expect([fieldText(null, "W"), fieldText(undefined, "bool"), fieldText("", "")]).toEqual(Array(3).fill(DASH));
  expect([fieldText(0, "1"), fieldText(false, "bool"), fieldText(true, "bool")]).toEqual(["0", "no", "yes"]);
  expect([fieldText(700, "W"), fieldText(1980e6, "Hz"), fieldText(26_562e6, "By/s"), fieldText(5120, "bit")]).toEqual([
    "700 W",
    "1.98 GHz",
    "24.7 GiB/s",
    "5,120 bit",
  ]);
  expect(fieldText("one switch: 1 2", "")).toBe("one switch: 1 2");
});

test("money is never a float, and is rounded half up to four decimals", () => {
  // The command is held to the same cases.
  for (const [text, digits, shown] of MONEY as [string, number, string][])
    expect(amount(text, digits).replaceAll(",", "").replace("−", "-"), text).toBe(shown);
  expect(amount("-1234567.5")).toBe("−1,234,567.50");
  expect(amount("soon")).toBe("soon");
  expect(perHour("0.0800")).toBe("0.08/h");
});

test("durations take numbers and the decimal strings of receipts", () => {
  expect(duration("12.345678901")).toBe("12 s");
  expect(duration(3.21)).toBe("3.2 s");
  expect(duration(245)).toBe("4 min 5 s");
  expect(duration(7200)).toBe("2 h");
  expect(duration(90061)).toBe("1 d 1 h");
});

test("relative times look both ways", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect(relative("2026-01-01T11:59:48Z", now)).toBe("12 s ago");
  expect(relative("2026-01-01T15:00:00Z", now)).toBe("in 3 h");
  expect(relative("2026-01-01T19:59:58Z", now), "just after 8 h were chosen").toBe("in 8 h");
  expect(relative("2026-01-08T11:59:50Z", now)).toBe("in 7 d");
  expect(relative("2026-01-01T11:00:10Z", now)).toBe("1 h ago");
  expect(relative("2026-01-01T11:59:59.500Z", now)).toBe("now");
  expect(relative("nonsense", now)).toBe(DASH);
});

test("names given by others cannot control the page", () => {
  expect(plain("a\u0007b\u001b[31m")).toBe("a�b�[31m");
  expect(plain("\u202eevil")).toBe("�evil");
  expect(plain("<b>kept as text</b>")).toBe("<b>kept as text</b>");
});

test("words of the Master begin with a capital letter on their own", () => {
  expect([sentence("waits for prepare"), sentence("GPU 2 is lost"), sentence(null)]).toEqual([
    "Waits for prepare",
    "GPU 2 is lost",
    DASH,
  ]);
});

test("states read as words", () => {
  expect(words("timed_out")).toBe("Timed out");
  expect(words("no_gpu")).toBe("No GPU");
  expect(shortIds("acct:account_01a1fbe22ee537085939bba9d12536430 and more")).toBe("acct:account_…12536430 and more");
  expect(shortId("host_019a0000-0000-7000-8000-000000000001")).toBe("host_…00000001");
});
