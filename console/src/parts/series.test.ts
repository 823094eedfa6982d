import { expect, test } from "vitest";
import { align, append, bridged, type Point, rates, roundLines, summarise, withFrame } from "./series.ts";

test("a counter becomes a rate; a reboot and a missing reading are gaps, not spikes", () => {
  const points: Point[] = [
    [0, 100],
    [1000, 300],
    [2000, 50],
    [3000, null],
    [4000, 90],
    [6000, 190],
  ];
  expect(rates(points)).toEqual([
    [1000, 200],
    [2000, null],
    [3000, null],
    [4000, null],
    [6000, 50],
  ]);
});

test("live readings go on where history ends and push the oldest out", () => {
  const points: Point[] = [
    [0, 1],
    [1000, 2],
  ];
  expect(append(points, [2000, 3], 1500)).toEqual([
    [1000, 2],
    [2000, 3],
  ]);
  expect(append(points, [1000, 9], 1500)).toBe(points);
});

test("lines with different times share one axis", () => {
  expect(
    align([
      {
        key: "a",
        label: "a",
        points: [
          [1000, 1],
          [3000, null],
        ],
      },
      { key: "b", label: "b", points: [[2000, 5]] },
    ]),
  ).toEqual([
    [1, 2, 3],
    [1, undefined, null],
    [undefined, 5, undefined],
  ]);
});

test("a frame touches only what is charted", () => {
  const held = withFrame(
    new Map(),
    { at: "1970-01-01T00:00:01Z", host: { cpu: 0.5, load: 3 }, gpus: { u: { temp: 40 } } },
    new Set(["cpu", "temp"]),
    1000,
  );
  expect([...held]).toEqual([
    ["cpu", [[1000, 0.5]]],
    ["temp u", [[1000, 40]]],
  ]);
});

test("steps without a reading are no gap, silence is one", () => {
  expect(
    bridged(
      [
        [0, null],
        [5_000, 1],
        [10_000, null],
        [15_000, 2],
        [20_000, null],
      ],
      5_000,
    ),
  ).toEqual([
    [0, null],
    [5_000, 1],
    [15_000, 2],
  ]);
  expect(
    bridged(
      [
        [0, 1],
        [30_000, null],
        [60_000, 2],
      ],
      5_000,
    ),
  ).toEqual([
    [0, 1],
    [30_000, null],
    [60_000, 2],
  ]);
  expect(
    bridged(
      [
        [0, 1],
        [30_000, null],
        [60_000, null],
      ],
      5_000,
    ).at(-1),
  ).toEqual([60_000, null]);
  expect(
    bridged(
      [
        [0, 1],
        [3_600_000, null],
        [7_200_000, 2],
      ],
      3_600_000,
    ).length,
  ).toBe(2);
});

test("nothing read is not zero", () => {
  expect(summarise([[0, null]])).toEqual({ last: null, least: null, most: null });
});

test("measured rounds are two lines for each region, the oldest first, and one region needs no name", () => {
  const round = (region: string, at: string, down_bps: number) => ({ region, at, down_bps, up_bps: 1, relays: 1 });
  const second = "1970-01-01T00:00:02Z";
  const north = [round("north", second, 9), round("north", "1970-01-01T00:00:01Z", 8)];
  expect(roundLines(north).map((line) => [line.label, line.points])).toEqual([
    [
      "down",
      [
        [1000, 8],
        [2000, 9],
      ],
    ],
    [
      "up",
      [
        [1000, 1],
        [2000, 1],
      ],
    ],
  ]);
  expect(roundLines([round("south", second, 7), ...north]).map((line) => line.label)).toEqual([
    "north down",
    "north up",
    "south down",
    "south up",
  ]);
  expect(roundLines([])).toEqual([]);
});
