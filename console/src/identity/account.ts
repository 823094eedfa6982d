// What people say about themselves, as requests: a new user, a new password, another name or address. Pure.
import type { InvitationAccepted, Profile, ProfileChange } from "../api/types.ts";

/** As the Master counts it (identity/passwords.py). */
export const PASSWORD_MIN = 12;

export interface NewUserDraft {
  name: string;
  address: string;
  password: string;
}

export type NewUserFaults = Partial<Record<keyof NewUserDraft, string>>;

export const passwordFault = (password: string): string | undefined =>
  [...password].length < PASSWORD_MIN ? `At least ${PASSWORD_MIN} characters` : undefined;

/** fixed: the address that the invitation is for; null: any. */
export function toNewUser(
  secret: string,
  draft: NewUserDraft,
  fixed: string | null,
): { body: InvitationAccepted; faults: NewUserFaults } {
  const body = { secret, name: draft.name.trim(), address: (fixed ?? draft.address).trim(), password: draft.password };
  const faults: NewUserFaults = {};
  if (!body.name) faults.name = "A name";
  if (!body.address.includes("@")) faults.address = "A mail address, such as ada@example.org";
  const fault = passwordFault(body.password);
  if (fault) faults.password = fault;
  return { body, faults };
}

export interface ProfileDraft {
  name: string;
  address: string;
  /** The present password; needed for another address. */
  password: string;
}

/** What changes, and null where nothing does or something is missing. */
export function toProfileChange(draft: ProfileDraft, now: Profile): ProfileChange | null {
  const [name, address] = [draft.name.trim(), draft.address.trim()];
  const body: ProfileChange = {};
  if (name !== now.name) body.name = name;
  if (address !== (now.address ?? "")) body.address = address;
  if (needsPassword(draft, now)) body.password = draft.password;
  const isWhole = name !== "" && (body.address === undefined || address.includes("@")) && body.password !== "";
  return isWhole && Object.keys(body).length > 0 ? body : null;
}

export const needsPassword = (draft: ProfileDraft, now: Profile): boolean =>
  now.has_password && draft.address.trim() !== (now.address ?? "");

/** A secret of an authenticator app in groups of four, to type it by hand. */
export const inFours = (secret: string): string => secret.match(/.{1,4}/g)?.join(" ") ?? "";

/** The recovery codes as a file. */
export const codesFile = (codes: readonly string[]): string =>
  `Recovery codes for Windrow. Each works once, in place of a code of the app.\n\n${codes.join("\n")}\n`;
