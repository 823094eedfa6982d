import { expect, it } from "vitest";
import { EventReader, type StreamEvent } from "./events.ts";

const TEXT =
  ': open\n\nid: 7\nevent: live\ndata: {"a":1}\n\ndata: one\ndata: two\n\nevent: lonely\n\n' +
  "data:none\r\n\r\nevent: resync\ndata: {}\n\ndata: unfinished\n";
const EVENTS: StreamEvent[] = [
  { name: "live", data: '{"a":1}' },
  { name: "message", data: "one\ntwo" },
  { name: "message", data: "none" },
  { name: "resync", data: "{}" },
];

it("reads events with and without names, over several lines, and passes over comments and what has no data", () => {
  expect(new EventReader().read(TEXT)).toEqual(EVENTS);
});

it.each([1, 2, 3, 5, 17])("reads the same in pieces of %i characters", (size) => {
  const reader = new EventReader();
  const found: StreamEvent[] = [];
  for (let at = 0; at < TEXT.length; at += size) found.push(...reader.read(TEXT.slice(at, at + size)));
  expect(found).toEqual(EVENTS);
});

it("keeps what is not finished for the next text", () => {
  const reader = new EventReader();
  expect(reader.read('event: a\ndata: {"x":')).toEqual([]);
  expect(reader.read("1}\n")).toEqual([]);
  expect(reader.read("\n")).toEqual([{ name: "a", data: '{"x":1}' }]);
});
