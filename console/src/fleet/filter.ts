// What the fleet table shows and in which order, as a value that lives in the URL. Pure.
import { compareTexts, GIB } from "../format.ts";
import type { FleetRow } from "./rows.ts";

export const FACETS = ["kind", "link", "slot", "region", "tier", "simulated"] as const;
export type Facet = (typeof FACETS)[number];

export interface FleetFilter {
  text: string;
  facets: Readonly<Record<Facet, readonly string[]>>;
  sort: { column: string; descending: boolean } | null;
}

export const EVERYTHING: FleetFilter = {
  text: "",
  facets: { kind: [], link: [], slot: [], region: [], tier: [], simulated: [] },
  sort: null,
};

export type SearchWords = Record<string, string>;

export function filterFromSearch(search: SearchWords): FleetFilter {
  const facets = Object.fromEntries(FACETS.map((facet) => [facet, split(search[facet])])) as Record<
    Facet,
    readonly string[]
  >;
  const sort = search.sort;
  return {
    text: search.q ?? "",
    facets,
    sort: sort ? { column: sort.replace(/^-/, ""), descending: sort.startsWith("-") } : null,
  };
}

export function searchFromFilter(filter: FleetFilter): SearchWords {
  const search: SearchWords = {};
  if (filter.text) search.q = filter.text;
  for (const facet of FACETS)
    if (filter.facets[facet].length) search[facet] = filter.facets[facet].map(escaped).join(",");
  if (filter.sort) search.sort = `${filter.sort.descending ? "-" : ""}${filter.sort.column}`;
  return search;
}

// A value may itself hold a comma (region names are free text), so commas inside are escaped once more.
const escaped = (value: string): string => value.replace(/~/g, "~0").replace(/,/g, "~1");
const unescaped = (value: string): string => value.replace(/~1/g, ",").replace(/~0/g, "~");
const split = (value: string | undefined): readonly string[] => (value ? value.split(",").map(unescaped) : []);

/** Plain words in the address instead of the router's JSON: people read, edit and send these. */
export function parseSearch(text: string): SearchWords {
  return Object.fromEntries(new URLSearchParams(text.startsWith("?") ? text.slice(1) : text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(search))
    if (value !== undefined && value !== null && value !== "") words.set(key, String(value));
  const text = words.toString().replace(/%2C/g, ",").replace(/%2F/g, "/").replace(/%3A/g, ":");
  return text ? `?${text}` : "";
}

export function facetValue(row: FleetRow, facet: Facet): string {
  switch (facet) {
    case "kind":
      return row.kind;
    case "link":
      return row.link;
    case "slot":
      return row.slot ?? "none";
    case "region":
      return row.region ?? "none";
    case "tier":
      return row.tier ?? "none";
    case "simulated":
      return row.simulated ? "simulated" : "real";
  }
}

const NUMBERS: Record<string, (row: FleetRow) => number | null> = {
  util: (row) => (row.use === null ? null : row.use * 100),
  temp: (row) => row.temperature,
  power: (row) => row.power,
  mem: (row) => (row.memoryBytes === null ? null : row.memoryBytes / GIB),
  used: (row) => (row.memoryUsedBytes === null ? null : row.memoryUsedBytes / GIB),
  price: (row) => (row.price === null ? null : Number(row.price)),
};

type Test = (row: FleetRow) => boolean;

/** One test for the whole filter. Words must all match; `temp>80`, `util<5`, `mem>=40` (GiB), `price<2` compare. */
export function matcher(filter: FleetFilter): Test {
  const tests: Test[] = filter.text.toLowerCase().split(/\s+/).filter(Boolean).map(wordTest);
  for (const facet of FACETS) {
    const wanted = filter.facets[facet];
    if (wanted.length) tests.push((row) => wanted.includes(facetValue(row, facet)));
  }
  return (row) => tests.every((test) => test(row));
}

function wordTest(word: string): Test {
  const comparison = /^([a-z]+)(<=|>=|<|>|=)(\d+(?:\.\d+)?)$/.exec(word);
  const read = comparison?.[1] ? NUMBERS[comparison[1]] : undefined;
  if (!comparison || !read) return (row) => haystack(row).includes(word);
  const bound = Number(comparison[3]);
  const operator = comparison[2];
  return (row) => {
    const value = read(row); // absent is neither small nor large: it never matches a comparison
    if (value === null) return false;
    if (operator === "<") return value < bound;
    if (operator === ">") return value > bound;
    if (operator === "<=") return value <= bound;
    return operator === ">=" ? value >= bound : value === bound;
  };
}

function haystack(row: FleetRow): string {
  return (
    `${row.host} ${row.model} ${row.region ?? ""} ${row.tier ?? ""} ${row.link} ` +
    `${row.slot ?? ""} ${row.key} ${row.clusterId ?? ""}`
  ).toLowerCase();
}

/** How many rows each value of a facet has, most first; the facets' menus show it. */
export function tally(rows: readonly FleetRow[], facet: Facet): [string, number][] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = facetValue(row, facet);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || compareTexts(a[0], b[0]));
}

export function toggled(filter: FleetFilter, facet: Facet, value: string): FleetFilter {
  const now = filter.facets[facet];
  const next = now.includes(value) ? now.filter((other) => other !== value) : [...now, value];
  return { ...filter, facets: { ...filter.facets, [facet]: next } };
}
