import { expect, test } from "vitest";
import { tarOf } from "../jobs/tar.ts";
import { entriesOf, treeOf } from "./archive.ts";

test("the files of an archive are a tree, with the size of each folder", async () => {
  const sent = [
    { name: "./out/model/weights.txt", file: new Blob(["12345"]) },
    { name: "out/log.txt", file: new Blob(["a"]) },
  ];
  const archive = new Uint8Array(await tarOf(sent).arrayBuffer());
  const entries = entriesOf(archive);
  expect(entries.map(({ path, bytes, at }) => [path, bytes, at])).toEqual([
    ["out/model/weights.txt", 5, 512],
    ["out/log.txt", 1, 1536],
  ]);
  const out = treeOf(entries).folders.get("out");
  expect([out?.bytes, out?.files.map((file) => file.name), [...(out?.folders.keys() ?? [])]]).toEqual([
    6,
    ["log.txt"],
    ["model"],
  ]);
});

test("nothing is read from what is no archive", () => {
  expect(entriesOf(new Uint8Array(10))).toEqual([]);
  expect(entriesOf(new Uint8Array(2048))).toEqual([]);
});
