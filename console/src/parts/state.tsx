// States, badges and times: a shape and a word first, colour second.
import { Tooltip } from "@mantine/core";
import { useSyncExternalStore } from "react";
import { exact, relative, words } from "./format.ts";
import { type Tone, toneOf } from "./states.ts";

export function Shape({ tone }: { tone: Tone }) {
  return (
    <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      {tone === "ok" && <circle cx="5" cy="5" r="4" fill="currentColor" />}
      {tone === "busy" && (
        <>
          <circle cx="5" cy="5" r="3.6" fill="none" stroke="currentColor" strokeWidth="1.5" />
          <path d="M5 1.4a3.6 3.6 0 0 1 0 7.2z" fill="currentColor" />
        </>
      )}
      {tone === "warn" && <path d="M5 .8 9.6 9H.4z" fill="currentColor" />}
      {tone === "bad" && (
        <path d="M1.5 1.5l7 7M8.5 1.5l-7 7" stroke="currentColor" strokeWidth="2.2" strokeLinecap="round" />
      )}
      {tone === "off" && <circle cx="5" cy="5" r="3.6" fill="none" stroke="currentColor" strokeWidth="1.5" />}
    </svg>
  );
}

export function State({
  state,
  tone,
  reason,
}: {
  state: string | null | undefined;
  tone?: Tone;
  reason?: string | null;
}) {
  const shown = (
    <span className={`wr-state wr-tone-${tone ?? toneOf(state)}`} tabIndex={reason ? 0 : undefined}>
      <Shape tone={tone ?? toneOf(state)} />
      <span>{words(state)}</span>
    </span>
  );
  return reason ? (
    <Tooltip label={reason} multiline maw={360}>
      {shown}
    </Tooltip>
  ) : (
    shown
  );
}

export function Simulated() {
  return (
    <span className="wr-mark" title="A simulated host: its readings and its work are made up.">
      simulated
    </span>
  );
}

export function TestMoney() {
  return (
    <span className="wr-mark" title="Test credits: they buy nothing outside this installation.">
      test money
    </span>
  );
}

// One clock for all relative times of the page.
const tickers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let now = Date.now();

function subscribeTick(listener: () => void): () => void {
  tickers.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const tell of tickers) tell();
  }, 1000);
  return () => {
    tickers.delete(listener);
    if (tickers.size === 0 && timer) {
      clearInterval(timer);
      timer = null;
    }
  };
}

export function useNow(): number {
  return useSyncExternalStore(subscribeTick, () => now);
}

/** A relative time with the exact one in its tooltip. */
export function When({ at }: { at: string | null | undefined }) {
  const text = useSyncExternalStore(subscribeTick, () => relative(at, Math.max(now, 0)));
  return at ? (
    <time dateTime={at} title={exact(at)}>
      {text}
    </time>
  ) : (
    text
  );
}

export function Meter({ ratio, text, label }: { ratio: number | null; text: string; label: string }) {
  return (
    <span className="wr-meter">
      {ratio === null ? (
        <span className="wr-meter-bar" aria-hidden="true" />
      ) : (
        <span
          className="wr-meter-bar"
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(ratio * 100)}
          aria-valuetext={text}
        >
          <i style={{ transform: `scaleX(${Math.min(1, Math.max(0, ratio))})` }} />
        </span>
      )}
      <span className="wr-meter-text">{text}</span>
    </span>
  );
}
