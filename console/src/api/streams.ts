// The one place that opens server-sent events: named events as JSON, reopened by itself, asleep in hidden tabs.
import { address, get, type Query } from "./client.ts";
import { connection } from "./connection.ts";

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

/** Open a stream and keep it; the answer closes it for good. `query` is asked each time it is opened. */
export function openStream(path: string, handlers: StreamHandlers, query: () => Query = () => ({})): () => void {
  let source: EventSource | null = null;
  let retry: ReturnType<typeof setTimeout> | null = null;
  let hiding: ReturnType<typeof setTimeout> | null = null;
  let wait = RETRY_FIRST_MS;
  let closed = false;

  const shut = () => {
    source?.close();
    source = null;
    if (retry) clearTimeout(retry);
    retry = null;
  };
  const start = () => {
    shut();
    if (closed) return;
    const mine = new EventSource(address(path, query()), { withCredentials: true });
    source = mine;
    mine.onopen = () => {
      wait = RETRY_FIRST_MS;
      handlers.opened?.();
    };
    mine.onerror = () => {
      shut();
      handlers.failed?.();
      void get("/me").catch(() => undefined); // says whether it is us (401), the Master (offline banner), or only this stream
      retry = setTimeout(start, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, RETRY_MOST_MS);
    };
    mine.addEventListener("resync", () => handlers.opened?.()); // we were too slow and lost some: read again
    for (const [name, handle] of Object.entries(handlers.on)) {
      mine.addEventListener(name, (event) => {
        handle(JSON.parse(event.data as string) as never);
      });
    }
  };
  const looked = () => {
    if (hiding) clearTimeout(hiding);
    hiding = null;
    if (document.hidden) hiding = setTimeout(shut, HIDDEN_MS);
    else if (!source && !retry) start();
  };
  const back = () => {
    if (connection.since() === null && !source) start();
  };

  document.addEventListener("visibilitychange", looked);
  const unsubscribe = connection.subscribe(back);
  start();
  return () => {
    closed = true;
    document.removeEventListener("visibilitychange", looked);
    unsubscribe();
    if (hiding) clearTimeout(hiding);
    shut();
  };
}
