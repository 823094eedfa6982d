// What people say about themselves, as requests: a new user, a new password, another name or address. Pure.
import type { InvitationAccepted, Profile, ProfileChange, SessionProof } from "../api/types.ts";
import { quoted } from "../parts/shell.ts";

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

/** Patterns of a User-Agent header. Edge and Opera also say Chrome, and Chrome says Safari: the order matters. */
const BROWSERS = [
  [/\bEdg\w*\/(\d+)/, "Edge"],
  [/\bOPR\/(\d+)/, "Opera"],
  [/\bFirefox\/(\d+)/, "Firefox"],
  [/\b(?:Headless)?Chrome\/(\d+)/, "Chrome"],
  [/\bVersion\/(\d+).* Safari\//, "Safari"],
] as const;
const SYSTEMS = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X|Mac_OS_X/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
] as const;

/** "Firefox 140 on Linux"; what is no known browser stays as it is. agent: a User-Agent header. */
export function browserName(agent: string): string {
  for (const [pattern, name] of BROWSERS) {
    const version = pattern.exec(agent)?.[1];
    const system = SYSTEMS.find(([mark]) => mark.test(agent))?.[1];
    if (version) return `${name} ${version}${system ? ` on ${system}` : ""}`;
  }
  return agent;
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

/** The line that installs `windrow` and accepts an invitation. url: of the Master; invitation: its secret, if any. */
export const installLine = (command: string, url: string, invitation?: string): string =>
  invitation === undefined
    ? command
    : command.replace(/\| sh$/, () => `| WINDROW_LINK=${quoted(`${url}/#invitation=${invitation}`)} sh`);

/** A secret of an authenticator app in groups of four, to type it by hand. */
export const inFours = (secret: string): string => secret.match(/.{1,4}/g)?.join(" ") ?? "";

/** The recovery codes as a file. */
export const codesFile = (codes: readonly string[]): string =>
  `Recovery codes for Windrow. Each works once, in place of a code of the app.\n\n${codes.join("\n")}\n`;

/** The ways in which a user can sign in again, the best first; null: a project's own token is signed in. */
export const proofWays = (user: Profile | null): (keyof SessionProof)[] => [
  ...(user?.has_password ? (["password"] as const) : []),
  ...(user?.has_second_factor ? (["code"] as const) : []),
  "token",
];

/** Of a device's code: so many letters. */
const DEVICE_LETTERS = 8;

/** What was typed, as devices show their codes: ABCD-EFGH. */
export function codeText(typed: string): string {
  const letters = typed
    .toUpperCase()
    .replace(/[^A-Z]/g, "")
    .slice(0, DEVICE_LETTERS);
  return letters.length > 4 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : letters;
}

export const isCode = (text: string): boolean => text.length === DEVICE_LETTERS + 1;
