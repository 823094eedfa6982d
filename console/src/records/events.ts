// Events as people read them: names in the place of ids, and what repeats itself in one row. Pure.
import type { EventRow } from "../api/types.ts";
import { plain, shortIds } from "../parts/format.ts";
import type { Tone } from "../parts/states.ts";

type Severity = EventRow["severity"];

export const SEVERITIES: readonly Severity[] = ["info", "notice", "warning", "error"];
export const SEVERITY_NAMES: Record<Severity, string> = {
  info: "Everything",
  notice: "Without everyday work",
  warning: "Warnings and errors",
  error: "Errors",
};
export const SEVERITY_TONES: Record<Severity, Tone> = { info: "off", notice: "ok", warning: "warn", error: "bad" };
export const RANGES: Record<string, { name: string; seconds: number | null }> = {
  hour: { name: "Last hour", seconds: 3600 },
  day: { name: "Last 24 h", seconds: 86_400 },
  week: { name: "Last 7 days", seconds: 7 * 86_400 },
  all: { name: "All times", seconds: null },
};

/** Of a repeat, how much earlier than the newest it may be. */
const REPEAT_MS = 15 * 60_000;

/** An event, and earlier ones that say the same of other things. */
export interface EventGroup extends EventRow {
  others: readonly EventRow[];
}

/** Of a list of everything, or of a host, everyday work is left out; of one machine or job it is what one looks for. */
export const severityFrom = (word: string | undefined, subject: string | undefined): Severity =>
  SEVERITIES.find((one) => one === word) ?? (!subject || /^(host_|GPU-|access_)/.test(subject) ? "notice" : "info");

export const isAtLeast = (event: EventRow, least: Severity): boolean =>
  SEVERITIES.indexOf(event.severity) >= SEVERITIES.indexOf(least);

/** A text with the names of things in the place of their ids; what has none keeps a short id. */
export function named(text: string, names: Record<string, string>): string {
  const longest = Object.entries(names).sort(([one], [other]) => other.length - one.length);
  return shortIds(plain(longest.reduce((said, [id, name]) => said.replaceAll(id, name), text)));
}

export const textOf = (event: EventRow): string => named(event.text, event.names);

/** What is alike in repeats: the text without names, and without figures unless they say what is wrong. */
function shapeOf(event: EventRow): string {
  const bare = Object.values(event.names).reduce((text, name) => text.replaceAll(name, "·"), textOf(event));
  const isCalm = !isAtLeast(event, "warning");
  return `${event.kind} ${event.severity} ${isCalm ? bare.replace(/[\d.,]+/g, "#") : bare}`;
}

/** Repeats stand under the newest of them. `events`: newest first. */
export function grouped(events: readonly EventRow[]): EventGroup[] {
  const found: (EventRow & { others: EventRow[] })[] = [];
  const open = new Map<string, EventRow & { others: EventRow[] }>();
  for (const event of events) {
    const shape = shapeOf(event);
    const head = open.get(shape);
    if (head && Date.parse(head.at) - Date.parse(event.at) <= REPEAT_MS) head.others.push(event);
    else {
      const group = { ...event, others: [] };
      open.set(shape, group);
      found.push(group);
    }
  }
  return found;
}
