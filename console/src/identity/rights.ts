// The rights that roles give over one thing, as docs/permissions.md lists them. Pure.
import type { Host, Me } from "../api/types.ts";

type Who = Pick<Me, "account" | "roles"> | null | undefined;

/** True for who may read and change the work of this account: its renter alone. */
export const isRenter = (me: Who, accountId: string): boolean =>
  (me?.roles.includes("renter") && me.account.id === accountId) ?? false;

/** True for who may end the work of this account. */
export const mayEnd = (me: Who, accountId: string): boolean =>
  isRenter(me, accountId) || (me?.roles.includes("operator") ?? false);

/** True for who decides about this host: operators about all, providers about their own. */
export const mayOperate = (me: Who, host: Pick<Host, "owner_account">): boolean =>
  me != null &&
  (me.roles.includes("operator") || (me.roles.includes("provider") && host.owner_account === me.account.id));
