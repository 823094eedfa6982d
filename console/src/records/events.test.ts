import { expect, test } from "vitest";
import type { EventRow } from "../api/types.ts";
import { grouped, isAtLeast, severityFrom, textOf } from "./events.ts";

const event = (id: string, text: string, minutes = 0, more: Partial<EventRow> = {}): EventRow => ({
  id,
  number: 1,
  at: new Date(Date.UTC(2026, 0, 1, 12, 60 - minutes)).toISOString(),
  kind: "host.listed",
  title: "Host listed",
  severity: "notice",
  subjects: [],
  names: {},
  text,
  actor: null,
  fields: {},
  ...more,
});

test("a text has names in the place of ids", () => {
  const row = event("1", "access_1 is draining", 0, { names: { access_1: "relay north" } });
  expect(textOf(row)).toBe("relay north is draining");
});

test("what repeats itself within minutes is one row, whatever it is about, and however much lies between", () => {
  const rows = [
    event("1", "rack-1 is listed at 4.5", 0, { names: { host_1: "rack-1" } }),
    event("2", "Something else", 1),
    event("3", "rack-2 is listed at 12.25", 2, { names: { host_2: "rack-2" } }),
    event("4", "rack-3 is listed at 1.5", 40, { names: { host_3: "rack-3" } }),
    event("5", "rack-4 is listed at 1.5", 2, { severity: "error", names: { host_4: "rack-4" } }),
  ];
  expect(grouped(rows).map((one) => [one.id, one.others.map((other) => other.id)])).toEqual([
    ["1", ["3"]],
    ["2", []],
    ["4", []],
    ["5", []],
  ]);
});

test("everyday work is left out unless it is asked for, or is of one machine", () => {
  expect(severityFrom(undefined, undefined)).toBe("notice");
  expect(severityFrom(undefined, "host_1")).toBe("notice");
  expect(severityFrom(undefined, "cluster_1")).toBe("info");
  expect(severityFrom("error", "cluster_1")).toBe("error");
  expect(severityFrom("loud", undefined)).toBe("notice");
  expect(isAtLeast(event("1", "x"), "warning")).toBe(false);
});
