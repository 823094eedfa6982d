// What the home pages say of money, of idle machines and of troubles. Pure.
import type { Affected, Attention, Host } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import type { Point } from "../parts/series.ts";

/** Below this share of its time a GPU counts as unused. */
const USED_RATIO = 0.05;
/** A pause that is shorter says nothing. */
const IDLE_MINUTES = 10;

/** Seconds until a balance is used up; null: nothing costs anything now. What is reserved is spent first. */
export function emptyIn(balance: string, held: string, hourly: string): number | null {
  const rate = Number(hourly);
  return rate > 0 ? ((Number(balance) + Number(held)) / rate) * 3600 : null;
}

/** Minutes since a GPU was last in use, at least IDLE_MINUTES; null: it works, or nobody knows. */
export function idleMinutes(lines: readonly (readonly Point[])[], nowMs: number): number | null {
  const known = lines.flat().filter((point): point is [number, number] => point[1] !== null);
  if (known.length === 0) return null;
  const used = known.filter(([, ratio]) => ratio >= USED_RATIO).map(([at]) => at);
  const since = used.length ? Math.max(...used) : Math.min(...known.map(([at]) => at));
  const minutes = Math.floor((nowMs - since) / 60_000);
  return minutes >= IDLE_MINUTES ? minutes : null;
}

/** "rack7 · GPU 5" */
export const placeOf = (one: Affected): string => plain(one.name) + (one.gpu === null ? "" : ` · GPU ${one.gpu}`);

/** Somebody else has come: as a member of the operator's organisation, or with an account of their own. */
export const isShared = (accounts: number, members: number): boolean => accounts > 1 || members > 1;

/** How many simulated hosts somebody rents, whole or in part. */
export const rentedSimulated = (hosts: readonly Pick<Host, "simulated" | "slots">[]): number =>
  hosts.filter((host) => host.simulated && host.slots.some((slot) => slot.cluster_id !== null)).length;

/** Where a trouble is looked after, and what the button says. */
export type Way =
  | { label: string; to: "/gpus/$gpuId"; params: { gpuId: string } }
  | { label: string; to: "/hosts/$hostId"; params: { hostId: string } }
  | { label: string; to: "/fleet"; search: { state: string } }
  | { label: string; to: "/regions" | "/health" };

export function wayOf(group: Attention): Way {
  const first = group.affected[0];
  if (group.count > 1 && (group.kind === "faulty" || group.kind === "offline"))
    return { label: `Show ${group.count}`, to: "/fleet", search: { state: group.kind } };
  if (first) return wayTo(first) ?? { label: "Open health", to: "/health" };
  return group.kind === "no_relay" ? { label: "Open relays", to: "/regions" } : { label: "Open health", to: "/health" };
}

export function wayTo(one: Affected): Way | null {
  if (one.gpu_id !== null) return { label: "How to fix", to: "/gpus/$gpuId", params: { gpuId: one.gpu_id } };
  if (one.host_id !== null) return { label: "How to fix", to: "/hosts/$hostId", params: { hostId: one.host_id } };
  return one.access_id === null ? null : { label: "Open relays", to: "/regions" };
}
