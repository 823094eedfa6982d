import { expect, test } from "vitest";
import { parseSearch, stringifySearch } from "./address.ts";
import {
  type Column,
  EVERYTHING,
  isVaried,
  matcher,
  ordered,
  pressed,
  type Search,
  searchFrom,
  tally,
  toggled,
  withSearch,
} from "./table.ts";

interface Row {
  name: string;
  region: string | null;
  state: string;
  price: string | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "region", name: "Region", value: (row) => row.region, facet: true },
  { id: "state", name: "State", value: (row) => row.state, facet: true },
  { id: "price", name: "Price", value: (row) => row.price, number: true },
  { id: "do", name: "Do" },
];
const row = (change: Partial<Row> = {}): Row => ({
  name: "one",
  region: "north",
  state: "waiting_files",
  price: "1.90",
  ...change,
});
const again = (search: Search) => searchFrom(parseSearch(stringifySearch(withSearch({}, search, COLUMNS))), COLUMNS);

test("a search survives the address", () => {
  const search: Search = {
    text: "h100 temp>80 & <b>",
    facets: { region: ["north, upper", "south~1"], state: ["failed"] },
    order: { column: "price", descending: true },
  };
  expect(again(search)).toEqual(search);
  expect(again(EVERYTHING)).toEqual(EVERYTHING);
});

test("the address reads as plain words, and what is not the table's stays in it", () => {
  const search: Search = {
    ...EVERYTHING,
    facets: { region: ["a/b", "c"] },
    order: { column: "price", descending: true },
  };
  const words = withSearch({ subject: "host_1", q: "old", state: "failed" }, search, COLUMNS);
  expect(stringifySearch(words)).toBe("?subject=host_1&region=a/b,c&sort=-price");
});

test("all words must match, in any column, as the API writes a value or as people read it", () => {
  const keeps = (text: string) => matcher({ ...EVERYTHING, text }, COLUMNS)(row());
  expect(keeps("NORTH one")).toBe(true);
  expect(keeps("waiting files")).toBe(true);
  expect(keeps("waiting_files")).toBe(true);
  expect(keeps("north two")).toBe(false);
});

test("facets: any value within one, all facets together; absent is a value to choose", () => {
  const search = toggled(toggled(toggled(EVERYTHING, "region", "north"), "region", "none"), "state", "waiting_files");
  const keeps = matcher(search, COLUMNS);
  expect([keeps(row()), keeps(row({ region: null })), keeps(row({ state: "failed" }))]).toEqual([true, true, false]);
  expect(toggled(search, "region", "north").facets.region).toEqual(["none"]);
});

test("tallies count every value, most first", () => {
  const rows = [row(), row({ region: "south" }), row({ region: "south" }), row({ region: null })];
  expect([isVaried(rows, COLUMNS[1]!), isVaried(rows, COLUMNS[2]!)]).toEqual([true, false]);
  expect(tally(rows, COLUMNS[1]!)).toEqual([
    ["south", 2],
    ["none", 1],
    ["north", 1],
  ]);
});

test("figures are ordered as figures, names with their numbers, and absent comes last either way", () => {
  const prices = (descending: boolean) =>
    ordered([row({ price: null }), row({ price: "10.0" }), row({ price: "9" })], COLUMNS, {
      column: "price",
      descending,
    }).map((one) => one.price);
  expect(prices(false)).toEqual(["9", "10.0", null]);
  expect(prices(true)).toEqual(["10.0", "9", null]);
  const names = ordered([row({ name: "gpu-10" }), row({ name: "gpu-9" })], COLUMNS, {
    column: "name",
    descending: false,
  });
  expect(names.map((one) => one.name)).toEqual(["gpu-9", "gpu-10"]);
});

test("a press on a head orders, turns round, and leaves the rows as they came", () => {
  const price = COLUMNS[3]!;
  const first = pressed(null, price);
  const second = pressed(first, price);
  expect([first, second, pressed(second, price)]).toEqual([
    { column: "price", descending: true },
    { column: "price", descending: false },
    null,
  ]);
});
