import { expect, test } from "vitest";
import type { Report } from "../api/types.ts";
import { bars, dimensionsOf, measuresOf, shownValue, viewsOf, wantedFrom } from "./reports.ts";

test("everybody begins with the widest view of the own roles", () => {
  expect(viewsOf(["operator", "renter", "provider"])).toEqual(["all", "project", "hosts"]);
  expect(viewsOf(["provider"])).toEqual(["hosts"]);
  expect(viewsOf(["renter"])).toEqual(["project"]);
});

test("a provider is offered no renters, a renter no earnings", () => {
  expect(measuresOf("hosts").map(([word]) => word)).not.toContain("cost");
  expect(dimensionsOf("hosts", "earnings").map(([word]) => word)).not.toContain("project");
  expect(measuresOf("project").map(([word]) => word)).not.toContain("earnings");
  expect(dimensionsOf("all", "occupancy").map(([word]) => word)).not.toContain("kind");
});

test("an address says what is asked, and what it cannot say is left out", () => {
  const wanted = wantedFrom({ by: "host,day,tier", host: "host_1", rows: "1", period: "last-month" }, ["all"]);
  expect(wanted.by).toEqual(["host", "day"]);
  expect([wanted.measure, wanted.rows, wanted.filters]).toEqual(["cost", true, { host: "host_1" }]);
  expect(wanted.words).toMatchObject({ view: "all", by: "host,day", period: "last-month", time_zone: "UTC" });
  const dated = wantedFrom({ from: "2026-11-01", to: "2026-11-30", view: "hosts" }, ["project"]);
  expect([dated.view, dated.words.from, dated.words.period]).toEqual(["project", "2026-11-01", undefined]);
  expect(wantedFrom({ by: "colour" }, ["project"]).by).toEqual([]);
});

const report = (by: string[], cells: [string[], string][]): Report => ({
  ...{ measures: ["cost"], units: { cost: "money" }, by, view: "all", currency: "CRD", test_money: true },
  ...{ first_day: "2026-02-27", last_day: "2026-03-01", time_zone: "UTC", totals: { cost: "0" } },
  cells: cells.map(([keys, cost]) => ({
    keys: keys.map((id) => ({ id, name: id })),
    values: { cost },
    rows: keys.join(),
  })),
});

test("each day has a bar, also one of nothing, and the greatest part comes first", () => {
  const drawn = bars(
    report(
      ["host", "day"],
      [
        [["a", "2026-02-27"], "1"],
        [["b", "2026-03-01"], "2.5"],
      ],
    ),
  )!;
  expect(drawn.days.map(({ day, amount }) => [day, Number(amount)])).toEqual([
    ["2026-02-27", 1],
    ["2026-02-28", 0],
    ["2026-03-01", 2.5],
  ]);
  expect(drawn.parts.map(({ name }) => name)).toEqual(["b", "a"]);
  expect(bars(report(["host"], [[["a"], "1"]]))).toBeNull();
});

test("figures are shown in their unit", () => {
  const units = { cost: "money", held: "GPU hours", occupancy: "ratio", incidents: "incidents" };
  const values = { cost: "1.50", held: "2.0000", occupancy: "0.2500", incidents: "3" };
  expect(Object.entries(values).map(([one, value]) => shownValue(one, units, value))).toEqual([
    "1.50",
    "2.0",
    "25%",
    "3",
  ]);
  expect(shownValue("occupancy", units, null)).toBe("–");
});
