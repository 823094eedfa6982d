// The one place that calls the Master: the session's secret in a header, idempotency keys, problems as errors.
import { takeEarly } from "../app/early.ts";
import { readProblem } from "../parts/problems.ts";
import { SIGN_IN_AGAIN, signedInAgain } from "./again.ts";
import { connection } from "./connection.ts";
import { wholePath } from "./paths.ts";
import { forgetSecret, proof, secret } from "./secret.ts";
import type { Page, Problem } from "./types.ts";

export const SESSION = "/session";
export const SIGN_IN = "/sign-in";
export const SIGN_IN_PASSWORD = "/sign-in/password";
export const SIGN_IN_PROVIDER = "/sign-in/provider";
export const SIGN_IN_FINISH = "/sign-in/provider/finish";
export const IDENTITIES = "/user/identities";
export const PASSWORD_LINK = "/password";
export const PASSWORD_FORGOTTEN = "/password/forgotten";
export const INVITATION = "/invitation";
export const SESSION_PROOF = "/session/proof";
export const INVITATION_ACCEPT = "/invitation/accept";
/** A wrong token, link or password there says nothing about the present session. */
const SIGNS_IN: readonly string[] = [
  ...[SESSION, SIGN_IN, SIGN_IN_PASSWORD, SIGN_IN_PROVIDER, SIGN_IN_FINISH],
  ...[PASSWORD_LINK, INVITATION, INVITATION_ACCEPT],
];

/** Long enough for a Master that is busy, short enough that a person is still looking. */
const DEADLINE_MS = 20_000;
/** For a call that answers once data is stored. */
const LONG_MS = 7_200_000;

/** A failure in the API's own words, with the request's id where there is one. */
export class ApiProblem extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.name = "ApiProblem";
    this.problem = problem;
  }
}

export type Query = Record<string, string | number | boolean | string[] | null | undefined>;

interface Asked {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  /** For what must not happen twice: sent again with the same key, it gets the first answer again. */
  key?: string;
  /** For a session that this tab does not use. */
  secret?: string;
}

export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [String(value)]) words.append(key, one);
  }
  const text = words.toString();
  return `${wholePath(path)}${text ? `?${text}` : ""}`;
}

/** Send one request; the answer is still open, for those who read it as a stream. */
export async function send(
  method: string,
  path: string,
  asked: Asked = {},
  deadlineMs: number | null = DEADLINE_MS,
): Promise<Response> {
  const headers: Record<string, string> = {
    Accept: "application/json, application/problem+json, */*",
    ...proof(asked.secret),
  };
  if (asked.key) headers["Idempotency-Key"] = asked.key;
  if (asked.body !== undefined) headers["Content-Type"] = "application/json";
  const signals = [asked.signal, deadlineMs === null ? undefined : AbortSignal.timeout(deadlineMs)].filter(
    (one) => one !== undefined,
  );
  const used = asked.secret ?? secret();
  let answer: Response;
  try {
    const early = method === "GET" && asked.secret === undefined ? takeEarly(address(path, asked.query)) : null;
    answer = await (early ??
      fetch(address(path, asked.query), {
        method,
        headers,
        body: asked.body === undefined ? null : JSON.stringify(asked.body),
        credentials: "omit", // no cookie means anything here; those of other pages of this host are not even sent
        cache: "no-store",
        signal: signals.length ? AbortSignal.any(signals) : null,
      }));
  } catch (failure) {
    if (asked.signal?.aborted) throw failure;
    connection.lost();
    throw new ApiProblem(unreachable(method, path, failure, deadlineMs));
  }
  return taken(answer, path, used, () => send(method, path, asked, deadlineMs));
}

/** The answer, if it is no problem. again: after the person has signed in once more. */
async function taken(
  answer: Response,
  path: string,
  used: string | null,
  again: () => Promise<Response>,
): Promise<Response> {
  if (answer.ok) return answer;
  const problem = await problemOf(answer, path);
  if (answer.status === 401 && !SIGNS_IN.includes(path)) forgetSecret(used, problem.detail ?? null);
  if (problem.code === SIGN_IN_AGAIN && (await signedInAgain())) return again();
  throw new ApiProblem(problem);
}

