// The one place that keeps the session's secret: in this tab alone. No cookie, so that no other page can act with it.
//
// A new tab asks the signed-in tabs of the same origin for it. Only pages of the very same origin (scheme, host, port)
// hear a BroadcastChannel, so that no forwarded page on another port or name does.

const PLACE = "windrow.session";
const PROJECT_PLACE = "windrow.project";
const CHANNEL = "windrow.session";
/** A new tab waits so long for another one before it shows the sign-in page. It asks again from time to time. */
const ANSWER_MS = 250;

type Said = { ask: true } | { secret: string };

let known = stored(PLACE);
let project = stored(PROJECT_PLACE);
let hasLeft = false;
let refusal: string | null = null;

function stored(place: string): string | null {
  try {
    return sessionStorage.getItem(place);
  } catch {
    return null; // storage is switched off: it lives as long as the page
  }
}

function store(place: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(place);
    else sessionStorage.setItem(place, text);
  } catch {
    // kept in memory
  }
}

/** The secret of this tab's session; null: none is known. */
export const secret = (): string | null => known;

/**
 * The headers that prove this session to the Master, and name the project of this tab: other tabs of the session may
 * act in others. own: of a session that this tab does not use.
 */
export function proof(own?: string): Record<string, string> {
  if (own !== undefined) return { Authorization: `Bearer ${own}` };
  if (known === null) return {};
  return { Authorization: `Bearer ${known}`, ...(project !== null && { "Windrow-Project": project }) };
}

/** The project that this tab acts in; null: not known yet, it is the session's. */
export const projectHere = (): string | null => project;

export function keepProject(id: string | null): void {
  project = id;
  store(PROJECT_PLACE, id);
}

export function keepSecret(found: string): void {
  known = found;
  hasLeft = false;
  store(PLACE, found);
}

/** What the Master said when it refused the session that this tab had last; null: this tab has left it by itself. */
export const whyRefused = (): string | null => refusal;

/** The Master refused this one: it is over, unless this tab has another by now. */
export function forgetSecret(refused: string | null, why: string | null = null): void {
  if (refused !== known) return;
  if (known !== null) refusal = why;
  known = null;
  store(PLACE, null);
}

/** Whoever signs out here is not signed in again by another tab. */
export function signOutHere(): void {
  hasLeft = true;
  keepProject(null);
  forgetSecret(known);
}

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(CHANNEL);
const waiting = new Set<() => void>();

function isSaid(data: unknown): data is Said {
  return (
    typeof data === "object" &&
    data !== null &&
    ("ask" in data || ("secret" in data && typeof data.secret === "string"))
  );
}

channel?.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
  if (!isSaid(data)) return;
  if ("ask" in data && known !== null) channel.postMessage({ secret: known });
  if ("secret" in data && known === null && waiting.size) {
    keepSecret(data.secret);
    for (const heard of waiting) heard();
    waiting.clear();
  }
});

/** Asks the other tabs where this one has no session; resolves when one has answered, or none in time. */
export function handedOver(): Promise<void> {
  if (known !== null || hasLeft || channel === null) return Promise.resolve();
  return new Promise((done) => {
    waiting.add(done);
    channel.postMessage({ ask: true });
    setTimeout(() => {
      waiting.delete(done);
      done();
    }, ANSWER_MS);
  });
}
