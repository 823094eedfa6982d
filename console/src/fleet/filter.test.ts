import { expect, test } from "vitest";
import {
  EVERYTHING,
  type FleetFilter,
  filterFromSearch,
  matcher,
  parseSearch,
  searchFromFilter,
  stringifySearch,
  tally,
  toggled,
} from "./filter.ts";
import type { FleetRow } from "./rows.ts";

const row = (change: Partial<FleetRow>): FleetRow => ({
  key: "k",
  kind: "gpu",
  hostId: "h",
  host: "north-1",
  region: "north",
  simulated: false,
  model: "H100 80GB",
  tier: "h100/A",
  memoryBytes: 80 * 1024 ** 3,
  link: "online",
  slot: "free",
  why: null,
  price: "1.90",
  clusterId: null,
  use: 0.5,
  memoryUsedBytes: 0,
  temperature: 60,
  power: 300,
  at: null,
  ...change,
});
const written = (filter: FleetFilter) => filterFromSearch(parseSearch(stringifySearch(searchFromFilter(filter))));

test("a filter survives the address", () => {
  const filter: FleetFilter = {
    text: "h100 temp>80 & <b>",
    facets: { ...EVERYTHING.facets, region: ["north, upper", "south~1"], tier: ["h100/A"], simulated: ["real"] },
    sort: { column: "use", descending: true },
  };
  expect(written(filter)).toEqual(filter);
  expect(written(EVERYTHING)).toEqual(EVERYTHING);
  expect(stringifySearch(searchFromFilter(EVERYTHING))).toBe("");
});

test("the address reads as plain words", () => {
  expect(
    stringifySearch(
      searchFromFilter({
        ...EVERYTHING,
        facets: { ...EVERYTHING.facets, tier: ["h100/A", "a100/B"] },
        sort: { column: "temperature", descending: true },
      }),
    ),
  ).toBe("?tier=h100/A,a100/B&sort=-temperature");
});

test("all words must match, wherever they stand", () => {
  expect(matcher({ ...EVERYTHING, text: "NORTH h100" })(row({}))).toBe(true);
  expect(matcher({ ...EVERYTHING, text: "north a100" })(row({}))).toBe(false);
});

test("comparisons read units a person thinks in, and never match what is absent", () => {
  const keeps = (text: string, change: Partial<FleetRow> = {}) => matcher({ ...EVERYTHING, text })(row(change));
  expect(keeps("util>=50 mem>=80 price<2")).toBe(true);
  expect(keeps("temp>60")).toBe(false);
  expect(keeps("temp<1000", { temperature: null })).toBe(false);
  expect(keeps("temp>=0", { temperature: null })).toBe(false);
});

test("facets: any value within one, all facets together", () => {
  const filter = toggled(toggled(toggled(EVERYTHING, "region", "north"), "region", "south"), "simulated", "real");
  expect(matcher(filter)(row({}))).toBe(true);
  expect(matcher(filter)(row({ simulated: true }))).toBe(false);
  expect(matcher(filter)(row({ region: null }))).toBe(false);
  expect(toggled(filter, "region", "north").facets.region).toEqual(["south"]);
});

test("tallies count every value, most first", () => {
  expect(tally([row({}), row({ region: "south" }), row({ region: "south" }), row({ region: null })], "region")).toEqual(
    [
      ["south", 2],
      ["none", 1],
      ["north", 1],
    ],
  );
});
