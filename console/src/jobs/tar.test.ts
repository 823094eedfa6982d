import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tarOf } from "./tar.ts";

it("is read by tar, with long names, others than English ones, and rights", async () => {
  const long = `${"folder/".repeat(20)}${"n".repeat(90)}.py`;
  const texts = { "a.py": "print(6 * 7)\n", "empty.txt": "", [long]: "x".repeat(512), "grün/ä.txt": "ä".repeat(700) };
  const files = Object.entries(texts).map(([name, text]) => ({
    name,
    file: Object.assign(new Blob([text]), { lastModified: 1_700_000_000_000 }),
    isProgram: name === "a.py",
  }));
  const folder = mkdtempSync(join(tmpdir(), "windrow-tar-"));
  writeFileSync(join(folder, "a.tar"), new Uint8Array(await tarOf(files).arrayBuffer()));
  execFileSync("tar", ["-xf", "a.tar"], { cwd: folder, env: { ...process.env, LC_ALL: "C.UTF-8" } });
  for (const [name, text] of Object.entries(texts)) expect(readFileSync(join(folder, name), "utf8")).toBe(text);
  expect(statSync(join(folder, "a.py")).mode & 0o111).not.toBe(0);
  expect(statSync(join(folder, "empty.txt")).mtimeMs).toBe(1_700_000_000_000);
});
