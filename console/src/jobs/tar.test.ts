import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tarOf } from "./tar.ts";

it.each(["", "print(6 * 7)\n", "ä".repeat(700), "x".repeat(512)])("is read by tar: %#", (content) => {
  const folder = mkdtempSync(join(tmpdir(), "windrow-tar-"));
  writeFileSync(join(folder, "a.tar"), tarOf("program.py", content));
  execFileSync("tar", ["-xf", "a.tar"], { cwd: folder });
  expect(readFileSync(join(folder, "program.py"), "utf8")).toBe(content);
});
