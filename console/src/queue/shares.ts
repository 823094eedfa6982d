// Shares and quotas: rows as a tree, parts in words, drafts of forms as requests and as commands. Pure.
import type { FairShare, FairShareRequest, Me, Quota, QuotaRequest } from "../api/types.ts";
import { managesAll } from "../identity/members.ts";
import { bytes, DASH, GIB, perHour, plain } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";

export const WHOLE = 1_000_000;
const PER_CENT = WHOLE / 100;
const ROOT = "installation";

type Node = { level: FairShare["level"]; name: string };

/** "project lab", "installation" */
export const nodeName = ({ level, name }: Node): string => (level === ROOT ? ROOT : `${level} ${name}`);

/** "12.5 %": parts per million as people read them. */
export const partText = (ppm: number): string => `${String(Number((ppm / PER_CENT).toFixed(ppm < PER_CENT ? 2 : 1)))}%`;

/** The end of the bars of a list: the largest figure in it, so that small shares are seen beside each other. */
export function scaleOf(rows: readonly FairShare[]): number {
  const below = rows.filter((row) => row.level !== ROOT);
  const figures = below.flatMap((row) => [row.guarantee_ppm, row.held_ppm, row.used_ppm, mostOf(row) ?? 0]);
  return Math.max(0, ...figures) || WHOLE;
}

/** The most that it has at once; null: all that is free. */
export const mostOf = ({ guarantee_ppm, ceiling_ppm, is_borrowing }: FairShare): number | null => {
  const most = is_borrowing ? ceiling_ppm : Math.min(ceiling_ppm, guarantee_ppm);
  return most < WHOLE ? most : null;
};

/** "20% in use, of 25% guaranteed and 50% at most" */
export function barText(row: FairShare): string {
  const most = mostOf(row);
  const end = most === null ? "" : ` and ${partText(most)} at most`;
  return `${partText(row.held_ppm)} in use, of ${partText(row.guarantee_ppm)} guaranteed${end}`;
}

/** The depth of a row below the installation: a project without organisation stands beside organisations. */
export const depthOf = (row: FairShare): number => (row.level === ROOT ? 0 : row.parent_id === ROOT ? 1 : 2);

/** True for who decides about this share and its quotas: operators, and owners and admins about their projects. */
export const maySet = (me: Me | null | undefined, { level }: Pick<FairShare, "level">): boolean =>
  me != null && (me.roles.includes("operator") || (managesAll(me) && level === "project"));

export interface ShareDraft {
  guarantee: string;
  ceiling: string;
  weight: string;
  isBorrowing: boolean;
  mayUseUrgent: boolean;
}

export const draftOfShare = (row: FairShare): ShareDraft => ({
  guarantee: row.guarantee_ppm ? String(row.guarantee_ppm / PER_CENT) : "",
  ceiling: row.ceiling_ppm < WHOLE ? String(row.ceiling_ppm / PER_CENT) : "",
  weight: String(row.weight),
  isBorrowing: row.is_borrowing,
  mayUseUrgent: row.may_use_urgent,
});

export type ShareFaults = Partial<Record<keyof FairShareRequest, string>>;

/** What is empty: nothing is guaranteed, all may be had. */
export function toShare(draft: ShareDraft): { body: Required<FairShareRequest>; faults: ShareFaults } {
  const faults: ShareFaults = {};
  const part = (field: "guarantee_ppm" | "ceiling_ppm", text: string, empty: number): number => {
    const value = Number(text.trim().replace(/%$/, ""));
    if (!text.trim()) return empty;
    if (!(value >= 0 && value <= 100)) faults[field] = "A number from 0 to 100";
    return Math.round(value * PER_CENT);
  };
  const body = {
    guarantee_ppm: part("guarantee_ppm", draft.guarantee, 0),
    ceiling_ppm: part("ceiling_ppm", draft.ceiling, WHOLE),
    weight: Number(draft.weight),
    is_borrowing: draft.isBorrowing,
    may_use_urgent: draft.mayUseUrgent,
  };
  if (!faults.ceiling_ppm && body.ceiling_ppm < body.guarantee_ppm) faults.ceiling_ppm = "No less than the guarantee";
  if (!/^[1-9]\d{0,6}$/.test(draft.weight.trim())) faults.weight = "A whole number from 1";
  return { body, faults };
}

