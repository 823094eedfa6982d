// Tables as CSV (RFC 4180) that no spreadsheet takes for formulas. Pure.

export type Cell = string | number | boolean | null | undefined;

export interface CsvColumn<T> {
  name: string;
  value: (row: T) => Cell;
}

// The first characters of a formula in spreadsheets, and characters that some of them strip before they look.
const FORMULA = /^[\s\u0000-\u001f\u200b-\u200f\ufeff]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]/;
const CONTROLS = /[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f]/g;

/**
 * One cell. A number is written as it is; a text that a spreadsheet would compute is marked as text; absent is
 * empty.
 */
export function cell(value: Cell): string {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const plain = value.replace(CONTROLS, "\ufffd");
  const safe = FORMULA.test(value) && !isNumber(value) ? `'${plain}` : plain;
  return /[",\r\n']/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** A decimal string, as amounts are: `-1.5` is no formula. */
const isNumber = (text: string): boolean => /^-?\d+(\.\d+)?$/.test(text);

export function csv<T>(columns: readonly CsvColumn<T>[], rows: readonly T[]): string {
  const lines = [
    columns.map((column) => cell(column.name)),
    ...rows.map((row) => columns.map((column) => cell(column.value(row)))),
  ];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** A name that every file system takes. */
export function fileName(name: string, ending: string): string {
  return `${name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+|-+$/g, "") || "windrow"}.${ending}`;
}
