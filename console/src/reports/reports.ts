// What a report asks for, as words of the page's address, and its cells as bars. Pure.
import type { Report, Role } from "../api/types.ts";
import { amount, decimal, percent } from "../parts/format.ts";
import type { Part } from "../parts/StackedBars.tsx";
import type { SearchWords } from "../tables/address.ts";

type Choices = readonly (readonly [word: string, name: string])[];
export type View = "project" | "hosts" | "all";

const MEASURES: Choices = [
  ["cost", "Cost"],
  ["earnings", "Earnings"],
  ["fees", "Platform fees"],
  ["held", "GPU hours held"],
  ["used", "GPU hours used"],
  ["wasted", "GPU hours wasted"],
  ["unmeasured", "GPU hours not measured"],
  ["occupancy", "Occupancy"],
  ["incidents", "Incidents"],
];
const DIMENSIONS: Choices = [
  ["day", "Day"],
  ["project", "Project"],
  ["organisation", "Organisation"],
  ["provider", "Provider"],
  ["host", "Host"],
  ["tier", "Tier"],
  ["model", "GPU model"],
  ["region", "Region"],
  ["kind", "Kind"],
];
export const PERIODS: Choices = [
  ["this-month", "This month"],
  ["last-month", "Last month"],
  ["last-7-days", "Last 7 days"],
  ["last-week", "Last week"],
  ["this-year", "This year"],
];
export const TIMES: Choices = [
  ["0 7 1 * *", "On the first of each month, 07:00"],
  ["0 7 * * 1", "Each Monday, 07:00"],
  ["0 7 * * *", "Each day, 07:00"],
];
const HIDDEN: Readonly<Record<View, readonly string[]>> = {
  project: ["earnings", "fees", "occupancy", "incidents", "provider"],
  hosts: ["cost", "fees", "project", "organisation", "provider"],
  all: [],
};
const NO_RENTERS = ["project", "organisation"];
/** By which a measure of time or of incidents cannot be divided. */
const UNDIVIDED: Readonly<Record<string, readonly string[]>> = {
  occupancy: [...NO_RENTERS, "kind"],
  incidents: NO_RENTERS,
};

/** The views that these roles open, the widest first. */
export function viewsOf(roles: readonly Role[]): View[] {
  const has = (...wanted: Role[]) => wanted.some((role) => roles.includes(role));
  return [
    ...(has("operator", "auditor") ? (["all"] as const) : []),
    ...(has("renter", "viewer", "admin", "operator", "auditor", "org_owner", "org_admin", "org_billing", "org_auditor")
      ? (["project"] as const)
      : []),
    ...(has("provider", "operator", "auditor") ? (["hosts"] as const) : []),
  ];
}

export const measuresOf = (view: View): Choices => MEASURES.filter(([word]) => !HIDDEN[view].includes(word));
export const dimensionsOf = (view: View, measure: string): Choices =>
  DIMENSIONS.filter(([word]) => !HIDDEN[view].includes(word) && !UNDIVIDED[measure]?.includes(word));
export const nameOf = (word: string): string => [...MEASURES, ...DIMENSIONS].find(([one]) => one === word)?.[1] ?? word;

const FILTERS = DIMENSIONS.map(([word]) => word);

/** What is asked, from the address: by one measure, or several where a link names them. */
export interface Wanted {
  view: View;
  measure: string;
  by: readonly string[];
  filters: Readonly<Record<string, string>>;
  /** The rows below the figures are shown. */
  rows: boolean;
  /** As the API takes it. */
  words: Readonly<Record<string, string>>;
}

export function wantedFrom(given: SearchWords, views: readonly View[]): Wanted {
  const view = views.find((one) => one === given.view) ?? views[0] ?? "project";
  const measure = given.measure || measuresOf(view)[0]![0];
  const first = measure.split(",")[0]!;
  const known = dimensionsOf(view, first).map(([word]) => word);
  const filters = Object.fromEntries(FILTERS.flatMap((word) => (given[word] ? [[word, given[word]!]] : [])));
  const by = (given.by ?? (given.rows ? "" : "day"))
    .split(",")
    .filter((word) => known.includes(word))
    .slice(0, 2);
  const dates = given.from || given.to ? { from: given.from ?? "", to: given.to ?? "" } : null;
  const period = dates ?? { period: given.period ?? "this-month" };
  const words = { view, measure, by: by.join(","), ...period, time_zone: given.time_zone ?? "UTC", ...filters };
  return { view, measure: first, by, filters, rows: given.rows === "1", words };
}

export function shownValue(measure: string, units: Readonly<Record<string, string>>, value: string | null): string {
  if (value === null) return "–";
  if (units[measure] === "money") return amount(value);
  if (units[measure] === "ratio") return percent(Number(value));
  return units[measure] === "GPU hours" ? decimal(Number(value), 1) : value;
}

const DAY_MS = 86_400_000;

/** The days of a report that is divided by them, and the parts that each day's bar has; null: it is not. */
export function bars(report: Report): { days: { day: string; amount: string }[]; parts: Part[] } | null {
  const at = report.by.indexOf("day");
  const measure = report.measures[0]!;
  if (at < 0 || report.units[measure] === "ratio") return null;
  const first = Date.parse(report.first_day);
  const count = Math.round((Date.parse(report.last_day) - first) / DAY_MS) + 1;
  const days = Array.from({ length: count }, (_, n) => new Date(first + n * DAY_MS).toISOString().slice(0, 10));
  const place = new Map(days.map((day, n) => [day, n]));
  const sums = days.map(() => 0);
  const parts = new Map<string, number[]>();
  for (const { keys, values } of report.cells) {
    const day = place.get(keys[at]!.id ?? "");
    const value = Number(values[measure] ?? 0);
    if (day === undefined) continue;
    const name = keys[1 - at]?.name || (keys.length === 2 ? "none" : nameOf(measure));
    const row = parts.get(name) ?? days.map(() => 0);
    row[day]! += value;
    sums[day]! += value;
    parts.set(name, row);
  }
  const total = (row: readonly number[]) => row.reduce((sum, value) => sum + value, 0);
  const greatest = [...parts].sort(([, one], [, other]) => total(other) - total(one));
  return {
    days: days.map((day, n) => ({ day, amount: sums[n]!.toFixed(4) })),
    parts: greatest.map(([name, row]) => ({ name, days: row.map((value) => value.toFixed(4)) })),
  };
}
