// The command that joins a host. Pure.
import type { JoinTokenMade } from "../api/types.ts";

/** True for a text that `--access` of the installer and of `windrow-agent join` takes: a shell reads one word. */
export function isPlace(text: string): boolean {
  return /^dns:[A-Za-z0-9.-]+$/.test(text) || /^https:\/\/[A-Za-z0-9][A-Za-z0-9:/.%_~-]*$/.test(text);
}

/** True where the Master's line serves its own machine alone: no other one reaches this address. */
export const isHereOnly = (made: Pick<JoinTokenMade, "command">): boolean =>
  made.command?.includes("--this-machine-only") ?? false;

/**
 * The line to paste on a host. The Master's own carries the token where it serves an installer; otherwise the token
 * goes into a file first. place: where to look for an Access, as `isPlace` allows it; empty for none.
 */
export function joinLine(made: Pick<JoinTokenMade, "command" | "join_token">, origin: string, place: string): string {
  const more = place === "" ? "" : ` --access ${place}`;
  if (made.command?.includes(made.join_token)) return made.command + more;
  const command = (made.command ?? `windrow-agent join ${origin} --token-file FILE`).replace(/\bFILE\b/, "join-token");
  return `(umask 077; printf '%s' '${made.join_token}' > join-token)\n${command}${more}`;
}
