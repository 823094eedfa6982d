// A GPU's conditions over time, from the events of its conditions. Pure.

import type { Condition, EventRow } from "../api/types.ts";
import { DASH } from "../parts/format.ts";
import type { Mark } from "../parts/series.ts";

export interface Spell {
  code: string;
  title: string;
  says: string;
  /** Null: before the oldest event that was read. */
  from: string | null;
  /** Null: it still holds. */
  to: string | null;
}

/** Spells of each condition, the latest first. `events`: newest first; `now`: the conditions that hold. */
export function spells(
  events: readonly EventRow[],
  now: readonly Pick<Condition, "code" | "title" | "detail" | "since">[],
): Spell[] {
  const open = new Map<string, Spell>();
  const ended: Spell[] = [];
  for (const event of [...events].reverse()) {
    const code = event.fields.code;
    if (typeof code !== "string") continue;
    const title = event.title.replace(/^Solved: /, "");
    if (event.kind === "condition.raised") open.set(code, { code, title, says: event.text, from: event.at, to: null });
    if (event.kind === "condition.cleared") {
      const begun = open.get(code);
      open.delete(code);
      ended.push({ code, title, says: begun?.says ?? event.text, from: begun?.from ?? null, to: event.at });
    }
  }
  // The list of conditions decides: an event may have been too old to be read, or not yet come.
  const standing = now.map(
    (one): Spell => ({
      code: one.code,
      title: one.title,
      says: one.detail,
      from: one.since,
      to: null,
    }),
  );
  const unsure = [...open.values()].filter((one) => !now.some((other) => other.code === one.code));
  const moment = (one: Spell): number => Date.parse(one.to ?? one.from ?? "") || 0;
  return [
    ...standing,
    ...[...ended, ...unsure.map((one) => ({ ...one, to: one.from }))].sort((a, b) => moment(b) - moment(a)),
  ];
}

/** The code of a condition without what it is about: `gpu.hot:GPU-1` is `gpu.hot`. */
export const codeOf = (code: string): string => code.split(":")[0] ?? code;

const BLAME: Record<string, string> = { tenant: "the renter's work", host: "the host" };

/** The party that an XID is blamed on, as its event says. */
export function blamed(event: EventRow): string {
  const said = event.fields.blame;
  return typeof said === "string" ? (BLAME[said] ?? said) : DASH;
}

export interface Lane {
  code: string;
  title: string;
  /** In hundredths of the span. */
  bars: readonly { from: string; to: string | null; left: number; width: number }[];
}

/** A bar that is shorter could not be seen. */
const LEAST_WIDTH = 0.6;

/** The spells of each condition within a span that ends now. */
export function lanesOf(all: readonly Spell[], nowMs: number, spanMs: number): Lane[] {
  const lanes = new Map<string, Lane>();
  const place = (ms: number) => (100 * (Math.max(ms, nowMs - spanMs) - (nowMs - spanMs))) / spanMs;
  for (const one of all) {
    const to = one.to === null ? nowMs : Date.parse(one.to);
    const from = one.from === null ? nowMs - spanMs : Date.parse(one.from);
    if (to < nowMs - spanMs) continue;
    const left = Math.min(place(from), 100 - LEAST_WIDTH);
    const bar = {
      from: new Date(from).toISOString(),
      to: one.to,
      left,
      width: Math.max(LEAST_WIDTH, place(to) - left),
    };
    const code = codeOf(one.code);
    lanes.set(code, { code, title: one.title, bars: [...(lanes.get(code)?.bars ?? []), bar] });
  }
  return [...lanes.values()];
}

/** What charts mark: faults, and what people decided. */
export function marksOf(events: readonly EventRow[]): Mark[] {
  return events
    .filter((event) => event.severity === "error" || event.severity === "warning" || DECIDED.test(event.kind))
    .map((event) => ({
      atMs: Date.parse(event.at),
      label: event.text,
      tone: event.severity === "error" ? "bad" : event.severity === "warning" ? "warn" : "off",
    }));
}

const DECIDED = /^(host\.(draining|active|maintenance|quarantined)|workload\.|rental\.)/;
