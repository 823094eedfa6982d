// The tone of every state that the API names: good, in progress, needs attention, bad, over. Pure.

export type Tone = "ok" | "busy" | "warn" | "bad" | "off";

const TONES: Record<Tone, readonly string[]> = {
  ok: [
    "online",
    "available",
    "current",
    "running",
    "active",
    "verified",
    "succeeded",
    "healthy",
    "enrolled",
    "listed",
    "connected",
    "completed",
    "finished",
    "idle",
    "serving",
    "passed",
  ],
  busy: [
    "starting",
    "creating",
    "placing",
    "queued",
    "requested",
    "verifying",
    "reserved",
    "stopping",
    "scrubbing",
    "deleting",
    "sent",
    "accepted",
    "pulling",
    "rented",
    "joining",
    "measuring",
    "pending",
    "preparing",
    "waiting_files",
    "waiting_volumes",
    "submitted",
    "checkpointing",
    "migrating",
  ],
  warn: [
    "suspect",
    "degraded",
    "paused",
    "draining",
    "maintenance",
    "unverified",
    "unknown",
    "waiting",
    "busy",
    "unavailable",
    "offline_expected",
  ],
  bad: ["lost", "failed", "faulty", "quarantined", "timed_out", "timedout", "banned", "killed", "offline", "departed"],
  off: [
    "retired",
    "deleted",
    "cancelled",
    "none",
    "expired",
    "revoked",
    "exited",
    "ended",
    "gone",
    "unseen",
    "stopped",
  ],
};

const TONE_OF = new Map<string, Tone>(
  Object.entries(TONES).flatMap(([tone, states]) => states.map((state) => [state, tone as Tone] as const)),
);

/** Words with another meaning in one place: a running step of a check is in progress. */
const IN = {
  stage: { done: "ok", running: "busy", waiting: "off", skipped: "off", absent: "off", unfinished: "warn" },
  challenge: { unprovable: "warn", unfinished: "warn" },
} as const satisfies Record<string, Record<string, Tone>>;

export function toneOf(state: string | null | undefined, of?: keyof typeof IN): Tone {
  // The Master counts after a comma: "rented, 1 of 2 parts".
  const word = (state ?? "none").toLowerCase().replace(/,.*/, "").replace(/[ -]/g, "_");
  const own: Record<string, Tone> = of ? IN[of] : {};
  return own[word] ?? TONE_OF.get(word) ?? "off";
}
