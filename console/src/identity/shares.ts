// Shares of clusters, jobs and templates: levels, drafts of the form as requests and as commands. Pure.
import type { Me, ObjectShare, Role, ShareRequest } from "../api/types.ts";
import { words } from "../parts/format.ts";
import { operand, quoted } from "../parts/shell.ts";

export type Level = ShareRequest["level"];
type ReceiverKind = ShareRequest["receiver_kind"];
type Who = Pick<Me, "account" | "roles"> | null | undefined;

export const LEVEL_NAMES: Readonly<Record<Level, string>> = {
  see: "See: this page",
  use: "Use: also commands, tunnels, log and files",
  manage: "Manage: also stop, start, resize and delete",
};
/** A kind of the API as people call it. */
export const thingOf = (kind: string): string => (kind === "cluster" ? "machine" : kind);
export const RECEIVER_NAMES: Readonly<Record<ReceiverKind, string>> = {
  user: "A user",
  project: "A project",
  organisation: "An organisation",
};
/** Seconds; the empty one is without end. */
export const LIVES: readonly (readonly [string, string])[] = [
  ["", "Until withdrawn"],
  ["28800", "8 hours"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
];

/** The levels at which somebody may share what this project owns; none: not at all. */
export function givableLevels(who: Who, accountId: string): readonly Level[] {
  if (who?.account.id !== accountId) return [];
  if (who.roles.includes("renter")) return ["see", "use", "manage"];
  return who.roles.includes("admin") ? ["see"] : [];
}

/** True for who sees what this project shares. */
export const readsShares = (who: Who, accountId: string): boolean =>
  who?.account.id === accountId && (["renter", "viewer", "admin"] as const).some((role) => who.roles.includes(role));

export interface Reach {
  /** The inside: commands, log, files. */
  uses: boolean;
  /** Stop, start, resize, delete. */
  manages: boolean;
}

/** What the renter of a thing, or somebody with these shares of it, may do. A share with a project or an organisation
 *  lets each of its people do what their own roles allow. */
export function reachOf(
  isOwn: boolean,
  roles: readonly Role[],
  shares: readonly Pick<ObjectShare, "level" | "receiver_kind">[],
): Reach {
  const helping = shares.filter(({ receiver_kind }) => receiver_kind === "user" || roles.includes("renter"));
  const has = (...levels: Level[]) => isOwn || helping.some(({ level }) => levels.includes(level as Level));
  return { uses: has("use", "manage"), manages: has("manage") };
}

export interface ShareDraft {
  kind: ReceiverKind;
  receiver: string;
  level: Level;
  lasts: string;
}

/** Null: nobody is named. */
export function toShare(
  object: Pick<ShareRequest, "object_kind" | "object_id">,
  draft: ShareDraft,
): ShareRequest | null {
  const receiver = draft.receiver.trim();
  if (!receiver) return null;
  const body = { ...object, receiver_kind: draft.kind, receiver, level: draft.level };
  return draft.lasts ? { ...body, expires_in_s: Number(draft.lasts) } : body;
}

const PREFIXES: Readonly<Record<ReceiverKind, string>> = { user: "", project: "project:", organisation: "org:" };

export function shareCommand(body: ShareRequest): string {
  const kind = body.object_kind === "template" ? "template:" : "";
  const lasts = body.expires_in_s ? ` --for ${body.expires_in_s / 3600}h` : "";
  const receiver = quoted(`${PREFIXES[body.receiver_kind]}${body.receiver}`);
  return `windrow share add --with ${receiver} --level ${body.level}${lasts} ${operand(kind + body.object_id)}`;
}

/** "project lab"; a user's name alone. */
export const receiverText = ({ receiver_kind, receiver }: ObjectShare): string =>
  receiver_kind === "user" ? receiver : `${receiver_kind} ${receiver}`;

export const levelText = ({ level, is_active }: ObjectShare): string =>
  is_active ? words(level) : `${words(level)} (not in force)`;
