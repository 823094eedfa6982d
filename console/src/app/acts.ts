// What the palette does: the verbs, on which things they work, and who may. Pure.
import type { Cluster, Host, Job, Me, Role, Volume } from "../api/types.ts";
import { isRenter, mayEnd, mayOperate } from "../identity/rights.ts";
import { closeness } from "./pages.ts";

export type Thing =
  | { kind: "host"; of: Host }
  | { kind: "machine"; of: Cluster }
  | { kind: "job"; of: Job }
  | { kind: "volume"; of: Volume };
export type Kind = Thing["kind"];
type Who = Pick<Me, "account" | "roles">;

interface Verb {
  word: string;
  /** Other words that mean it. */
  also: readonly string[];
  kinds: readonly Kind[];
}

export const VERBS: readonly Verb[] = [
  { word: "drain", also: ["cordon"], kinds: ["host"] },
  { word: "activate", also: ["resume", "uncordon"], kinds: ["host"] },
  { word: "maintenance", also: [], kinds: ["host"] },
  { word: "quarantine", also: [], kinds: ["host"] },
  { word: "retire", also: ["remove"], kinds: ["host"] },
  { word: "open jupyter", also: ["open", "jupyter", "notebook"], kinds: ["machine"] },
  { word: "stop", also: ["pause"], kinds: ["machine"] },
  { word: "start", also: ["resume"], kinds: ["machine"] },
  { word: "delete", also: ["remove", "rm", "end", "kill"], kinds: ["machine", "volume"] },
  { word: "cancel", also: ["stop", "end", "kill"], kinds: ["job"] },
];

const ROLES: Record<Kind, readonly Role[]> = {
  host: ["operator", "provider"],
  machine: ["renter"],
  job: ["renter"],
  volume: ["renter"],
};

export interface Meant {
  /** The verbs that the typed words begin with; none: they are a name. */
  verbs: readonly Verb[];
  /** What was typed behind the verb. */
  name: string;
}

/** Verbs from three letters on, or whole: a shorter beginning is more often that of a name. */
export function meant(typed: string): Meant {
  const text = typed.trim().toLowerCase().replace(/\s+/g, " ");
  const called = (verb: Verb) => [verb.word, ...verb.also].filter((word) => `${text} `.startsWith(`${word} `));
  const whole = VERBS.flatMap((verb) => called(verb).map((word) => ({ verb, word })));
  if (whole.length > 0) {
    const longest = Math.max(...whole.map(({ word }) => word.length));
    const best = whole.filter(({ word }) => word.length === longest);
    return { verbs: best.map(({ verb }) => verb), name: text.slice(longest).trim() };
  }
  const [first = "", ...rest] = text.split(" ");
  const begun = first.length < 3 ? [] : VERBS.filter((verb) => verb.word.startsWith(first));
  return begun.length > 0 && rest.length > 0 ? { verbs: begun, name: rest.join(" ") } : { verbs: [], name: text };
}

/** The number of a GPU, and the name of its host: of "rack7-node2 gpu 5". */
export function gpuMeant(name: string): { host: string; index: number | null } {
  const found = /^(.*?)\s*(?:·\s*)?gpu\s*(\d{1,3})$/.exec(name);
  return found ? { host: found[1] ?? "", index: Number(found[2]) } : { host: name, index: null };
}

/** The verbs that somebody with these roles has for anything at all. */
export const verbsFor = (roles: readonly Role[]): Verb[] =>
  VERBS.filter((verb) => verb.kinds.some((kind) => ROLES[kind].some((role) => roles.includes(role))));

/** True if this person may do it to this thing, and its state allows it. */
export function fits(verb: string, thing: Thing, me: Who): boolean {
  if (thing.kind === "host") {
    const state = thing.of.admin_state.toLowerCase();
    const done: Record<string, string> = { drain: "draining", activate: "active", quarantine: "quarantined" };
    return mayOperate(me, thing.of) && state !== "retired" && state !== (done[verb] ?? verb);
  }
  if (thing.kind === "volume") return verb === "delete" && me.roles.includes("renter");
  if (thing.kind === "job") return verb === "cancel" && thing.of.ended_at === null && isRenter(me, thing.of.account_id);
  const phase = thing.of.phase.toLowerCase();
  const mine = isRenter(me, thing.of.account_id);
  if (verb === "open jupyter")
    return mine && phase === "running" && thing.of.request.notebook && !thing.of.request.simulated;
  if (verb === "stop") return mine && ["creating", "running", "degraded"].includes(phase);
  if (verb === "start") return mine && phase === "stopped";
  return mayEnd(me, thing.of.account_id) && !["deleting", "deleted", "finished"].includes(phase);
}

/** Each verb that was meant with each thing of that name. */
export function actsOn(things: readonly Thing[], { verbs, name }: Meant, me: Who): { verb: string; thing: Thing }[] {
  return verbs.flatMap((verb) =>
    things
      .filter((thing) => verb.kinds.includes(thing.kind) && closeness(name, thing.of.name, thing.of.id) !== null)
      .filter((thing) => fits(verb.word, thing, me))
      .map((thing) => ({ verb: verb.word, thing })),
  );
}
