// The one place that opens server-sent events: named events as JSON, reopened by itself, asleep in hidden tabs.
// Read by fetch: an EventSource can send no header, and so could not say whose session it is.
import { get, type Query, send } from "./client.ts";
import { connection } from "./connection.ts";
import { EventReader } from "./events.ts";

/** A hidden tab lets go of its streams after this long: browsers allow six per host, over all tabs. */
const HIDDEN_MS = 20_000;
const RETRY_FIRST_MS = 500;
const RETRY_MOST_MS = 10_000;

export interface StreamHandlers {
  /** By event name; `data` is the parsed JSON. */
  on: Record<string, (data: never) => void>;
  /** Each time the stream stands again: read what was missed. */
  opened?: () => void;
  /** Each time it falls. */
  failed?: () => void;
}

/** A handler that throws is a fault of the page, and none of the stream. */
function heard(handle: ((data: never) => void) | undefined, data: string): void {
  try {
    handle?.(JSON.parse(data) as never);
  } catch (fault) {
    reportError(fault);
  }
}

/** Open a stream and keep it; the answer closes it for good. `query` is asked each time it is opened. */
export function openStream(path: string, handlers: StreamHandlers, query: () => Query = () => ({})): () => void {
  let open: AbortController | null = null;
  let retry: ReturnType<typeof setTimeout> | null = null;
  let hiding: ReturnType<typeof setTimeout> | null = null;
  let wait = RETRY_FIRST_MS;
  let closed = false;

  const shut = () => {
    open?.abort();
    open = null;
    if (retry) clearTimeout(retry);
    retry = null;
  };
  const start = () => {
    shut();
    if (closed) return;
    const mine = new AbortController();
    open = mine;
    read(mine.signal)
      .catch(() => undefined)
      .then(() => {
        if (open !== mine) return; // closed or opened anew meanwhile
        shut();
        handlers.failed?.();
        // Says whether it is us (401), the Master (offline banner), or only this stream.
        void get("/me").catch(() => undefined);
        retry = setTimeout(start, wait * (0.75 + Math.random() / 2));
        wait = Math.min(wait * 2, RETRY_MOST_MS);
      });
  };
  /** To its end, which is a failure as any other: a stream has none. */
  const read = async (signal: AbortSignal) => {
    const answer = await send("GET", path, { query: query(), signal }, null);
    wait = RETRY_FIRST_MS;
    handlers.opened?.();
    const events = new EventReader();
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      for (const { name, data } of events.read(value)) {
        if (name === "resync")
          handlers.opened?.(); // we were too slow and lost some: read again
        else heard(handlers.on[name], data);
      }
    }
  };
  const looked = () => {
    if (hiding) clearTimeout(hiding);
    hiding = null;
    if (document.hidden) hiding = setTimeout(shut, HIDDEN_MS);
    else if (!open && !retry) start();
  };
  const back = () => {
    if (connection.since() === null && !open && !document.hidden) start();
  };

  document.addEventListener("visibilitychange", looked);
  const unsubscribe = connection.subscribe(back);
  looked(); // a tab that is opened behind this one begins when it is looked at
  return () => {
    closed = true;
    document.removeEventListener("visibilitychange", looked);
    unsubscribe();
    if (hiding) clearTimeout(hiding);
    shut();
  };
}
