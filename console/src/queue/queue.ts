// The queue in words: places, states, classes, expected starts, and the change of a job that waits. Pure.
import type { Explained, Job, JobRequest, Queued, QueueList } from "../api/types.ts";
import { count, DASH, duration, percent, plain, sentence, words } from "../parts/format.ts";
import type { Tone } from "../parts/states.ts";

const STATES: Record<Queued["state"], readonly [name: string, tone: Tone]> = {
  ready: ["Waits for a host", "busy"],
  held: ["Held", "warn"],
  dependency: ["Waits for a job", "off"],
  begin: ["Begins later", "off"],
  throttled: ["Waits for its array", "off"],
  dependency_never_satisfied: ["Can never start", "bad"],
  no_share: ["Its project is deleted", "bad"],
};

export const stateName = (state: string): string => STATES[state as Queued["state"]]?.[0] ?? words(state);
export const stateTone = (state: string): Tone => STATES[state as Queued["state"]]?.[1] ?? "off";

/** 1st, 2nd, 3rd, 11th. */
export function ordinal(place: number): string {
  const ending = ["th", "st", "nd", "rd"][place % 10] ?? "th";
  return `${count(place)}${Math.trunc(place / 10) % 10 === 1 ? "th" : ending}`;
}

/** "Low, priority +10" */
export const classText = ({ priority_class, priority }: Pick<Queued, "priority_class" | "priority">): string =>
  `${words(priority_class)}${priority ? `, priority ${priority > 0 ? "+" : "−"}${Math.abs(priority)}` : ""}`;

const HOUR_MS = 3_600_000;
const timeFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** "14:20 ± 6 min" in the reader's own time; more than a day away with its date. */
export function startText(estimate: Queued["estimate"], nowMs: number): string {
  if (!estimate) return DASH;
  const [start, low, high] = [estimate.start_at, estimate.low_at, estimate.high_at].map(Date.parse) as [
    number,
    number,
    number,
  ];
  const minutes = Math.max(1, Math.round(Math.max(high - start, start - low) / 60_000));
  const rough = minutes < 120 ? `${minutes} min` : duration(Math.round(minutes / 60) * 3600);
  const day = Math.abs(start - nowMs) > 24 * HOUR_MS ? `${dayFormat.format(start)}, ` : "";
  return `${day}${timeFormat.format(start)} ± ${rough}`;
}

/** "3rd in the queue, starts 14:20 ± 6 min"; of what has no place, why. */
export function standingText(entry: Queued, nowMs: number): string {
  if (entry.state !== "ready") return stateName(entry.state);
  const place = entry.place === null ? "In the queue" : `${ordinal(entry.place)} in the queue`;
  if (entry.elsewhere) return `${place}: ${plain(entry.elsewhere)}`;
  return entry.estimate ? `${place}, starts ${startText(entry.estimate, nowMs)}` : `${place}, start not known yet`;
}

/** The Master's reason without the place, which stands beside it. */
export function whyText(why: string): string {
  return sentence(why.replace(/^(\d[\d,]*(st|nd|rd|th) in|In) the queue: /, ""));
}

/** The hosts that would do and what holds each: between the reason and the expected start, which stand elsewhere. */
export const heldHosts = (told: Explained | undefined): string[] =>
  told?.queue ? told.not_yet.slice(1, told.queue.estimate ? -1 : undefined) : [];

/** What would change it, beside the changes of its request, which stand elsewhere. */
export const otherWays = (told: Explained | undefined): string[] =>
  told ? told.changes.slice(0, told.changes.length - (told.refusal?.ways.length ?? 0)) : [];

/** The part of the estimates that held. */
export const heldText = ({ estimates_held, estimates_scored }: QueueList): string =>
  estimates_scored ? percent(estimates_held / estimates_scored) : DASH;

/** True of a job that can be submitted again with a change: nothing of it is out of the console's sight. */
export const isRepeatable = ({ request, folder_bytes, attempts }: Job): boolean =>
  !request.await_files &&
  folder_bytes === null &&
  attempts.length === 0 &&
  !request.array_size &&
  Object.values(request.env).every((value) => value !== null);

/** The request of a job with these changes: what is null is left out. */
export function changedRequest({ request }: Pick<Job, "request">, changes: Readonly<Record<string, unknown>>) {
  const fields = Object.entries({ ...request, ...changes }).filter(([, value]) => value !== null);
  return Object.fromEntries(fields) as unknown as JobRequest;
}
