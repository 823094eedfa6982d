// Reads a tar archive, and lays its files out as a tree. Pure.

export interface Entry {
  path: string;
  bytes: number;
  /** Where its content begins in the archive. */
  at: number;
}

export interface Folder {
  folders: Map<string, Folder>;
  files: (Entry & { name: string })[];
  bytes: number;
}

const BLOCK = 512;
const FILE = /^[0\0]$/;

/** The regular files. Long names stand in a header of their own before the file: of POSIX (pax) or of GNU. */
export function entriesOf(archive: Uint8Array): Entry[] {
  const found: Entry[] = [];
  let long: string | null = null;
  for (let at = 0; at + BLOCK <= archive.length && archive[at] !== 0; ) {
    const head = archive.subarray(at, at + BLOCK);
    const bytes = Number.parseInt(text(head, 124, 12).trim() || "0", 8);
    const type = String.fromCharCode(head[156] ?? 0);
    const body = at + BLOCK;
    if (type === "L") long = text(archive, body, bytes);
    else if (type === "x") long = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text(archive, body, bytes))?.[1] ?? long;
    else {
      const prefix = text(head, 345, 155);
      const path = long ?? (prefix ? `${prefix}/` : "") + text(head, 0, 100);
      if (FILE.test(type)) found.push({ path: path.replace(/^\.\//, ""), bytes, at: body });
      long = null;
    }
    at = body + BLOCK * Math.ceil(bytes / BLOCK);
  }
  return found;
}

function text(from: Uint8Array, at: number, length: number): string {
  const part = from.subarray(at, at + length);
  const end = part.indexOf(0);
  return new TextDecoder().decode(end < 0 ? part : part.subarray(0, end));
}

export function treeOf(entries: readonly Entry[]): Folder {
  const root: Folder = { folders: new Map(), files: [], bytes: 0 };
  for (const entry of entries) {
    const names = entry.path.split("/").filter(Boolean);
    const name = names.pop() ?? entry.path;
    let here = root;
    here.bytes += entry.bytes;
    for (const one of names) {
      const next = here.folders.get(one) ?? { folders: new Map(), files: [], bytes: 0 };
      here.folders.set(one, next);
      here = next;
      here.bytes += entry.bytes;
    }
    here.files.push({ ...entry, name });
  }
  return root;
}
