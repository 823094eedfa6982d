// The words between a terminal in the browser and the Master. Pure.
import { wholePath } from "../api/paths.ts";
import { quoted } from "../parts/shell.ts";

/** Of one message; the Master takes twice as much. */
export const PIECE_BYTES = 32_768;
/** The Master is told after so much output that it was shown; it waits beyond a MiB. */
export const TAKEN_BYTES = 131_072;

/** The address of the WebSocket, at the same origin as the page. */
export function socketUrl(page: string, clusterId: string): string {
  const url = new URL(wholePath(`/clusters/${encodeURIComponent(clusterId)}/terminal`), page);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** A paste in messages that the Master takes. */
export function pieces(data: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const found: Uint8Array<ArrayBuffer>[] = [];
  for (let start = 0; start < data.length; start += PIECE_BYTES) found.push(data.subarray(start, start + PIECE_BYTES));
  return found;
}

/** What the Master itself says: that the shell runs, or why it is over. */
export interface Said {
  open?: boolean;
  ended?: string;
  exit_code?: number | null;
}

export function readSaid(text: string): Said {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
}

/** Why it is over, in a sentence. */
export function endedText(said: Said | null): string {
  if (said?.ended === undefined) return "The connection was lost.";
  return said.exit_code ? `${said.ended} Exit code ${said.exit_code}.` : said.ended;
}

interface Named {
  id: string;
  name: string;
  request: { ports: number[] };
  urls: Record<string, string>;
}

/** The commands by which VS Code opens a machine that is logged in to by SSH. */
export function editorLines({ id, name }: Pick<Named, "id" | "name">): string {
  const host = /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) ? name : id;
  return `windrow cluster ssh --config ${quoted(host)} >> ~/.ssh/config\ncode --remote ssh-remote+${host}`;
}

/** The ports that were asked for and have no address of their own. */
export const forwardedPorts = ({ request, urls }: Pick<Named, "request" | "urls">): number[] =>
  request.ports.filter((port) => !(String(port) in urls));

/** Colours of the two schemes; the sixteen of programs are adjusted by the terminal until they can be read. */
export const THEMES = {
  light: {
    background: "#ffffff",
    foreground: "#1b2426",
    cursor: "#0f766a",
    cursorAccent: "#ffffff",
    selectionBackground: "#b1dcd5",
  },
  dark: {
    background: "#10171a",
    foreground: "#dbe4e5",
    cursor: "#62bbac",
    cursorAccent: "#10171a",
    selectionBackground: "#2f5f58",
  },
} as const;
