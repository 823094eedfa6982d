// Which files of a folder are sent with a job, by the rules of the command: docs/files.md. Pure.
import { count } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";
import { ignoresOf } from "./ignoring.ts";
import * as names from "./names.ts";

/** What stays here, by reason; folders end with a slash. */
export interface Left {
  secrets: string[];
  ignored: string[];
  environments: string[];
  /** Names that are longer than a host takes. */
  long: string[];
}

/** A wildcard is a star. */
const fits = (pattern: string) => {
  const source = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${source.join(".*")}$`, "s");
};
const SECRETS = names.SECRET_NAMES.map(fits);
const OPEN = names.OPEN_NAMES.map(fits);
const KEY = new RegExp(names.SECRET_TEXT, "im");

/** True for a file or folder of this name that is never sent. */
export const isLeftBehind = (part: string): boolean =>
  names.LEFT_BEHIND.includes(part) || part.startsWith(".windrow-part-");

/** True for a file or folder that is a secret by its name. */
export function isSecretName(name: string, isFolder: boolean): boolean {
  const path = `/${name.toLowerCase()}`;
  const last = path.slice(path.lastIndexOf("/") + 1);
  if (names.SECRET_PATHS.some((one) => path.endsWith(`/${one}`))) return true;
  if (isFolder) return names.SECRET_FOLDERS.includes(last);
  return !OPEN.some((one) => one.test(last)) && SECRETS.some((one) => one.test(last));
}

const isLong = (name: string) => new TextEncoder().encode(name).length > names.NAME_BYTES_MAX;

/** True for a file that begins so and holds a private key. text: its bytes, a character each. */
export const isSecretText = (text: string): boolean => KEY.test(text);

/**
 * The names that are sent, and the others. all: of files, below the folder; texts: of its ignore files. `wished`: those
 * that an ignore file asks for in spite of their look.
 */
export function sift(
  all: readonly string[],
  texts: ReadonlyMap<string, string>,
): { sent: string[]; wished: Set<string>; left: Left } {
  const left: Left = { secrets: [], ignored: [], environments: [], long: [] };
  const verdict = ignoresOf(texts);
  const wished = new Set<string>();
  const environments = new Set(
    all
      .filter((name) => name.endsWith(`/${names.ENVIRONMENT_MARK}`))
      .map((name) => name.slice(0, name.lastIndexOf("/"))),
  );
  const goes = (name: string, isFolder: boolean): boolean => {
    if (isLeftBehind(name.slice(name.lastIndexOf("/") + 1))) return false;
    const said = verdict(name, isFolder);
    const to =
      said === "out"
        ? left.ignored
        : said === null && isSecretName(name, isFolder)
          ? left.secrets
          : isFolder && environments.has(name)
            ? left.environments
            : !isFolder && isLong(name)
              ? left.long
              : null;
    to?.push(isFolder ? `${name}/` : name);
    if (to === null && said === "wished") wished.add(name);
    return to === null;
  };
  const folders = new Map<string, boolean>([["", true]]);
  const folderGoes = (folder: string): boolean => {
    const known = folders.get(folder);
    if (known !== undefined) return known;
    const found = folderGoes(folder.slice(0, Math.max(0, folder.lastIndexOf("/")))) && goes(folder, true);
    folders.set(folder, found);
    return found;
  };
  const sent = all.filter((name) => folderGoes(name.slice(0, Math.max(0, name.lastIndexOf("/")))) && goes(name, false));
  return { sent, wished, left };
}

/** Lines for a person, one for each reason. */
export function leftLines(left: Left): string[] {
  const said: readonly (readonly [string, readonly string[]])[] = [
    ["Left out, as they look like secrets", left.secrets],
    ["Left out by .gitignore and .windrowignore", left.ignored],
    ["Left out, as they are Python environments", left.environments],
    [`Left out, as their names have more than ${count(names.NAME_BYTES_MAX)} bytes`, left.long.map(short)],
  ];
  return said.filter(([, of]) => of.length > 0).map(([why, of]) => `${why}: ${some(of)}`);
}

const SHOWN = 8;
const short = (name: string) => `${name.slice(0, 40)}…${name.slice(-20)}`;

const some = (of: readonly string[]) =>
  of.slice(0, SHOWN).join(", ") + (of.length > SHOWN ? ` and ${of.length - SHOWN} more` : "");

/** Programs that a folder usually begins with. */
const FIRST: readonly string[] = ["main.py", "train.py", "app.py"];
const RUNNERS: readonly (readonly [end: string, command: string, packages: string])[] = [
  [".py", "python", ""],
  [".sh", "sh", ""],
  // It runs from its first to its last cell, and keeps what they print.
  [".ipynb", "python -m nbconvert --to notebook --execute --inplace", "nbconvert\nipykernel"],
];

/** A command for a folder with these files, and the packages that it needs; empty where none suggests itself. */
export function commandFor(sent: readonly string[]): { command: string; packages: string } {
  const top = sent.filter((name) => !name.includes("/"));
  for (const [end, command, packages] of RUNNERS) {
    const found = top.filter((name) => name.endsWith(end));
    const program = FIRST.find((name) => found.includes(name)) ?? (found.length === 1 ? found[0] : undefined);
    if (program) return { command: `${command} ${quoted(program)}`, packages };
  }
  return { command: "", packages: "" };
}
