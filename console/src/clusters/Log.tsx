// A running program's output: follows the end, continues after an outage, draws only the lines in sight.
import { Button, Group, Text } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { ApiProblem, send } from "../api/client.ts";
import { connection } from "../api/connection.ts";
import { count } from "../parts/format.ts";
import { grown, type LogText, NO_LOG, shown } from "./logs.ts";

const LINE_PX = 19;
const RETRY_MS = 1_500;
/** One drawing per this many milliseconds, however fast the program talks. */
const DRAW_MS = 80;

interface Followed {
  log: LogText;
  cut: boolean;
  ended: boolean;
  problem: string | null;
}

/** Read a log from its start and keep reading; `over` says that nothing more will be written. */
function useLog(path: string, over: boolean): Followed {
  const [state, setState] = useState<Followed>({ log: NO_LOG, cut: false, ended: false, problem: null });
  const outage = useSyncExternalStore(connection.subscribe, connection.since);
  const finished = useRef(over);
  finished.current = over;
  const offset = useRef(0);
  const decoder = useRef(new TextDecoder());

  useEffect(() => {
    if (outage !== null) return;
    const stop = new AbortController();
    let retry: ReturnType<typeof setTimeout> | null = null;
    let pending = "";
    let drawing: ReturnType<typeof setTimeout> | null = null;
    const draw = () => {
      drawing = null;
      const text = pending;
      pending = "";
      setState((before) => ({ ...before, log: grown(before.log, text), problem: null }));
    };
    const read = async () => {
      const wasOver = finished.current;
      try {
        const answer = await send(
          "GET",
          path,
          { query: { follow: true, offset: offset.current }, signal: stop.signal },
          null,
        );
        if (answer.headers.get("X-Log-Truncated")?.toLowerCase() === "true")
          setState((before) => ({ ...before, cut: true }));
        const reader = answer.body?.getReader();
        for (;;) {
          const part = await reader?.read();
          if (!part || part.done) break;
          offset.current += part.value.length;
          pending += decoder.current.decode(part.value, { stream: true });
          drawing ??= setTimeout(draw, DRAW_MS);
        }
        if (wasOver) setState((before) => ({ ...before, ended: true, problem: null }));
      } catch (failure) {
        if (stop.signal.aborted) return;
        const problem =
          failure instanceof ApiProblem ? failure.problem.detail : "The stream broke off; going on from where it was.";
        setState((before) => ({ ...before, problem, ended: wasOver }));
      }
      if (!stop.signal.aborted && !wasOver) retry = setTimeout(() => void read(), RETRY_MS);
    };
    void read();
    return () => {
      stop.abort();
      if (retry) clearTimeout(retry);
      if (drawing) {
        clearTimeout(drawing);
        draw();
      }
    };
  }, [path, outage]);
  return state;
}

export function Log({ path, over, waiting }: { path: string; over: boolean; waiting: string }) {
  const { log, cut, ended, problem } = useLog(path, over);
  const scroller = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(true);
  const lines = log.open ? [...log.lines, shown(log.open)] : log.lines;
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  useEffect(() => {
    if (follow && lines.length) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines.length, virtual]);
  const scrolled = () => {
    const box = scroller.current;
    if (box) setFollow(box.scrollHeight - box.scrollTop - box.clientHeight < 3 * LINE_PX);
  };
  return (
    <>
      <div
        ref={scroller}
        className="wr-log"
        role="log"
        aria-label="Output"
        tabIndex={0}
        onScroll={scrolled}
        data-testid="log"
      >
        {log.dropped > 0 && <div className="wr-log-note">{count(log.dropped)} earlier lines are not shown</div>}
        {cut && (
          <div className="wr-log-note">The log passed its limit and was cut; what is missing was never kept.</div>
        )}
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              className="wr-log-line"
              style={{ position: "absolute", top: 0, left: 0, transform: `translateY(${item.start}px)` }}
            >
              {lines[item.index]}
            </div>
          ))}
        </div>
        {lines.length === 0 && !problem && (
          <div className="wr-log-note">{ended ? "The program wrote nothing." : waiting}</div>
        )}
        {problem && <div className="wr-log-note wr-err">{problem}</div>}
        {ended && lines.length > 0 && <div className="wr-log-note">end of the log</div>}
      </div>
      {!follow && (
        <Group justify="center" mt={-38} style={{ position: "relative" }}>
          <Button onClick={() => setFollow(true)}>Follow the end</Button>
        </Group>
      )}
      <Text className="wr-skip" aria-live="off">
        {lines.length} lines
      </Text>
    </>
  );
}
