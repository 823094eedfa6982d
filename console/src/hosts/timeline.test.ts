import { expect, test } from "vitest";
import type { EventRow } from "../api/types.ts";
import { blamed, codeOf, spells } from "./timeline.ts";

const HOT = "gpu.hot:GPU-1";
const at = (minute: number) => `2027-01-15T08:${String(minute).padStart(2, "0")}:00.000Z`;
const event = (minute: number, kind: string, code = HOT): EventRow => ({
  id: `${minute}`,
  number: minute,
  at: at(minute),
  kind,
  severity: "notice",
  subjects: ["GPU-1"],
  names: {},
  text: `${code} ${minute}`,
  actor: null,
  fields: { code },
});
const now = { code: HOT, detail: "It is hot.", since: at(30) };

test("what was raised and cleared is a spell, the latest first", () => {
  const rows = [
    event(9, "condition.cleared"),
    event(7, "condition.raised"),
    event(5, "condition.cleared"),
    event(1, "condition.raised"),
  ];
  expect(spells(rows, []).map((one) => [one.from, one.to])).toEqual([
    [at(7), at(9)],
    [at(1), at(5)],
  ]);
});

test("what holds now comes from the conditions, once, whether or not its event was read", () => {
  expect(spells([], [now]).map((one) => [one.from, one.to])).toEqual([[at(30), null]]);
  expect(spells([event(30, "condition.raised")], [now])).toHaveLength(1);
});

test("what began before the oldest event has no beginning", () => {
  expect(spells([event(5, "condition.cleared")], [])[0]).toMatchObject({ from: null, to: at(5) });
});

test("other events are none of its business", () => {
  expect(spells([{ ...event(5, "gpu.xid"), fields: { xid: "79" } }, event(6, "slot.changed")], [])).toEqual([]);
});

test("a condition is named without its subject, and an XID says whose it is", () => {
  expect(codeOf(HOT)).toBe("gpu.hot");
  expect(blamed({ ...event(1, "gpu.xid"), fields: { blame: "host" } })).toBe("the host");
  expect(blamed({ ...event(1, "gpu.xid"), fields: {} })).toBe("–");
});