/**
 * Send a tar, however long it takes; `told` learns how many of its bytes are on their way: fetch does not say it. own:
 * where it broke off, an error of the tar itself, such as a file that was changed; null: the Master was not reached.
 * stop: its reason is thrown.
 */
export async function upload(
  path: string,
  tar: Blob,
  told: (bytes: number) => void,
  own: () => Promise<Error | null>,
  stop?: AbortSignal,
): Promise<Response> {
  const used = secret();
  const answer = await new Promise<Response>((resolve, reject) => {
    const line = new XMLHttpRequest();
    line.open("PUT", address(path));
    for (const [name, value] of Object.entries(proof())) line.setRequestHeader(name, value);
    line.setRequestHeader("Content-Type", "application/x-tar");
    line.upload.onprogress = (event) => told(event.loaded);
    line.onload = () => resolve(new Response(line.responseText, { status: line.status, statusText: line.statusText }));
    line.onerror = async () => {
      const failure = await own();
      if (failure === null) connection.lost();
      reject(failure ?? new ApiProblem(unreachable("PUT", path, null, null)));
    };
    line.onabort = () => reject(stop?.reason);
    stop?.addEventListener("abort", () => line.abort(), { once: true });
    line.send(tar);
  });
  return taken(answer, path, used, () => upload(path, tar, told, own, stop));
}

async function json<T>(method: string, path: string, asked: Asked = {}, deadlineMs = DEADLINE_MS): Promise<T> {
  const answer = await send(method, path, asked, deadlineMs);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) => json<T>("GET", path, { query, signal });
export const post = <T>(path: string, body?: unknown, key?: string) =>
  json<T>("POST", path, { body: body ?? {}, ...(key ? { key } : {}) });
/** The same where the answer comes only when what was moved is stored. */
export const postLong = <T>(path: string) => json<T>("POST", path, { body: {} }, LONG_MS);
export const put = <T>(path: string, body: unknown) => json<T>("PUT", path, { body });
export const remove = <T>(path: string) => json<T>("DELETE", path);

/** A list has many pages; a fleet's is read whole, up to a bound that no fleet here reaches. */
const PAGES_MOST = 50;

export async function everyPage<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MOST; page += 1) {
    const answer: Page<T> = await get<Page<T>>(path, { limit: 500, ...query, cursor }, signal);
    items.push(...answer.items);
    cursor = answer.next_cursor;
    if (!cursor) break;
  }
  return items;
}

export function freshKey(): string {
  // randomUUID is only there in secure contexts; a Master on another machine may be read over plain HTTP in a lab.
  const words = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(words, (word) => word.toString(16).padStart(8, "0")).join("");
}

async function problemOf(answer: Response, path: string): Promise<Problem> {
  const known: Problem = {
    type: "about:blank",
    title: answer.statusText || "Error",
    status: answer.status,
    detail: `The Master answered ${answer.status} to ${path}.`,
    code: `http_${answer.status}`,
    subject: null,
    retryable: answer.status >= 500,
    request_id: answer.headers.get("X-Request-ID"),
    reasons: [],
  };
  return readProblem(await answer.json().catch(() => null), known);
}

function unreachable(method: string, path: string, failure: unknown, deadlineMs: number | null): Problem {
  const slow = failure instanceof DOMException && failure.name === "TimeoutError";
  return {
    type: "about:blank",
    title: "The Master does not answer",
    status: 0,
    detail: slow
      ? `No answer to ${method} ${path} within ${(deadlineMs ?? DEADLINE_MS) / 1000} s.`
      : `${method} ${path} did not reach the Master. Is \`windrow up\` running?`,
    code: "unreachable",
    subject: null,
    retryable: true,
    request_id: null,
    reasons: [],
  };
}
