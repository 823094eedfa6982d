// Runs one command inside a cluster and shows its output and exit code.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { execInside } from "../api/exec.ts";
import { ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { grown, type LogText, NO_LOG, shown } from "./logs.ts";
import { splitCommand } from "./request.ts";

interface Output {
  argv: string;
  log: LogText;
  code: number | null;
  error: unknown;
}

/** The words as far as they can be split: an open quote has none yet. */
function wordsOf(line: string): string[] {
  try {
    return splitCommand(line);
  } catch {
    return [];
  }
}

/** word: how a command line names it. */
export function Exec({ clusterId, word }: { clusterId: string; word: string }) {
  const [line, setLine] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [output, setOutput] = useState<Output | null>(null);
  const running = useRef<AbortController | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => () => running.current?.abort(), []);

  const run = async () => {
    let argv: string[];
    try {
      argv = splitCommand(line);
      setFault(null);
    } catch (failure) {
      setFault((failure as Error).message);
      return;
    }
    if (argv.length === 0) return;
    const stop = new AbortController();
    running.current = stop;
    setBusy(true);
    setOutput({ argv: line, log: NO_LOG, code: null, error: null });
    const text = (_: 1 | 2, said: string) =>
      setOutput((before) => before && { ...before, log: grown(before.log, said) });
    try {
      const code = await execInside(clusterId, argv, { text }, stop.signal);
      setOutput((before) => before && { ...before, code });
    } catch (error) {
      setOutput(
        (before) =>
          before && {
            ...before,
            error: stop.signal.aborted ? new Error("You stopped watching; the command may still run.") : error,
          },
      );
    } finally {
      setBusy(false);
    }
  };
  const asked = wordsOf(line);
  const lines = output ? (output.log.open ? [...output.log.lines, shown(output.log.open)] : output.log.lines) : [];
  return (
    <Stack gap="sm" p="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) void run();
        }}
      >
        <Group gap="xs" align="flex-start">
          <TextInput
            flex={1}
            aria-label="Command"
            placeholder="ls -la"
            value={line}
            error={fault}
            onChange={(event) => setLine(event.currentTarget.value)}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          />
          {busy ? (
            <Button size="sm" variant="default" onClick={() => running.current?.abort()}>
              Stop watching
            </Button>
          ) : (
            <Button size="sm" type="submit" disabled={!line.trim()}>
              Run
            </Button>
          )}
        </Group>
      </form>
      {asked.length > 0 && (
        <Same
          method="POST"
          path={`/clusters/${clusterId}/exec`}
          body={{ argv: asked }}
          command={`windrow cluster exec ${word} -- ${asked.map(quoted).join(" ")}`}
        />
      )}
      {output && (
        <>
          <pre
            className="wr-log"
            style={{ margin: 0, maxHeight: 320, borderRadius: 6, padding: "8px 14px" }}
            tabIndex={0}
            role="region"
            aria-label="Output of the command"
            data-testid="exec"
          >
            {lines.slice(-1000).join("\n") || (busy ? "…" : "(no output)")}
          </pre>
          <Text
            size="sm"
            role="status"
            className={output.code === 0 || output.code === null ? "wr-quiet" : "wr-tone-bad"}
          >
            {output.code !== null ? `Exit code ${output.code}` : busy ? "Running…" : ""}
          </Text>
          {output.error ? <ProblemNote error={output.error} /> : null}
        </>
      )}
    </Stack>
  );
}