export const sharePath = (id: string): string => `/fair-shares/${encodeURIComponent(id)}`;

export function shareCommand(id: string, body: Required<FairShareRequest>): string {
  const flags = [
    `--guarantee ${body.guarantee_ppm / PER_CENT}%`,
    `--ceiling ${body.ceiling_ppm / PER_CENT}%`,
    `--weight ${body.weight}`,
    body.is_borrowing ? "--borrowing" : "--no-borrowing",
    body.may_use_urgent ? "--urgent" : "--no-urgent",
  ];
  return ["windrow fair-share set", quoted(id), ...flags].join(" ");
}

type Item = Quota["item"];

const ITEMS: Record<Item, readonly [name: string, unit: string]> = {
  gpus: ["GPUs", ""],
  cpus: ["CPUs", ""],
  memory: ["Memory", "GiB"],
  clusters: ["Machines and clusters", ""],
  waiting_jobs: ["Waiting jobs", ""],
  spend_per_hour: ["Spend per hour", ""],
};

export const ITEM_CHOICES = Object.entries(ITEMS).map(([value, [label]]) => ({ value, label }));
export const unitOf = (item: Item): string => ITEMS[item][1];

/** "h100 GPUs" */
export const itemName = ({ item, tier }: Pick<Quota, "item" | "tier">): string =>
  `${tier ? `${plain(tier)} ` : ""}${ITEMS[item]?.[0] ?? item}`;

export function quotaText(item: Item, value: string): string {
  if (item === "memory") return bytes(Number(value));
  return item === "spend_per_hour" ? perHour(value) : value;
}

/** The part of the limit that is used; null: nothing is allowed. */
export const quotaRatio = ({ used, limit }: Pick<Quota, "used" | "limit">): number | null =>
  Number(limit) > 0 ? Number(used) / Number(limit) : null;

export interface QuotaDraft {
  /** An id or a name; what `nodeName` says of a known one means its id. */
  node: string;
  item: Item;
  tier: string;
  limit: string;
}

export const BLANK_QUOTA: QuotaDraft = { node: "", item: "gpus", tier: "", limit: "" };

export const draftOfQuota = (quota: Quota): QuotaDraft => ({
  node: nodeName(quota),
  item: quota.item,
  tier: quota.tier ?? "",
  limit: quota.item === "memory" ? String(Number(quota.limit) / GIB) : quota.limit,
});

export type QuotaFaults = Partial<Record<keyof QuotaRequest, string>>;

export function toQuota(draft: QuotaDraft, known: readonly (Node & { id: string })[]) {
  const faults: QuotaFaults = {};
  const node = draft.node.trim();
  const limit = draft.limit.trim();
  const isWhole = draft.item === "clusters" || draft.item === "waiting_jobs";
  if (!node) faults.node = "An organisation or a project";
  if (!(isWhole ? /^\d+$/ : /^\d+(\.\d+)?$/).test(limit))
    faults.limit = `A ${isWhole ? "whole " : ""}number, 0 or more`;
  const body: QuotaRequest = {
    node: known.find((one) => nodeName(one) === node)?.id ?? node,
    item: draft.item,
    limit: draft.item === "memory" ? String(Math.round(Number(limit) * GIB)) : limit,
  };
  if (draft.item === "gpus" && draft.tier.trim()) body.tier = draft.tier.trim();
  return { body, faults };
}

export const quotaCommand = ({ node, item, tier, limit }: QuotaRequest): string =>
  ["windrow quota set", quoted(node), item, "--limit", quoted(limit), ...(tier ? ["--tier", quoted(tier)] : [])].join(
    " ",
  );

export const quotaPath = ({ node_id, item, tier }: Quota): string =>
  `/quotas?${new URLSearchParams({ node: node_id, item, ...(tier ? { tier } : {}) })}`;

export const rankText = (rank: number | null): string => (rank === null ? DASH : String(rank));
