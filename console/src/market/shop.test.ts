import { expect, test } from "vitest";
import type { MachineType } from "../api/types.ts";
import { GIB } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";
import {
  binsOf,
  changeText,
  commandOf,
  filterFrom,
  foldedOf,
  gpusOf,
  hoursOf,
  isNarrowed,
  memoriesOf,
  modelOf,
  queryOf,
  rentOf,
  speedForMoney,
  timesOf,
  timesText,
  totalOf,
} from "./shop.ts";

const ROW = {
  tier: "h100/A",
  unit: "gpu",
  simulated: false,
  region: "north",
  price_per_hour: "2.50",
  prices: [
    { price_per_hour: "2.50", free: 3, total: 4 },
    { price_per_hour: "3.50", free: 0, total: 4 },
  ],
  memory_bytes: 80 * GIB,
  memory_bytes_per_s: 2.5e12,
  host_id: "host_1",
} as unknown as MachineType;
const asked = (filter: object) => JSON.parse(JSON.stringify(queryOf(filter)));

test("the address is read as the Master is asked, in its units", () => {
  const filter = filterFrom({ gpu: "h100", memory: "24", gpus: "2", reliability: "99.5", up: "500", sort: "price" });
  expect(asked(filter)).toEqual({
    model: "h100",
    min_memory_bytes: Math.round(24 * 0.97 * GIB),
    min_gpus: 2,
    min_reliability: 0.995,
    min_up_bps: 5e8,
  });
  expect(asked({ from: "0.5", to: "2.00", verified: "yes", free: "yes", source: "real", driver: "550" })).toEqual({
    ...{ min_price: "0.5", max_price: "2.00", driver: "550", simulated: false, verified: true, free: true },
  });
});

test("what is not understood in an address is not asked", () => {
  expect(asked({ memory: "lots", gpus: "-3", to: "cheap", driver: "new; rm", up: "x" })).toEqual({});
  expect([gpusOf({ gpus: "many" }), hoursOf({ hours: "0" }), hoursOf({ hours: "1.5" })]).toEqual([1, 8, 1.5]);
});

test("the command line asks the same", () => {
  expect(commandOf({}, quoted)).toBe("windrow gpus");
  expect(commandOf({ gpu: "a b", gpus: "8", hours: "8", to: "2", up: "5", free: "yes" }, quoted)).toBe(
    "windrow gpus --model 'a b' --gpus 8 --max-price 2 --hours 8h --up 5 --free",
  );
});

test("a total is for so many GPUs and hours, and a value what was measured for the money", () => {
  expect(totalOf(ROW, 2, 8)).toBe(40);
  expect(speedForMoney(ROW)).toBe(1e12);
  expect(speedForMoney({ ...ROW, memory_bytes_per_s: null })).toBeNull();
  expect(speedForMoney({ ...ROW, price_per_hour: "0" })).toBeNull();
});

test("each GPU is in one bin of the histogram, and prices that are all the same have none", () => {
  const bins = binsOf([ROW]);
  expect([bins[0]?.from, bins.at(-1)?.to]).toEqual([2.5, 3.5]);
  expect(bins.reduce((sum, bin) => sum + bin.total, 0)).toBe(8);
  expect([bins[0]?.free, bins.at(-1)?.total]).toEqual([3, 4]);
  expect(binsOf([{ ...ROW, prices: ROW.prices.slice(1) }])).toEqual([]);
  expect(binsOf([])).toEqual([]);
});

test("memory is asked for as it is sold", () => {
  expect(memoriesOf([{ ...ROW, memory_bytes: 79.6 * GIB }]).at(-1)).toBe(80);
  expect(memoriesOf([])).toEqual([]);
});

test("a model is named by its tier", () => {
  expect(modelOf({ tier: "h100-pcie/A", unit: "gpu" })).toBe("H100 PCIe");
  expect(modelOf({ tier: "h100:1g.10gb/C", unit: "gpu" })).toBe("H100 1g.10gb");
  expect(modelOf({ tier: "cpu/C", unit: "processor" })).toBe("CPUs");
});

test("the form gets tier, size and hours, and a host where others of the tier would not fit", () => {
  expect(rentOf(ROW, { gpus: "2", to: "3" }, false)).toEqual({
    ...{ tier: "h100/A", hardware: "gpu", gpus: "2", hours: "8", max_price: "6" },
  });
  expect(rentOf(ROW, {}, true).host).toBe("host_1");
  expect(isNarrowed(ROW, {}, [ROW])).toBe(false);
  expect(isNarrowed(ROW, { region: "north" }, [ROW])).toBe(true);
  expect(isNarrowed(ROW, {}, [ROW, { ...ROW, region: "south" }])).toBe(true);
});

test("a change of a price is said in words, and a slip of the point is seen", () => {
  expect([timesOf("2", "2"), timesOf("2.5", "250"), timesOf("2", "1"), timesOf("0", "1")]).toEqual([
    ...[1, 100, 2, Number.POSITIVE_INFINITY],
  ]);
  expect(timesText("2.5", "250")).toBe("This is 100 times the price now");
  expect(timesText("2.5", "0.25")).toBe("The price now is 10 times this");
  expect(timesText("2.5", "0")).toBe("This gives it away for nothing");
  expect(["2.2", "1", "2.0", "200"].map((price) => changeText("2", price))).toEqual(["+10%", "−50%", "none", "× 100"]);
});

test("simulated rows fold where there is something real, else only their processors, and none once one filters", () => {
  const of = (tier: string, simulated: boolean) =>
    ({ ...ROW, tier, unit: tier === "cpu/A" ? "processor" : "gpu", simulated }) as MachineType;
  const [real, card, cpu] = [of("cpu/A", false), of("h100/A", true), of("cpu/A", true)];
  expect(foldedOf([real, card, cpu], {})).toEqual([card, cpu]);
  expect(foldedOf([card, cpu], { hours: "4" })).toEqual([cpu]);
  expect(foldedOf([cpu], {})).toEqual([]);
  expect(foldedOf([real, card, cpu], { gpu: "h100" })).toEqual([]);
});
