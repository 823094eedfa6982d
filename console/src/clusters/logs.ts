// A program's output as lines: removes escape sequences, obeys carriage returns, bounds the length. Pure.
import { plain } from "../parts/format.ts";

/** More than anybody scrolls; the whole log is in the download. */
export const LINES_MOST = 10_000;
const LINE_MOST = 4_000;
/** Older lines that are read at a time. */
const PAGE_LINES = 2_000;
const NEWLINE = 0x0a;

// Colours, cursor moves, titles: ESC [ … letter, ESC ] … BEL or ESC \, and the two-byte ones.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

export interface LogText {
  readonly lines: readonly string[];
  /** The text after the last newline. */
  readonly open: string;
  /** The number of lines that were dropped at the top. */
  readonly dropped: number;
}

export const NO_LOG: LogText = { lines: [], open: "", dropped: 0 };

export function grown(log: LogText, text: string): LogText {
  const pieces = (log.open + text).split("\n");
  const open = pieces.pop() ?? "";
  const lines = pieces.length ? [...log.lines, ...pieces.map(shown)] : log.lines;
  const extra = Math.max(0, lines.length - LINES_MOST);
  return {
    lines: extra ? lines.slice(extra) : lines,
    open: open.length > LINE_MOST * 4 ? open.slice(-LINE_MOST) : open,
    dropped: log.dropped + extra,
  };
}

/** Where a line of the log begins. lines: the number of lines before it. */
export interface Mark {
  bytes: number;
  lines: number;
}

/** The start of the last line that begins in a piece which itself begins at these bytes and lines; null: none does. */
export function markIn(piece: Uint8Array, at: Mark): Mark | null {
  const last = piece.lastIndexOf(NEWLINE);
  if (last < 0) return null;
  let lines = at.lines;
  for (let index = piece.indexOf(NEWLINE); index >= 0; index = piece.indexOf(NEWLINE, index + 1)) lines += 1;
  return { bytes: at.bytes + last + 1, lines };
}

/** The mark from which to read a page of lines before the line of this number. */
export const markBefore = (marks: readonly Mark[], first: number): Mark =>
  marks.findLast((one) => one.lines <= first - PAGE_LINES) ?? { bytes: 0, lines: 0 };

/** The page before the line `first` in what was read from a mark on; null: more has to be read. */
export function pageBefore(read: LogText, from: Mark, first: number): readonly string[] | null {
  const beyond = from.lines + read.dropped + read.lines.length - first;
  return beyond < 0 ? null : read.lines.slice(0, read.lines.length - beyond).slice(-PAGE_LINES);
}

/** One line as a terminal would leave it: what a carriage return overwrote is gone. */
export function shown(raw: string): string {
  const line = raw.replace(/\r$/, "").replace(ESCAPES, "");
  const last = line.slice(line.lastIndexOf("\r") + 1);
  const cut = last.length > LINE_MOST ? `${last.slice(0, LINE_MOST)} … (line cut)` : last;
  return cut ? plain(cut.replace(/\t/g, "    ")) : "";
}

/** The lines that have this text, in capitals or not; all of them while nothing is searched. */
export function found(lines: readonly string[], text: string): readonly string[] {
  const wanted = text.toLowerCase();
  return wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines;
}

/** A line in pieces: every second one is the searched text. */
export function marked(line: string, text: string): string[] {
  if (!text) return [line];
  const [low, wanted] = [line.toLowerCase(), text.toLowerCase()];
  const parts: string[] = [];
  let at = 0;
  for (let next = low.indexOf(wanted); next >= 0; next = low.indexOf(wanted, at)) {
    parts.push(line.slice(at, next), line.slice(next, next + text.length));
    at = next + text.length;
  }
  return [...parts, line.slice(at)];
}
