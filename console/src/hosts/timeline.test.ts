import { expect, test } from "vitest";
import type { EventRow } from "../api/types.ts";
import { blamed, codeOf, lanesOf, marksOf, spells } from "./timeline.ts";

const HOT = "gpu.hot:GPU-1";
const at = (minute: number) => `2027-01-15T08:${String(minute).padStart(2, "0")}:00.000Z`;
const event = (minute: number, kind: string, code = HOT): EventRow => ({
  id: `${minute}`,
  number: minute,
  at: at(minute),
  kind,
  title: kind === "condition.cleared" ? "Solved: Too hot" : "Too hot",
  severity: "notice",
  subjects: ["GPU-1"],
  names: {},
  text: `${code} ${minute}`,
  actor: null,
  fields: { code },
});
const now = { code: HOT, title: "Too hot", detail: "It is hot.", since: at(30) };

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
  expect(spells([event(5, "condition.cleared")], [])[0]).toMatchObject({ title: "Too hot", from: null, to: at(5) });
});

test("other events are none of its business", () => {
  expect(spells([{ ...event(5, "gpu.xid"), fields: { xid: "79" } }, event(6, "slot.changed")], [])).toEqual([]);
});

test("a condition is named without its subject, and an XID says whose it is", () => {
  expect(codeOf(HOT)).toBe("gpu.hot");
  expect(blamed({ ...event(1, "gpu.xid"), fields: { blame: "host" } })).toBe("the host");
  expect(blamed({ ...event(1, "gpu.xid"), fields: {} })).toBe("–");
});

test("a spell is a bar within the span, and one that goes on ends now", () => {
  const nowMs = Date.parse(at(50));
  const [lane] = lanesOf(
    [
      { code: HOT, title: "Too hot", says: "", from: at(40), to: null },
      { code: HOT, title: "Too hot", says: "", from: null, to: at(20) },
    ],
    nowMs,
    50 * 60_000,
  );
  expect([lane?.code, lane?.title]).toEqual(["gpu.hot", "Too hot"]);
  expect(lane?.bars.map((bar) => [bar.left, bar.width, bar.to])).toEqual([
    [80, 20, null],
    [0, 40, at(20)],
  ]);
});

test("charts mark what is wrong, and what people decided", () => {
  const rows = [
    { ...event(1, "host.draining"), severity: "notice" as const },
    { ...event(2, "gpu.xid"), severity: "error" as const },
    event(3, "bandwidth.measured"),
  ];
  expect(marksOf(rows).map((mark) => mark.tone)).toEqual(["off", "bad"]);
});
