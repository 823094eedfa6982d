// An API problem for people: reads it from the answer and groups its reasons. Pure.
import type { Problem, Reason } from "../api/types.ts";

/** One reason and all that it stands for: fields, or names of hosts. */
export interface ReasonGroup {
  text: string;
  of: string[];
}

/** The problem of an answer: each field that the answer gives in the right type, else what is `known` without it. */
export function readProblem(told: unknown, known: Problem): Problem {
  if (typeof told !== "object" || told === null) return known;
  const given = told as Record<string, unknown>;
  const text = (name: string) => (typeof given[name] === "string" && given[name] !== "" ? given[name] : undefined);
  return {
    type: text("type") ?? known.type,
    title: text("title") ?? known.title,
    status: typeof given.status === "number" ? given.status : known.status,
    detail: text("detail") ?? known.detail,
    code: text("code") ?? known.code,
    subject: text("subject") ?? known.subject,
    retryable: typeof given.retryable === "boolean" ? given.retryable : known.retryable,
    request_id: text("request_id") ?? known.request_id,
    reasons: [given.reasons, given.ways].flatMap((told) => (Array.isArray(told) ? told.map(readReason) : [])),
  };
}

/**
 * One reason of a problem. The Master sends text, or an object with a whole line as `text`, or with `reason` and a
 * field or a host that it is about.
 */
export function readReason(told: unknown): Reason {
  if (typeof told !== "object" || told === null) return { about: "", text: String(told) };
  const given = told as Record<string, unknown>;
  const first = (...names: string[]) =>
    names.map((name) => given[name]).find((one): one is string => typeof one === "string" && one !== "");
  const line = first("text");
  if (line !== undefined) return { about: "", text: line };
  return {
    about: first("host_name", "field", "host_id") ?? "",
    text: first("reason", "detail") ?? JSON.stringify(told),
  };
}

/**
 * The same reason is said once, beside all that it is about; what fewer have in common comes first, as it tells
 * more.
 */
export function grouped(reasons: readonly Reason[]): ReasonGroup[] {
  const found = new Map<string, string[]>();
  for (const reason of reasons) {
    const of = found.get(reason.text) ?? [];
    if (reason.about) of.push(reason.about);
    found.set(reason.text, of);
  }
  return [...found].map(([text, of]) => ({ text, of })).sort((a, b) => a.of.length - b.of.length);
}

const NAMED_MOST = 3;

/** The subjects of a group in words: up to three names, then a count. */
export function aboutText(of: readonly string[]): string {
  if (of.length <= NAMED_MOST) return of.join(", ");
  return `${of.slice(0, NAMED_MOST - 1).join(", ")} and ${of.length - NAMED_MOST + 1} more`;
}
