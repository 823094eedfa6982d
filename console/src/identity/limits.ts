// Spending limits: drafts of forms as requests and as commands, and how much of a limit is used. Pure.
import type { LimitsRequest, SpendingLimit } from "../api/types.ts";
import { readAmount, readSpan } from "../clusters/request.ts";
import { amount } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";

export type LimitField = "max_hourly_cost" | "max_monthly_cost" | "max_total_cost" | "max_leases" | "idle_seconds";

export interface LimitKind {
  field: LimitField;
  /** Missing: nothing is used up of it. */
  used?: "hourly_cost" | "monthly_cost" | "total_cost" | "leases";
  label: string;
  hint: string;
  flag: string;
  /** What is set aside for what runs counts for it, too. */
  holds?: true;
}

export const LIMIT_KINDS: readonly LimitKind[] = [
  {
    field: "max_hourly_cost",
    used: "hourly_cost",
    label: "Per hour",
    hint: "The price per hour of all that runs at once.",
    flag: "--max-hourly",
  },
  {
    field: "max_monthly_cost",
    used: "monthly_cost",
    label: "Per month",
    hint: "In a calendar month, in UTC.",
    flag: "--max-monthly",
    holds: true,
  },
  {
    field: "max_total_cost",
    used: "total_cost",
    label: "In all",
    hint: "What was spent before counts, too.",
    flag: "--max-total",
    holds: true,
  },
  {
    field: "max_leases",
    used: "leases",
    label: "Leases",
    hint: "Machines and clusters rented at once.",
    flag: "--max-leases",
  },
  {
    field: "idle_seconds",
    label: "Idle minutes",
    hint: "New machines end when unused this long, unless they say otherwise; their changed files are kept.",
    flag: "--idle",
  },
];

export type LimitsDraft = Readonly<Record<LimitField, string>>;
export type LimitsFaults = Partial<Record<LimitField, string>>;

export const NO_LIMITS: LimitsDraft = {
  max_hourly_cost: "",
  max_monthly_cost: "",
  max_total_cost: "",
  max_leases: "",
  idle_seconds: "",
};

/** The limits as they are now. */
export const draftOfLimits = (limit: SpendingLimit | undefined): LimitsDraft =>
  ({
    ...Object.fromEntries(LIMIT_KINDS.map(({ field }) => [field, String(limit?.[field] ?? "")])),
    idle_seconds: limit?.idle_seconds == null ? "" : String(limit.idle_seconds / 60),
  }) as LimitsDraft;

/** What is empty is not limited. */
export function toLimits(draft: LimitsDraft): { body: LimitsRequest; faults: LimitsFaults } {
  const [body, faults]: [LimitsRequest, LimitsFaults] = [{}, {}];
  for (const field of ["max_hourly_cost", "max_monthly_cost", "max_total_cost"] as const)
    readAmount(draft, field, faults, (text) => (body[field] = text), 0);
  const leases = draft.max_leases.trim();
  if (/^\d{1,6}$/.test(leases)) body.max_leases = Number(leases);
  else if (leases) faults.max_leases = "A whole number such as 3";
  const minutes = [60, 60, "A number of minutes, 1 or more"] as const;
  readSpan(draft, "idle_seconds", faults, minutes, (seconds) => (body.idle_seconds = seconds));
  return { body, faults };
}

export const isEmpty = (body: LimitsRequest): boolean => Object.keys(body).length === 0;

const wordOf = (body: LimitsRequest, field: LimitField): string =>
  body[field] == null ? "none" : `${body[field]}${field === "idle_seconds" ? "s" : ""}`;

/** As options of a command that makes a token. */
export const limitWords = (body: LimitsRequest): string[] =>
  LIMIT_KINDS.filter(({ field }) => body[field] != null).map(({ field, flag }) => `${flag} ${wordOf(body, field)}`);

/** Whose limits they are. */
export interface Spender {
  kind: SpendingLimit["kind"];
  id: string;
  name: string;
}

const PATHS = { project: "/projects/", token: "/tokens/", service_account: "/service-accounts/" } as const;

export const limitsPath = ({ kind, id }: Spender): string => `${PATHS[kind]}${encodeURIComponent(id)}/limits`;

export function limitCommand({ kind, id }: Spender, body: LimitsRequest): string {
  const of = `--${kind.replace("_", "-")} ${quoted(id)}`;
  if (isEmpty(body)) return `windrow limit rm ${of} --yes`;
  const words = LIMIT_KINDS.map(({ field, flag }) => `${flag} ${wordOf(body, field)}`);
  return ["windrow limit set", of, ...words].join(" ");
}

const DECIMALS = 8;

/** A decimal amount as whole units of its last decimal. */
function whole(text: string): bigint {
  const [before = "0", after = ""] = text.split(".");
  return BigInt(before + after.slice(0, DECIMALS).padEnd(DECIMALS, "0"));
}

/** The share of a limit that is used, for a bar: from 0 to 1, in steps of a thousandth. held: set aside beside it. */
export function shareOf(used: string, most: string, held = "0"): number {
  const [part, all] = [whole(used) + whole(held), whole(most)];
  if (all === 0n || part >= all) return 1;
  return Number((part * 1000n) / all) / 1000;
}

export interface UsedLimit {
  label: string;
  /** Used / limit. */
  text: string;
  /** 1: nothing is left. */
  share: number;
  /** Set aside beside it. */
  held?: string;
}

const shown = (value: string | number): string => (typeof value === "number" ? String(value) : amount(value));

/** What is used of a limit so far, whether or not there is one. */
export const usedText = ({ used }: LimitKind, limit: SpendingLimit): string | null =>
  used ? shown(limit[used]) : null;

/** What is used of each limit that is set. Money that is set aside for what runs is taken already. */
export const usedLimits = (limit: SpendingLimit | undefined): UsedLimit[] =>
  LIMIT_KINDS.flatMap((kind) => {
    const most = limit?.[kind.field];
    if (!limit || most == null || !kind.used) return [];
    const held = kind.holds && whole(limit.held) > 0n ? limit.held : undefined;
    const text = `${usedText(kind, limit)} / ${shown(most)}`;
    const share = shareOf(String(limit[kind.used]), String(most), held);
    return [{ label: kind.label, text, share, ...(held && { held: shown(held) }) }];
  });

/** In one line, for search and CSV. */
export const limitsText = (limit: SpendingLimit | undefined): string =>
  usedLimits(limit)
    .map(({ label, text }) => `${label} ${text}`)
    .join(", ");
