// The events that the person may hear, by one stream for all parts of the page that listen to the same ones.
import { openStream, type StreamHandlers } from "./streams.ts";
import type { EventRow } from "./types.ts";

interface Listener {
  heard: (event: EventRow) => void;
  /** Each time the stream stands again: read what was missed. */
  opened: () => void;
}

interface Feed {
  listeners: Set<Listener>;
  stands: boolean;
  close: () => void;
}

const feeds = new Map<string, Feed>();

/** Listen to all events, or to those of one subject; the answer ends it. */
export function onEvents(subject: string | undefined, listener: Listener): () => void {
  const key = subject ?? "";
  const feed = feeds.get(key) ?? begun(subject);
  feeds.set(key, feed);
  feed.listeners.add(listener);
  if (feed.stands) listener.opened();
  return () => {
    feed.listeners.delete(listener);
    if (feed.listeners.size > 0 || feeds.get(key) !== feed) return;
    feeds.delete(key);
    feed.close();
  };
}

function begun(subject: string | undefined): Feed {
  const feed: Feed = { listeners: new Set(), stands: false, close: () => undefined };
  const event = (row: EventRow) => {
    for (const one of feed.listeners) one.heard(row);
  };
  const handlers: StreamHandlers = {
    on: { event, message: event },
    opened: () => {
      feed.stands = true;
      for (const one of feed.listeners) one.opened();
    },
    failed: () => {
      feed.stands = false;
    },
  };
  feed.close = openStream("/events/stream", handlers, () => ({ subject }));
  return feed;
}
