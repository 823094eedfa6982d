// An account's request from the fields of a form. Pure.
import type { AccountBody, Role } from "../api/types.ts";
import { readAmount } from "../clusters/request.ts";

export interface PersonDraft {
  name: string;
  roles: string[];
  credit: string;
}

export type PersonFaults = Partial<Record<keyof PersonDraft, string>>;

export function toPerson(draft: PersonDraft): { body: AccountBody; faults: PersonFaults } {
  const faults: PersonFaults = {};
  const body: AccountBody = { name: draft.name.trim(), roles: draft.roles as Role[] };
  if (!body.name) faults.name = "A name";
  if (!body.roles.length) faults.roles = "One role or more";
  readAmount(draft, "credit", faults, (amount) => (body.credit = amount), 0);
  return { body, faults };
}

/** An amount above 0; empty while there is none. */
export function toCredit(text: string): { credit: string; fault: string | undefined } {
  const faults: { credit?: string } = {};
  let credit = "";
  readAmount({ credit: text }, "credit", faults, (amount) => (credit = amount));
  return { credit, fault: faults.credit };
}
