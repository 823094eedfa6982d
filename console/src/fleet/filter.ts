// The fleet's search: words, and comparisons such as `temp>80`. Pure.
import { GIB } from "../parts/format.ts";
import type { FleetRow } from "./rows.ts";

const NUMBERS: Record<string, (row: FleetRow) => number | null> = {
  util: (row) => (row.use === null ? null : row.use * 100),
  temp: (row) => row.temperature,
  power: (row) => row.power,
  mem: (row) => (row.memoryBytes === null ? null : row.memoryBytes / GIB),
  used: (row) => (row.memoryUsedBytes === null ? null : row.memoryUsedBytes / GIB),
  price: (row) => (row.price === null ? null : Number(row.price)),
};

type Test = (row: FleetRow) => boolean;

/** Words must all match; `temp>80`, `util<5`, `mem>=40` (GiB), `price<2` compare. */
export function fleetMatcher(text: string): Test {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map(wordTest);
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
    `${row.stateText ?? ""} ${row.key} ${row.clusterId ?? ""}`
  ).toLowerCase();
}
