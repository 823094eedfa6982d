// A terminal in the machine: xterm.js over a WebSocket of the Master. Loaded when one is opened.
import "@xterm/xterm/css/xterm.css";
import { Button, Checkbox, Group, NativeSelect, Stack, Text, useComputedColorScheme } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef, useState } from "react";
import { post } from "../api/client.ts";
import type { TerminalTicket } from "../api/types.ts";
import { nonce } from "../app/nonce.ts";
import { theme } from "../app/theme.ts";
import { ProblemNote } from "../parts/page.tsx";
import { endedText, pieces, readSaid, type Said, socketUrl, TAKEN_BYTES, THEMES } from "./terminal.ts";

const LEAVES = "F6";
/** Only style elements with this page's nonce are applied, and xterm.js gives its own none. */
const create: (tag: string, options?: ElementCreationOptions) => HTMLElement = document.createElement.bind(document);
Object.assign(document, {
  createElement: (tag: string, options?: ElementCreationOptions) => {
    const made = create(tag, options);
    if (made instanceof HTMLStyleElement) made.nonce = nonce ?? "";
    return made;
  },
});

/** It writes the colours of programs as attributes, which this page's policy refuses; set one by one they are fine. */
HTMLSpanElement.prototype.setAttribute = function setAttribute(name: string, value: string) {
  if (name === "style") this.style.cssText = value;
  else HTMLElement.prototype.setAttribute.call(this, name, value);
};

function made(screenReaderMode: boolean): Terminal {
  return new Terminal({
    fontFamily: theme.fontFamilyMonospace ?? "monospace",
    fontSize: 13,
    minimumContrastRatio: 4.5,
    scrollback: 5_000,
    screenReaderMode,
  });
}

/** Asks for a ticket, opens the socket and joins both; the answer closes it. */
function joined(term: Terminal, clusterId: string, rank: number, on: (state: State) => void): () => void {
  let socket: WebSocket | null = null;
  let closed = false;
  let last: Said | null = null;
  let shown = 0;
  const encoder = new TextEncoder();
  const send = (data: string | Uint8Array<ArrayBuffer>) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(data);
  };
  const size = () => send(JSON.stringify({ columns: term.cols, rows: term.rows }));
  const took = (count: number) => {
    shown += count;
    if (shown < TAKEN_BYTES) return;
    send(JSON.stringify({ taken: shown }));
    shown = 0;
  };
  const listeners = [
    term.onData((text) => {
      for (const piece of pieces(encoder.encode(text))) send(piece);
    }),
    term.onBinary((text) => send(Uint8Array.from(text, (char) => char.charCodeAt(0)))),
    term.onResize(size),
  ];
  const open = (ticket: TerminalTicket) => {
    if (closed) return;
    socket = new WebSocket(socketUrl(window.location.href, clusterId), [ticket.protocol, ticket.ticket]);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data !== "string") {
        term.write(new Uint8Array(data), () => took(data.byteLength));
        return;
      }
      last = readSaid(data);
      if (!last.open) return;
      size();
      on({ open: true });
    };
    socket.onclose = () => {
      if (!closed) on({ open: false, ended: endedText(last) });
    };
  };
  post<TerminalTicket>(`/clusters/${encodeURIComponent(clusterId)}/terminal`, { rank }).then(
    open,
    (error) => closed || on({ open: false, error }),
  );
  return () => {
    closed = true;
    for (const one of listeners) one.dispose();
    socket?.close();
  };
}

interface State {
  open: boolean;
  ended?: string;
  error?: unknown;
}

export function TerminalView({ clusterId, hosts }: { clusterId: string; hosts: number }) {
  const place = useRef<HTMLDivElement>(null);
  const [term, setTerm] = useState<Terminal | null>(null);
  const [attempt, setAttempt] = useState(0);
  const [rank, setRank] = useState(0);
  const [state, setState] = useState<State>({ open: false });
  const [reads, setReads] = useLocalStorage({ key: "windrow.terminal.reader", defaultValue: false });
  const scheme = useComputedColorScheme("light");

  useEffect(() => {
    if (place.current === null) return;
    const fresh = made(false);
    const fit = new FitAddon();
    fresh.loadAddon(fit);
    fresh.attachCustomKeyEventHandler((event) => {
      const copies = event.ctrlKey && !event.shiftKey && event.code === "KeyC" && fresh.hasSelection();
      if (event.type === "keydown" && event.shiftKey && event.key === LEAVES) {
        fresh.blur();
        place.current?.focus();
        event.preventDefault();
        return false;
      }
      return !copies; // left to the browser, which copies
    });
    fresh.open(place.current);
    const sized = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) fit.fit();
    });
    sized.observe(place.current);
    setTerm(fresh);
    return () => {
      sized.disconnect();
      fresh.dispose();
    };
  }, []);

  useEffect(() => {
    if (term) term.options.theme = THEMES[scheme];
  }, [term, scheme]);
  useEffect(() => {
    if (term) term.options.screenReaderMode = reads;
  }, [term, reads]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt is a connection of its own
  useEffect(() => {
    if (term === null) return undefined;
    setState({ open: false });
    return joined(term, clusterId, rank, (now) => {
      setState(now);
      if (now.open) term.focus();
    });
  }, [term, clusterId, rank, attempt]);

  const again = () => {
    term?.reset();
    setAttempt((before) => before + 1);
  };
  const over = state.ended !== undefined || state.error !== undefined;
  return (
    <Stack gap="xs" p="md">
      <Group justify="space-between" gap="xs">
        <Text size="sm" role="status" data-testid="terminal-state">
          {state.open ? "Connected" : (state.ended ?? (over ? "Not connected" : "Connecting…"))}
        </Text>
        <Group gap="sm">
          {hosts > 1 && (
            <NativeSelect
              aria-label="Member"
              size="xs"
              value={String(rank)}
              data={Array.from({ length: hosts }, (_, one) => ({ value: String(one), label: `Rank ${one}` }))}
              onChange={(event) => setRank(Number(event.currentTarget.value))}
            />
          )}
          {over && <Button onClick={again}>Reconnect</Button>}
        </Group>
      </Group>
      {state.error !== undefined && <ProblemNote error={state.error} />}
      <div ref={place} className="wr-terminal" tabIndex={-1} data-testid="terminal" />
      <Group justify="space-between" gap="xs">
        <Text size="xs" className="wr-quiet">
          Shift+F6 leaves the terminal. Ctrl+C copies what is selected, and interrupts where nothing is. The shell goes
          on in the other tabs of this machine; leaving its page ends it and what runs in it.
        </Text>
        <Checkbox
          size="xs"
          label="Screen reader"
          checked={reads}
          onChange={(event) => setReads(event.currentTarget.checked)}
        />
      </Group>
    </Stack>
  );
}
