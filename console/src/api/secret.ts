// The one place that keeps the session's secret: in this tab alone. No cookie, so that no other page can act with it.
//
// A new tab asks the signed-in tabs of the same origin for it. Only pages of the very same origin (scheme, host, port)
// hear a BroadcastChannel, so that no forwarded page on another port or name does.

const PLACE = "windrow.session";
const CHANNEL = "windrow.session";
/** A new tab waits so long for another one before it shows the sign-in page. It asks again from time to time. */
const ANSWER_MS = 250;

type Said = { ask: true } | { secret: string };

let known: string | null = stored();
let hasLeft = false;
let refusal: string | null = null;

function stored(): string | null {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null; // storage is switched off: the secret lives as long as the page
  }
}

/** The secret of this tab's session; null: none is known. */
export const secret = (): string | null => known;

/** The header that proves this session to the Master. */
export const proof = (own = known): Record<string, string> => (own === null ? {} : { Authorization: `Bearer ${own}` });

export function keepSecret(found: string): void {
  known = found;
  hasLeft = false;
  try {
    sessionStorage.setItem(PLACE, found);
  } catch {
    // kept in memory
  }
}

/** What the Master said when it refused the session that this tab had last; null: this tab has left it by itself. */
export const whyRefused = (): string | null => refusal;

/** The Master refused this one: it is over, unless this tab has another by now. */
export function forgetSecret(refused: string | null, why: string | null = null): void {
  if (refused !== known) return;
  if (known !== null) refusal = why;
  known = null;
  try {
    sessionStorage.removeItem(PLACE);
  } catch {
    // it was never stored
  }
}

/** Whoever signs out here is not signed in again by another tab. */
export function signOutHere(): void {
  hasLeft = true;
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
