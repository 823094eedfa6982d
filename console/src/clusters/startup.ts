// The phases of a machine's start by time, and what it costs until its end. Pure.
import type { Cluster } from "../api/types.ts";

type Step = Cluster["steps"][number];

export interface Phase {
  step: Step;
  /** The member that it is of, in a cluster whose members start side by side. */
  member: string | null;
  tookMs: number;
  /** In hundredths of the whole start. */
  left: number;
  width: number;
  isGoing: boolean;
}

const WAITING = ["requested", "queued", "placing", "creating", "stopping", "deleting"];
/** Steps after which nothing is to come, also while what is left is cleared away. */
const ENDS = ["finished", "exited", "failed", "stopped", "deleted"];
/** The thinnest bar that is seen. */
const LEAST = 0.8;

/** Each step lasts until the next one of the same member; the last until now, while something is still to come. */
export function phasesOf({ steps, phase }: Pick<Cluster, "steps" | "phase">, nowMs: number): Phase[] {
  if (steps.length === 0) return [];
  const waits = WAITING.includes(phase.toLowerCase());
  const from = Date.parse(steps[0]!.at);
  const last = Date.parse(steps.at(-1)!.at);
  const end = waits ? Math.max(nowMs, last) : last;
  const whole = Math.max(1, end - from);
  return steps.map((step, index) => {
    const next = steps.slice(index + 1).find((one) => step.member === null || [null, step.member].includes(one.member));
    const begun = Date.parse(step.at);
    const tookMs = Math.max(0, (next ? Date.parse(next.at) : end) - begun);
    const isLast = index === steps.length - 1 || step.member !== null;
    const left = Math.min((100 * (begun - from)) / whole, 100 - LEAST);
    return {
      step,
      member: step.member,
      tookMs,
      left,
      width: Math.min(Math.max(LEAST, (100 * tookMs) / whole), 100 - left),
      isGoing:
        waits &&
        isLast &&
        !next &&
        !ENDS.includes(step.name.toLowerCase()) &&
        (step.progress === null || step.progress < 1),
    };
  });
}

const HOUR_MS = 3_600_000;

/** Its name has to be typed before it is deleted: a real machine that has run for an hour or longer. */
export const isDear = (
  { started_at, ended_at, request }: Pick<Cluster, "started_at" | "ended_at" | "request">,
  nowMs: number,
): boolean =>
  !request.simulated &&
  started_at !== null &&
  (ended_at === null ? nowMs : Date.parse(ended_at)) - Date.parse(started_at) >= HOUR_MS;

/** Of its first member: "none": nothing of it is on a host yet; "gone": it was deleted with the member and not kept. */
export function logOf({ phase, workloads }: Pick<Cluster, "phase" | "workloads">): "there" | "none" | "gone" {
  const over = ["deleted", "finished", "failed", "stopped"].includes(phase.toLowerCase());
  const first = workloads.filter((one) => one.rank === 0);
  if (first.some((one) => one.results !== null && one.results.log_bytes !== null)) return "there";
  if (first.length === 0) return over ? "gone" : "none";
  const isHeld = first.some((one) => !["gone", "stopping"].includes(one.phase.toLowerCase()));
  return isHeld && !["deleted", "finished"].includes(phase.toLowerCase()) ? "there" : over ? "gone" : "none";
}

const OF_AN_IMAGE = /image|registry|manifest|pull|dial tcp/i;

/** What one can do after a machine has failed. */
export function afterFailure({ reason, request }: Pick<Cluster, "reason" | "request">): string {
  if (request.image !== null && OF_AN_IMAGE.test(reason ?? ""))
    return (
      `Its host could not get the image ${request.image}. Check the name and the registry's login; some hosts reach ` +
      "only some registries, or none. Start again with another image, with none, or on another host."
    );
  return "Start again with what the reason asks for, or on another host.";
}

/** What it has cost at its end if it runs until then; null: nobody knows when it ends, or it costs nothing now. */
export function totalAtEnd(
  {
    cost_so_far,
    price_per_hour,
    ends_at,
    ended_at,
  }: Pick<Cluster, "cost_so_far" | "price_per_hour" | "ends_at" | "ended_at">,
  nowMs: number,
): string | null {
  if (ends_at === null || ended_at !== null || price_per_hour === null) return null;
  const hours = Math.max(0, Date.parse(ends_at) - nowMs) / HOUR_MS;
  return (Number(cost_so_far ?? 0) + hours * Number(price_per_hour)).toFixed(2);
}
