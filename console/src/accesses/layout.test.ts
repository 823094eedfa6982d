import { expect, test } from "vitest";
import {
  type Agent,
  around,
  bubbleRadius,
  CORE_PX,
  capacityFor,
  countsOf,
  inOrder,
  lay,
  moves,
  type Seats,
  seat,
} from "./layout.ts";

const NOBODY: Seats = new Map();
const agent = (id: string, access = "access_a", change: Partial<Agent> = {}): Agent => ({
  id,
  name: id,
  access,
  link: "online",
  rttMs: 1,
  simulated: false,
  ...change,
});
const many = (count: number, access = "access_a") =>
  Array.from({ length: count }, (_, index) => agent(`host_${index}`, access));

test("no two agents of an Access share a place, and every place is one there is", () => {
  const agents = many(500);
  const capacity = capacityFor(agents.length);
  const slots = [...seat(NOBODY, agents, capacity).values()].map((one) => one.slot);
  expect(new Set(slots).size).toBe(500);
  expect(Math.max(...slots)).toBeLessThan(capacity);
});

test("the same agents lie the same in every browser, in whatever order they come", () => {
  const agents = many(300);
  const capacity = capacityFor(300);
  const one = seat(NOBODY, agents, capacity);
  const other = seat(NOBODY, [...agents].reverse(), capacity);
  for (const [id, where] of one) expect(other.get(id)).toEqual(where);
});

test("who stays keeps its place while others come, go and change their round trip", () => {
  const stay = many(100);
  const capacity = capacityFor(400);
  const before = seat(
    NOBODY,
    [...stay, ...many(100, "access_b").map((one) => agent(`other_${one.id}`, "access_b"))],
    capacity,
  );
  const after = seat(
    before,
    [
      ...stay.map((one) => ({ ...one, rttMs: 90 })),
      ...Array.from({ length: 100 }, (_, index) => agent(`other_host_${index}`, "access_a")),
    ],
    capacity,
  );
  for (const one of stay) expect(after.get(one.id)).toEqual(before.get(one.id));
  expect(after.get("other_host_7")?.access).toBe("access_a");
});

test("the nearer an agent, the further in it lies", () => {
  const far = (rttMs: number | null) => {
    const point = around(seat(NOBODY, [agent("host_x", "access_a", { rttMs })], 1024).get("host_x")!.slot, 1024, 150);
    return Math.hypot(point.x, point.y);
  };
  expect(far(2)).toBeLessThan(far(40));
  expect(far(null)).toBeLessThan(far(200));
  expect(far(2)).toBeGreaterThan(CORE_PX);
  expect(far(900)).toBeLessThan(150);
});

test("places only ever grow in number, so that nobody is moved when a few leave", () => {
  expect(capacityFor(0)).toBe(32);
  expect(capacityFor(100)).toBe(256);
  expect(capacityFor(3, 256)).toBe(256);
});

test("regions stand by name, an unknown one last, and fill rows", () => {
  const places = [
    { id: "d", region: null },
    { id: "c", region: "south" },
    { id: "b", region: "north" },
    { id: "a", region: "south" },
  ];
  expect(inOrder(places).map((one) => one.id)).toEqual(["b", "a", "c", "d"]);
  const wide = lay(places, 1200);
  expect(new Set(wide.cells.map((cell) => cell.y)).size).toBe(1);
  const narrow = lay(places, 320);
  expect(new Set(narrow.cells.map((cell) => cell.x)).size).toBe(1);
  expect(narrow.height).toBeGreaterThan(wide.height);
  for (const cell of narrow.cells) expect(cell.x + cell.radius).toBeLessThanOrEqual(320);
});

test("states are counted apart at each Access", () => {
  const counts = countsOf([
    agent("a"),
    agent("b", "access_a", { link: "lost" }),
    agent("c", "access_b", { link: "suspect" }),
  ]);
  expect(counts.get("access_a")).toEqual({ online: 1, suspect: 0, lost: 1 });
  expect(counts.get("access_b")).toEqual({ online: 0, suspect: 1, lost: 0 });
});

test("a circle's surface is its share, and something is never nothing", () => {
  expect(bubbleRadius(1000, 4000, 104)).toBeCloseTo(50);
  expect(bubbleRadius(0, 4000, 104)).toBe(0);
  expect(bubbleRadius(1, 1_000_000, 104)).toBe(4);
});

test("a move is from one Access to another: newcomers and those who stay are none", () => {
  const before = new Map([
    ["a", "access_a"],
    ["b", "access_a"],
    ["c", "access_b"],
    ["gone", "access_a"],
  ]);
  const now = [agent("a", "access_b"), agent("b", "access_b"), agent("c", "access_b"), agent("new", "access_b")];
  expect(moves(before, now)).toEqual([{ from: "access_a", to: "access_b", count: 2 }]);
});
