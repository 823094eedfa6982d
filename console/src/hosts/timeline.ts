// A GPU's conditions over time, from the events of its conditions. Pure.

import type { Condition, EventRow } from "../api/types.ts";
import { DASH } from "../parts/format.ts";

export interface Spell {
  code: string;
  says: string;
  /** Null: before the oldest event that was read. */
  from: string | null;
  /** Null: it still holds. */
  to: string | null;
}

/** Spells of each condition, the latest first. `events`: newest first; `now`: the conditions that hold. */
export function spells(
  events: readonly EventRow[],
  now: readonly Pick<Condition, "code" | "detail" | "since">[],
): Spell[] {
  const open = new Map<string, Spell>();
  const ended: Spell[] = [];
  for (const event of [...events].reverse()) {
    const code = event.fields.code;
    if (typeof code !== "string") continue;
    if (event.kind === "condition.raised") open.set(code, { code, says: event.text, from: event.at, to: null });
    if (event.kind === "condition.cleared") {
      const begun = open.get(code);
      open.delete(code);
      ended.push({ code, says: begun?.says ?? event.text, from: begun?.from ?? null, to: event.at });
    }
  }
  // The list of conditions decides: an event may have been too old to be read, or not yet come.
  const standing = now.map((one): Spell => ({ code: one.code, says: one.detail, from: one.since, to: null }));
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
