import { expect, test } from "vitest";
import { cell, csv, fileName } from "./csv.ts";

test("what a spreadsheet would compute is marked as text", () => {
  for (const text of ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\t=1", " =HYPERLINK(1)", "\r=1", "|x", "＝1", "\u200b=1"]) {
    expect(cell(text).replace(/^"/, "").startsWith("'"), JSON.stringify(text)).toBe(true);
  }
});

test("numbers and amounts stay numbers, absent stays empty and never becomes zero", () => {
  expect(cell(-3.5)).toBe("-3.5");
  expect(cell("-1.25")).toBe("-1.25");
  expect(cell(0)).toBe("0");
  expect([cell(null), cell(undefined), cell(""), cell(Number.NaN)]).toEqual(["", "", "", ""]);
});

test("commas, quotes and line breaks stay inside their cell, and control characters become visible", () => {
  expect(cell('a,"b"\nc')).toBe('"a,""b""\nc"');
  expect(cell("a\u0007b")).toBe("a\ufffdb");
  expect(csv([{ name: "n", value: (row: { n: string }) => row.n }], [{ n: "x,y" }, { n: "z" }])).toBe(
    'n\r\n"x,y"\r\nz\r\n',
  );
});

test("a file's name holds nothing but plain letters", () => {
  expect(fileName("../../etc/pass wd", "csv")).toBe("etc-pass-wd.csv");
  expect(fileName("\u202e", "csv")).toBe("windrow.csv");
});
