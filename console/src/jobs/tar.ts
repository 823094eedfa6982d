// Files as a tar archive, as a job's folder is sent. Nothing is read here: a browser reads each file when it sends it.

const BLOCK = 512;
const CHECKSUM = 148;

export interface Packed {
  /** Below the folder. */
  name: string;
  file: Blob & { lastModified?: number };
  /** It may be executed. */
  isProgram?: boolean;
}

/** The archive; the headers are those of POSIX.1-2001 (pax). */
export function tarOf(files: readonly Packed[]): Blob {
  const parts = files.flatMap((one) => [...headers(one), one.file, new Uint8Array(padding(one.file.size))]);
  return new Blob([...parts, new Uint8Array(2 * BLOCK)], { type: "application/x-tar" });
}

const padding = (size: number) => (BLOCK - (size % BLOCK)) % BLOCK;
const encoded = (text: string) => new TextEncoder().encode(text);

/** A name that the plain header does not hold has one of its own before it. */
function headers({ name, file, isProgram }: Packed): Uint8Array<ArrayBuffer>[] {
  const bytes = encoded(name);
  const mode = isProgram ? 0o755 : 0o644;
  const plain = header(bytes.slice(0, 100), file.size, "0", mode, file.lastModified);
  if (bytes.length <= 100 && bytes.length === name.length) return [plain];
  const record = paxRecord("path", bytes);
  return [header(encoded("pax"), record.length, "x", mode), record, new Uint8Array(padding(record.length)), plain];
}

/** "LENGTH KEY=VALUE\n", where LENGTH counts its own digits. */
function paxRecord(key: string, value: Uint8Array): Uint8Array<ArrayBuffer> {
  const rest = key.length + value.length + 3; // a space, an equals sign, a line's end
  let length = rest + String(rest).length;
  if (String(length).length > String(rest).length) length += 1;
  const record = new Uint8Array(length);
  const head = encoded(`${length} ${key}=`);
  record.set(head);
  record.set(value, head.length);
  record[length - 1] = 0x0a;
  return record;
}

function header(name: Uint8Array, size: number, kind: "0" | "x", mode: number, changedMs = 0): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const write = (at: number, word: string) => block.set(encoded(word), at);
  const octal = (at: number, length: number, value: number) => write(at, value.toString(8).padStart(length - 1, "0"));
  block.set(name);
  octal(100, 8, mode);
  octal(108, 8, 0); // owner
  octal(116, 8, 0); // group
  octal(124, 12, size);
  octal(136, 12, Math.max(0, Math.floor(changedMs / 1000)));
  write(CHECKSUM, " ".repeat(8));
  write(156, kind);
  write(257, "ustar\u000000");
  const sum = block.reduce((total, byte) => total + byte, 0);
  write(CHECKSUM, `${sum.toString(8).padStart(6, "0")}\u0000 `);
  return block;
}
