import { expect, test } from "vitest";
import { PARTS_MOST, parted } from "./StackedBars.tsx";

const row = (name: string, ...days: string[]) => ({ name, days });

test("the greatest parts are drawn, and all others are one, so that the sums stay", () => {
  const rows = Array.from({ length: 9 }, (_, n) => row(`row ${n}`, `${9 - n}.00`, "0.50"));
  const parts = parted(rows);
  expect(parts.length).toBe(PARTS_MOST);
  expect(parts.at(-1)).toEqual({ name: "4 others", days: [10, 2] });
  const sum = (day: number) => parts.reduce((all, part) => all + part.days[day]!, 0);
  expect([sum(0), sum(1)]).toEqual([45, 4.5]);
});

test("few parts are drawn as they are", () => {
  expect(parted([row("a", "1.00")])).toEqual([{ name: "a", days: [1] }]);
  expect(parted([])).toEqual([]);
});
