// What the head of every page needs of alerts; the rest loads with its page. Pure.
import type { Role } from "../api/types.ts";

const UNREAD_MOST = 99;
export const unreadText = (unread: number): string => (unread > UNREAD_MOST ? `${UNREAD_MOST}+` : String(unread));

/** Who may hear all events that are theirs at once; others name their project. */
const HEAR_ALL: readonly Role[] = ["operator", "auditor", "provider"];
export const hearsAll = (roles: readonly Role[]): boolean => roles.some((role) => HEAR_ALL.includes(role));
