// The ignore files of a folder, `.gitignore` and `.windrowignore`, by git's rules, as the command reads them. Pure.

/** Which of them has the last word, and names with `!` what is sent in spite of its look. */
const OWN = ".windrowignore";
const GIT = ".gitignore";
export const IGNORE_FILES: readonly string[] = [OWN, GIT];

interface Rule {
  fits: RegExp;
  isWish: boolean;
  foldersOnly: boolean;
}

/** Of one file. base: its folder below the root, with a slash at its end, empty for the root. */
interface Rules {
  base: string;
  rules: readonly Rule[];
}

export type Verdict = (name: string, isFolder: boolean) => "out" | "wished" | null;

/** texts: of the ignore files, by name below the root. */
export function ignoresOf(texts: ReadonlyMap<string, string>): Verdict {
  const of = (file: string): Rules[] =>
    [...texts]
      .filter(([name]) => name.split("/").at(-1) === file)
      .map(([name, text]) => ({ base: name.slice(0, -file.length), rules: rulesOf(text) }))
      .sort((one, other) => other.base.length - one.base.length); // the nearest decides
  const files = IGNORE_FILES.map((file) => [file, of(file)] as const);
  return (name, isFolder) => {
    for (const [file, all] of files) {
      const rule = decides(all, name, isFolder);
      if (rule) return !rule.isWish ? "out" : file === OWN ? "wished" : null;
    }
    return null;
  };
}

function decides(all: readonly Rules[], name: string, isFolder: boolean): Rule | undefined {
  for (const { base, rules } of all) {
    if (!name.startsWith(base)) continue;
    const below = name.slice(base.length);
    const found = rules.findLast((rule) => (isFolder || !rule.foldersOnly) && rule.fits.test(below));
    if (found) return found;
  }
  return undefined;
}

/** The lines of a file; the last one that fits a name decides. */
export function rulesOf(text: string): Rule[] {
  return text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .map((line) => line.replace(/(?<!\\)\s+$/, ""))
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => {
      const isWish = line.startsWith("!");
      const pattern = line.slice(isWish ? 1 : 0);
      const foldersOnly = pattern.endsWith("/");
      return { fits: regexOf(foldersOnly ? pattern.slice(0, -1) : pattern), isWish, foldersOnly };
    });
}

const NEVER = /(?!)/;

/** A pattern without a slash fits at any depth. */
function regexOf(pattern: string): RegExp {
  const isAnchored = pattern.includes("/");
  const body = pattern.replace(/^\//, "");
  let source = "";
  for (let at = 0; at < body.length; ) {
    const rest = body.slice(at);
    const [word, meant] = piece(rest, at === 0 || body[at - 1] === "/");
    source += meant;
    at += word;
  }
  try {
    return new RegExp(`^${isAnchored ? "" : "(?:.*/)?"}${source}$`, "s");
  } catch {
    return NEVER; // such as [b-a], which git never meets either
  }
}

/** The first piece of a pattern: how long it is, and the same as a regular expression. begins: a name begins here. */
function piece(rest: string, begins: boolean): readonly [number, string] {
  if (begins && rest.startsWith("**/")) return [3, "(?:.*/)?"];
  if (begins && rest === "**") return [2, ".+"];
  const stars = /^\*+/.exec(rest);
  if (stars) return [stars[0].length, "[^/]*"];
  if (rest[0] === "?") return [1, "[^/]"];
  const set = /^\[([!^]?)(\]?[^\]]*)\]/.exec(rest);
  if (set) return [set[0].length, `(?!/)[${set[1] ? "^" : ""}${set[2]!.replace(/[\\\][]/g, "\\$&")}]`];
  if (rest[0] === "\\" && rest.length > 1) return [2, literal(rest[1]!)];
  return [1, literal(rest[0]!)];
}

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
