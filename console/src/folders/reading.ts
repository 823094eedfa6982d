// A folder or some files that were dropped on the page or chosen in it, and what of them is sent.
import { count } from "../parts/format.ts";
import { IGNORE_FILES } from "./ignoring.ts";
import { FILES_MAX, FOLDER_BYTES_MAX, SECRET_LOOK_BYTES } from "./names.ts";
import { isLeftBehind, isSecretText, type Left, sift } from "./sifting.ts";

/** name: below the folder. */
export interface Picked {
  name: string;
  file: Blob & { lastModified?: number };
}

/** What is sent. title: of the folder, or of the only file; isFolder: false for files alone. */
export interface Parcel {
  title: string;
  isFolder: boolean;
  files: readonly (Picked & { isProgram: boolean })[];
  sizeBytes: number;
  left: Left;
}

/** Of an input for files, or for a folder, whose own name begins every path. */
export function ofInput(list: FileList): { title: string; isFolder: boolean; files: Picked[] } {
  const files = [...list];
  const root = files[0]?.webkitRelativePath.split("/")[0] ?? "";
  if (!root) return { title: titleOf(files), isFolder: false, files: files.map((file) => ({ name: file.name, file })) };
  const below = files.map((file) => ({ name: file.webkitRelativePath.slice(root.length + 1), file }));
  return { title: root, isFolder: true, files: below };
}

/** Of a drop: one folder, or files and folders beside each other. */
export async function ofDrop(items: DataTransferItemList, { stop, told }: Reading = {}) {
  // Asked for all at once: once this function waits, the browser has forgotten what was dropped.
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const only = entries.length === 1 && entries[0]!.isDirectory ? entries[0]! : null;
  const files: Picked[] = [];
  const onto = (one: Picked) => {
    stop?.throwIfAborted();
    files.push(one);
    if (files.length > FILES_MAX) throw new Error(TOO_MANY);
    if (files.length % AT_ONCE === 0) told?.(files.length, 0);
  };
  for (const entry of only ? await inside(only as FileSystemDirectoryEntry) : entries) await walk(entry, "", onto);
  return { title: only?.name ?? titleOf(entries), isFolder: only !== null, files };
}

const titleOf = (of: readonly { name: string }[]) =>
  (of[0]?.name ?? "") + (of.length > 1 ? ` and ${count(of.length - 1)} more` : "");

async function walk(entry: FileSystemEntry, prefix: string, onto: (one: Picked) => void): Promise<void> {
  if (isLeftBehind(entry.name)) return;
  const name = prefix + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    onto({ name, file });
    return;
  }
  for (const one of await inside(entry as FileSystemDirectoryEntry)) await walk(one, `${name}/`, onto);
}

async function inside(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) return found; // a browser gives a hundred at a time
    found.push(...some);
  }
}

const TOO_MANY =
  `It holds more than 1 GiB or ${count(FILES_MAX)} files. Choose a smaller folder, or name what is not needed in ` +
  ".windrowignore.";
/** Files that are looked into at a time. */
const AT_ONCE = 64;

/** How a reading goes. told: how many files were looked into, of how many; 0: nobody knows yet. */
export interface Reading {
  stop?: AbortSignal;
  told?: (done: number, of: number) => void;
}

interface Found {
  title: string;
  isFolder: boolean;
  files: readonly Picked[];
}

/** Decide what is sent. Throws where it is more than a job's folder may be, or nothing. */
export async function survey(from: Found, { stop, told }: Reading = {}): Promise<Parcel> {
  const byName = new Map(from.files.map((one) => [one.name, one]));
  const texts = new Map<string, string>();
  for (const { name, file } of from.files)
    if (IGNORE_FILES.includes(name.split("/").at(-1)!)) texts.set(name, await file.text());
  const { sent, wished, left } = sift([...byName.keys()].sort(), texts);
  const sizeBytes = sent.reduce((sum, name) => sum + byName.get(name)!.file.size, 0);
  if (sizeBytes > FOLDER_BYTES_MAX || sent.length > FILES_MAX) throw new Error(TOO_MANY);
  const kept: Parcel["files"][number][] = [];
  for (let at = 0; at < sent.length; at += AT_ONCE) {
    stop?.throwIfAborted();
    told?.(at, sent.length);
    const some = sent.slice(at, at + AT_ONCE).map((name) => byName.get(name)!);
    const looked = some.map(async (one) => ({ ...one, ...(await look(one)) }));
    for (const { isSecret, ...one } of await Promise.all(looked))
      if (isSecret && !wished.has(one.name)) left.secrets.push(one.name);
      else kept.push(one);
  }
  if (kept.length === 0) throw new Error("None of these files is sent: they are empty, ignored, or look like secrets.");
  return { ...from, files: kept, sizeBytes: kept.reduce((sum, { file }) => sum + file.size, 0), left };
}

async function look({ file }: Picked): Promise<{ isSecret: boolean; isProgram: boolean }> {
  const head = file.slice(0, file.size <= SECRET_LOOK_BYTES ? undefined : 2);
  const text = new TextDecoder("latin1").decode(await head.arrayBuffer());
  return { isSecret: text.length >= 64 && isSecretText(text), isProgram: text.startsWith("#!") };
}

/** The names of files that a browser reads no more: they were changed, moved or deleted since they were chosen. */
export async function unreadable(files: readonly Picked[]): Promise<string[]> {
  const lost: string[] = [];
  for (let at = 0; at < files.length; at += AT_ONCE) {
    const looked = files.slice(at, at + AT_ONCE).map(({ name, file }) =>
      file
        .slice(0, 1)
        .arrayBuffer()
        .then(
          () => [],
          () => [name],
        ),
    );
    lost.push(...(await Promise.all(looked)).flat());
  }
  return lost;
}

/** In a sentence for a person. */
export const changedText = (lost: readonly string[]) =>
  `${lost[0]}${lost.length > 1 ? ` and ${count(lost.length - 1)} more` : ""} ` +
  `${lost.length > 1 ? "have" : "has"} changed since ${lost.length > 1 ? "they were" : "it was"} chosen. ` +
  "Choose the folder or the files again.";
