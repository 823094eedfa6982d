// Tables as values: columns, search, facets, order, and the search as words of an address. Pure.
import type { ReactNode } from "react";
import { compareTexts, words } from "../parts/format.ts";
import { joined, type SearchWords, split } from "./address.ts";
import type { Cell } from "./csv.ts";

export interface Column<Row> {
  /** In the address, in a saved choice of columns, and in CSV where `csv` does not say otherwise. */
  id: string;
  name: string;
  /** The raw value: rows are sorted, searched and saved as CSV by it. Columns of links and buttons have none. */
  value?: (row: Row) => Cell;
  /** Without it: the value as text. */
  cell?: (row: Row) => ReactNode;
  /** Figures: to the right, the largest first. */
  number?: boolean;
  width?: string | number;
  /** Its values can be chosen from a menu; a function says which value a row counts for. */
  facet?: true | ((row: Row) => string);
  /** A value of the facet as people read it. */
  facetName?: (value: string) => string;
  /** Not shown until it is chosen. */
  optional?: boolean;
  /** The column's name in CSV. */
  csv?: string;
  /** The name is for screen readers only. */
  unseen?: boolean;
}

export interface Order {
  column: string;
  descending: boolean;
}

export interface Search {
  text: string;
  facets: Readonly<Record<string, readonly string[]>>;
  /** Null: as the rows came. */
  order: Order | null;
}

export const EVERYTHING: Search = { text: "", facets: {}, order: null };

const facetsOf = <Row>(columns: readonly Column<Row>[]) => columns.filter((column) => column.facet);

export function searchFrom<Row>(given: SearchWords, columns: readonly Column<Row>[]): Search {
  const facets = facetsOf(columns).flatMap(({ id }) => (given[id] ? [[id, split(given[id])] as const] : []));
  const sort = given.sort;
  return {
    text: given.q ?? "",
    facets: Object.fromEntries(facets),
    order: sort ? { column: sort.replace(/^-/, ""), descending: sort.startsWith("-") } : null,
  };
}

/** The address with this search in place of the one before; what else stands in it stays. */
export function withSearch<Row>(given: SearchWords, search: Search, columns: readonly Column<Row>[]): SearchWords {
  const own = new Set(["q", "sort", ...facetsOf(columns).map((column) => column.id)]);
  const rest = Object.entries(given).filter(([name]) => !own.has(name));
  const facets = Object.entries(search.facets).filter(([, values]) => values.length > 0);
  return {
    ...Object.fromEntries(rest),
    ...(search.text ? { q: search.text } : {}),
    ...Object.fromEntries(facets.map(([name, values]) => [name, joined(values)])),
    ...(search.order ? { sort: `${search.order.descending ? "-" : ""}${search.order.column}` } : {}),
  };
}

export function facetValue<Row>(column: Column<Row>, row: Row): string {
  if (typeof column.facet === "function") return column.facet(row);
  const value = column.value?.(row);
  return value === null || value === undefined || value === "" ? "none" : String(value);
}

export const facetName = <Row>(column: Column<Row>, value: string): string =>
  value === "none" ? "None" : (column.facetName ?? words)(value);

export function toggled(search: Search, facet: string, value: string): Search {
  const now = search.facets[facet] ?? [];
  const next = now.includes(value) ? now.filter((other) => other !== value) : [...now, value];
  return { ...search, facets: { ...search.facets, [facet]: next } };
}

/** Counts the rows of each value of a facet, most first. */
export function tally<Row>(rows: readonly Row[], column: Column<Row>): [string, number][] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = facetValue(column, row);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || compareTexts(a[0], b[0]));
}

/** There is something to choose from. */
export function isVaried<Row>(rows: readonly Row[], column: Column<Row>): boolean {
  const [first] = rows;
  if (first === undefined) return false;
  const value = facetValue(column, first);
  return rows.some((row) => facetValue(column, row) !== value);
}

type Test<Row> = (row: Row) => boolean;

/** Every word must be in some column, as the API writes its value or as people read it. */
export function matchesWords<Row>(text: string, columns: readonly Column<Row>[]): Test<Row> {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return () => true;
  return (row) => {
    const all = columns.flatMap((column) => {
      const value = column.value?.(row);
      if (value === null || value === undefined) return [];
      return typeof value === "string" && column.facet ? [value, facetName(column, value)] : [String(value)];
    });
    const heap = all.join(" ").toLowerCase();
    return wanted.every((word) => heap.includes(word));
  };
}

/** One test for the whole search; `match` is how a table of its own reads the text. */
export function matcher<Row>(
  search: Search,
  columns: readonly Column<Row>[],
  match: (text: string) => Test<Row> = (text) => matchesWords(text, columns),
): Test<Row> {
  const tests = facetsOf(columns).flatMap((column) => {
    const wanted = search.facets[column.id] ?? [];
    return wanted.length ? [(row: Row) => wanted.includes(facetValue(column, row))] : [];
  });
  if (search.text.trim()) tests.push(match(search.text));
  return (row) => tests.every((test) => test(row));
}

/** Absent is not small: it comes after everything, either way round. */
export function ordered<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order: Order | null) {
  const column = columns.find((one) => one.id === order?.column);
  const value = column?.value;
  if (!order || !value) return rows;
  const sign = order.descending ? -1 : 1;
  const isAbsent = (cell: Cell) => cell === null || cell === undefined || cell === "";
  return rows
    .map((row) => [value(row), row] as const)
    .sort(([a], [b]) => {
      if (isAbsent(a) || isAbsent(b)) return Number(isAbsent(a)) - Number(isAbsent(b));
      const difference = column.number ? Number(a) - Number(b) : Number.NaN;
      return sign * (Number.isNaN(difference) ? compareTexts(String(a), String(b)) : difference);
    })
    .map(([, row]) => row);
}

/** After a press on a column's head: figures largest first, texts from A; then the other way; then as they came. */
export function pressed<Row>(order: Order | null, column: Column<Row>): Order | null {
  const first = column.number ?? false;
  if (order?.column !== column.id) return { column: column.id, descending: first };
  return order.descending === first ? { column: column.id, descending: !first } : null;
}
