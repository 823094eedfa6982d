// How a decision about a host is taken back. Pure.
import type { Host } from "../api/types.ts";
import type { Verb } from "./remedies.ts";

const AFTER: Partial<Record<Verb, string>> = { drain: "draining", maintenance: "maintenance", activate: "active" };
const WAYS: Readonly<Record<string, Verb>> = { active: "activate", draining: "drain", maintenance: "maintenance" };

/** True for decisions that can be taken back. */
export const undoes = (verb: Verb): boolean => verb in AFTER;

export type Before = Pick<Host, "admin_state" | "headline" | "headline_reason">;

/** The decision that brings the state of before back, and its reason; null: none changed it, or none brings it back. */
export function wayBack(verb: Verb, before: Before): { verb: Verb; reason: string } | null {
  const [after, way] = [AFTER[verb], WAYS[before.admin_state]];
  if (after === undefined || way === undefined || before.admin_state === after) return null;
  const kept = before.headline === before.admin_state ? before.headline_reason : null;
  return { verb: way, reason: kept || `${verb} undone` };
}

/** Why it is not taken back now; null: it can be. Somebody may have decided otherwise since. */
export const notNow = (verb: Verb, now: Before): string | null =>
  now.admin_state === AFTER[verb] ? null : `It is ${now.admin_state} now: somebody has changed it since.`;
