// The live readings of one host: one stream for everything on its page.
import { useEffect, useMemo, useState } from "react";
import { openStream } from "../api/streams.ts";
import type { Host, HostLiveFrame } from "../api/types.ts";
import { withReading } from "./reading.ts";

type Take = (frame: HostLiveFrame) => void;

export interface Frames {
  /** Told the latest frame at once, where there is one, and then each as it comes, until the answer is called. */
  subscribe: (take: Take) => () => void;
}

export function useFrames(hostId: string): Frames {
  const [heard] = useState(makeFrames);
  useEffect(
    () => openStream(`/hosts/${encodeURIComponent(hostId)}/stream`, { on: { live: heard.tell } }),
    [hostId, heard],
  );
  return heard;
}

/** The host as it reads now: asked for every few seconds, and in between as the stream tells. */
export function useReading(host: Host, frames: Frames): Host {
  const [frame, setFrame] = useState<HostLiveFrame | null>(null);
  useEffect(() => frames.subscribe(setFrame), [frames]);
  return useMemo(() => (frame ? withReading(host, frame) : host), [host, frame]);
}

function makeFrames(): Frames & { tell: Take } {
  const takers = new Set<Take>();
  let last: HostLiveFrame | null = null;
  return {
    subscribe: (take) => {
      takers.add(take);
      if (last) take(last);
      return () => takers.delete(take);
    },
    tell: (frame) => {
      last = frame;
      for (const take of takers) take(frame);
    },
  };
}
