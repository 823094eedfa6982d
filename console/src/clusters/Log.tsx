// A running program's output: follows the end, continues after an outage, draws only the lines in sight.
import { Button, Checkbox, Group, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { ApiProblem, send } from "../api/client.ts";
import { connection } from "../api/connection.ts";
import { count } from "../parts/format.ts";
import { DownloadIcon } from "../parts/icons.tsx";
import { ProblemNote } from "../parts/page.tsx";
import { keep } from "../tables/Csv.tsx";
import { fileName } from "../tables/csv.ts";
import {
  found,
  grown,
  type LogText,
  type Mark,
  markBefore,
  marked,
  markIn,
  NO_LOG,
  pageBefore,
  shown,
} from "./logs.ts";

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

const ask = (path: string, offset: number, signal: AbortSignal) =>
  send("GET", path, { query: { follow: true, offset }, signal }, null);

/** The page of lines before the line `first`, read again from a mark before it. */
async function olderLines(path: string, marks: readonly Mark[], first: number): Promise<readonly string[]> {
  const from = markBefore(marks, first);
  const stop = new AbortController();
  try {
    const reader = (await ask(path, from.bytes, stop.signal)).body?.getReader();
    const decoder = new TextDecoder();
    for (let read = NO_LOG; ; ) {
      const part = await reader?.read();
      if (!part || part.done) return [];
      read = grown(read, decoder.decode(part.value, { stream: true }));
      const page = pageBefore(read, from, first);
      if (page) return page;
    }
  } finally {
    stop.abort();
  }
}

/** Read a log from its start and keep reading; `over` says that nothing more will be written. */
function useLog(path: string, over: boolean): Followed & { older: (first: number) => Promise<readonly string[]> } {
  const [state, setState] = useState<Followed>({ log: NO_LOG, cut: false, ended: false, problem: null });
  const outage = useSyncExternalStore(connection.subscribe, connection.since);
  const finished = useRef(over);
  finished.current = over;
  const offset = useRef(0);
  const marks = useRef<Mark[]>([{ bytes: 0, lines: 0 }]);
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
        const answer = await ask(path, offset.current, stop.signal);
        if (answer.headers.get("X-Log-Truncated")?.toLowerCase() === "true")
          setState((before) => ({ ...before, cut: true }));
        const reader = answer.body?.getReader();
        for (;;) {
          const part = await reader?.read();
          if (!part || part.done) break;
          const mark = markIn(part.value, { bytes: offset.current, lines: marks.current.at(-1)!.lines });
          if (mark) marks.current.push(mark);
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
  return { ...state, older: (first) => olderLines(path, marks.current, first) };
}

interface LogProps {
  path: string;
  /** Of the file that a download is kept as. */
  name: string;
  over: boolean;
  /** While there is no output: what one can do. */
  waiting: string;
}

export function Log({ path, name, over, waiting }: LogProps) {
  const { log, cut, ended, problem, older } = useLog(path, over);
  const scroller = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(true);
  const [held, hold] = useState<LogText | null>(null);
  const [wrap, setWrap] = useState(false);
  const [text, search] = useState("");
  const shownLog = held ?? log;
  const all = useMemo(() => (shownLog.open ? [...shownLog.lines, shown(shownLog.open)] : shownLog.lines), [shownLog]);
  const lines = useMemo(() => found(all, text), [all, text]);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  useEffect(() => {
    if (follow && lines.length) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines.length, virtual]);
  const load = useMutation({
    mutationFn: async (from: LogText) => ({ from, page: await older(from.dropped) }),
    onSuccess: ({ from, page }) => {
      hold({ ...from, lines: [...page, ...from.lines], dropped: from.dropped - page.length });
      // What was at the top stays there.
      requestAnimationFrame(() => virtual.scrollToIndex(page.length, { align: "start" }));
    },
  });
  const loadOlder = () => {
    hold(shownLog);
    setFollow(false);
    load.mutate(shownLog);
  };
  const scrolled = () => {
    const box = scroller.current;
    if (box) setFollow(box.scrollHeight - box.scrollTop - box.clientHeight < 3 * LINE_PX);
  };
  const later = held ? log.lines.length + log.dropped - held.lines.length - held.dropped : 0;
  if (all.length === 0 && !problem)
    return (
      <div className="wr-log wr-log-empty" role="log" aria-label="Output" data-testid="log">
        <div className="wr-log-note">{ended ? "The program wrote nothing." : waiting}</div>
      </div>
    );
  return (
    <>
      <Group gap={6} className="wr-tools wr-no-print">
        <TextInput
          size="xs"
          aria-label="Search the output"
          placeholder="Search the output"
          value={text}
          onChange={(event) => search(event.currentTarget.value)}
        />
        <Text size="xs" className="wr-quiet" role={text ? "status" : undefined}>
          {text ? `${count(lines.length)} of ${count(all.length)} lines` : `${count(all.length)} lines`}
          {later > 0 && `; ${count(later)} more since it was paused`}
        </Text>
        <Group gap={6} ml="auto">
          <Checkbox
            size="xs"
            label="Wrap"
            checked={wrap}
            onChange={(event) => {
              setWrap(event.currentTarget.checked);
              virtual.measure(); // lines have other heights now
            }}
          />
          {(!ended || held) && (
            <Button size="compact-sm" variant="default" onClick={() => hold(held ? null : log)}>
              {held ? "Continue" : "Pause"}
            </Button>
          )}
          <Download path={path} name={name} />
        </Group>
      </Group>
      <div
        ref={scroller}
        className={wrap ? "wr-log wr-log-wrap" : "wr-log"}
        role="log"
        aria-label="Output"
        tabIndex={0}
        onScroll={scrolled}
        data-testid="log"
      >
        {shownLog.dropped > 0 && (
          <div className="wr-log-note">
            <Button size="compact-xs" variant="default" loading={load.isPending} onClick={loadOlder}>
              Load older
            </Button>{" "}
            {count(shownLog.dropped)} earlier lines are not shown.{" "}
            {load.error && <span className="wr-err">They could not be read: {load.error.message}</span>}
          </div>
        )}
        {cut && (
          <div className="wr-log-note">The log passed its limit and was cut; what is missing was never kept.</div>
        )}
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={wrap ? virtual.measureElement : undefined}
              data-index={item.index}
              className="wr-log-line"
              style={{ position: "absolute", top: 0, left: 0, transform: `translateY(${item.start}px)` }}
            >
              <Marked line={lines[item.index] ?? ""} text={text} />
            </div>
          ))}
        </div>
        {all.length > 0 && lines.length === 0 && <div className="wr-log-note">No line has this text.</div>}
        {problem && <div className="wr-log-note wr-err">{problem}</div>}
        {ended && all.length > 0 && <div className="wr-log-note">end of the log</div>}
      </div>
      {!follow && (
        <Group justify="center" mt={-38} style={{ position: "relative" }}>
          <Button onClick={() => setFollow(true)}>Follow the end</Button>
        </Group>
      )}
    </>
  );
}

/** A line with the searched text marked in it. */
function Marked({ line, text }: { line: string; text: string }) {
  return marked(line, text).map((part, index) => (index % 2 ? <mark key={index}>{part}</mark> : part));
}

/** The whole log as a file. */
function Download({ path, name }: { path: string; name: string }) {
  const save = useMutation({
    mutationFn: async () => {
      const answer = await send("GET", path, { query: { follow: false } }, null);
      keep(await answer.blob(), fileName(name, "log"));
    },
  });
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<DownloadIcon size={12} />}
        loading={save.isPending}
        onClick={() => save.mutate()}
      >
        Download
      </Button>
      {save.error && <ProblemNote error={save.error} />}
    </>
  );
}
