// One command inside a cluster, as a stream of its output and its end.
import { send } from "./client.ts";

interface ExecLine {
  stream?: 1 | 2;
  data?: string;
  exit_code?: number;
  error?: { detail?: string; title?: string; code?: string };
}

export interface ExecHandlers {
  text: (stream: 1 | 2, text: string) => void;
}

/** Runs it and answers with its exit code; throws an ApiProblem or an Error in the API's words. */
export async function execInside(
  clusterId: string,
  argv: readonly string[],
  handlers: ExecHandlers,
  signal: AbortSignal,
): Promise<number> {
  const answer = await send(
    "POST",
    `/clusters/${encodeURIComponent(clusterId)}/exec`,
    { body: { argv }, signal },
    null,
  );
  const decoders = { 1: new TextDecoder(), 2: new TextDecoder() };
  let code: number | null = null;
  const take = (raw: string) => {
    if (!raw.trim()) return;
    const line = JSON.parse(raw) as ExecLine;
    if (line.error)
      throw new Error(line.error.detail ?? line.error.title ?? line.error.code ?? "The command could not be run.");
    if (line.exit_code !== undefined) code = line.exit_code;
    if (line.data !== undefined)
      handlers.text(line.stream ?? 1, decoders[line.stream ?? 1].decode(bytesOf(line.data), { stream: true }));
  };
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const pieces = (rest + value).split("\n");
    rest = pieces.pop() ?? "";
    pieces.forEach(take);
  }
  take(rest);
  if (code === null) throw new Error("The stream ended before the command did; whether it still runs is not known.");
  return code;
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
