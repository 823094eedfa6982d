// One text file as a tar archive, as a job's folder is sent. Pure.

const BLOCK = 512;
const CHECKSUM = 148;

/** The archive of a file of this name; the header is that of POSIX.1-1988 (ustar). name: at most 100 ASCII letters. */
export function tarOf(name: string, content: string): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(content);
  const archive = new Uint8Array(BLOCK * (3 + Math.ceil(text.length / BLOCK))); // two empty blocks end it
  const write = (at: number, word: string) => archive.set(new TextEncoder().encode(word), at);
  const octal = (at: number, length: number, value: number) =>
    write(
      at,
      value
        .toString(8)
        .padStart(length - 1, "0")
        .slice(0, length - 1),
    );
  write(0, name.slice(0, 100));
  octal(100, 8, 0o644);
  octal(108, 8, 0); // owner
  octal(116, 8, 0); // group
  octal(124, 12, text.length);
  octal(136, 12, 0); // time of change
  write(CHECKSUM, " ".repeat(8));
  write(156, "0"); // a plain file
  write(257, "ustar\u000000");
  const sum = archive.subarray(0, BLOCK).reduce((total, byte) => total + byte, 0);
  write(CHECKSUM, `${sum.toString(8).padStart(6, "0")}\u0000 `);
  archive.set(text, BLOCK);
  return archive;
}
