import { expect, test } from "vitest";
import { ignoresOf } from "./ignoring.ts";
import { changedText, ofInput, survey, unreadable } from "./reading.ts";
import { commandFor, isSecretName, leftLines, sift } from "./sifting.ts";

const texts = (of: Record<string, string>) => new Map(Object.entries(of));

test.each([
  // [lines, name, is a folder, verdict]
  ["*.log", "a/b/x.log", false, "out"],
  ["/data", "data", true, "out"],
  ["/data", "src/data", true, null],
  ["build/", "src/build", true, "out"],
  ["build/", "src/build", false, null],
  ["docs/*.md", "docs/a.md", false, "out"],
  ["docs/*.md", "docs/deep/a.md", false, null],
  ["a/**/z", "a/z", false, "out"],
  ["a/**/z", "a/b/c/z", false, "out"],
  ["**/tmp", "x/tmp", true, "out"],
  ["a/**", "a", true, null],
  ["a/**", "a/b", false, "out"],
  ["x?.[ch]", "x1.c", false, "out"],
  ["x?.[!ch]", "x1.c", false, null],
  ["# no\n\n\\#yes", "#yes", false, "out"],
  ["*.tmp\n!keep.tmp", "keep.tmp", false, null],
  ["trailing   ", "trailing", false, "out"],
  ["[b-a]", "b", false, null],
] as const)("git's rules: %j, %s", (lines, name, isFolder, verdict) => {
  expect(ignoresOf(texts({ ".gitignore": lines }))(name, isFolder)).toBe(verdict);
});

test("the nearest file decides, and .windrowignore has the last word", () => {
  const verdict = ignoresOf(
    texts({ ".gitignore": "*.bin\n.env", "a/.gitignore": "!ours.bin", ".windrowignore": "!.env\nhuge" }),
  );
  expect(verdict("x.bin", false)).toBe("out");
  expect(verdict("a/ours.bin", false)).toBe(null);
  expect(verdict(".env", false)).toBe("wished");
  expect(verdict("a/huge", true)).toBe("out");
});

test("secrets are known by their names, as the command knows them", () => {
  const secrets = [".env", ".env.local", "conf/server.pem", "ID_RSA", "my-credentials-2.json", ".docker/config.json"];
  const others = [".env.example", "keys.pub", "config.json", "environment.py", "tokens.py"];
  expect(secrets.filter((name) => !isSecretName(name, false))).toEqual([]);
  expect(others.filter((name) => isSecretName(name, false))).toEqual([]);
  expect([isSecretName("a/.aws", true), isSecretName("aws", true)]).toEqual([true, false]);
});

test("what stays here is named, but for what tools make", () => {
  const all = [
    ...["train.py", "src/a.py", ".gitignore", ".git/HEAD", "node_modules/x/y.js", "src/__pycache__/a.pyc"],
    ...[".env", "out/a.log", "env/pyvenv.cfg", "env/bin/python", ".aws/credentials", "deep/er/venv/x"],
  ];
  const { sent, left } = sift(all, texts({ ".gitignore": "/out\n" }));
  expect(sent).toEqual(["train.py", "src/a.py", ".gitignore"]);
  expect(left).toEqual({ secrets: [".env", ".aws/"], ignored: ["out/"], environments: ["env/"], long: [] });
  expect(leftLines(left)[0]).toBe("Left out, as they look like secrets: .env, .aws/");
  expect(leftLines({ secrets: [], ignored: [...all], environments: [], long: [] })).toEqual([
    expect.stringMatching(/ and 4 more$/),
  ]);
});

test("a name that is longer than a host takes is left out, and said to be", () => {
  const long = `${"deep/".repeat(210)}a.txt`;
  const { sent, left } = sift(["a.txt", long], texts({}));
  expect([sent, left.long]).toEqual([["a.txt"], [long]]);
  expect(leftLines(left)).toEqual([expect.stringMatching(/^Left out, as their names .*: deep\/.*…deep.*\/a\.txt$/)]);
});

test("a program of the folder, or its only notebook, suggests the command", () => {
  expect(commandFor(["a.py", "train.py", "x/main.py"]).command).toBe("python train.py");
  expect(commandFor(["only one.py"]).command).toBe("python 'only one.py'");
  expect(commandFor(["a.py", "b.py", "run.sh"]).command).toBe("sh run.sh");
  expect(commandFor(["a.py", "b.py"])).toEqual({ command: "", packages: "" });
  expect(commandFor(["fit.ipynb"])).toEqual({
    command: "python -m nbconvert --to notebook --execute --inplace fit.ipynb",
    packages: "nbconvert\nipykernel",
  });
});

const file = (path: string, text: string) =>
  Object.assign(new File([text], path.split("/").at(-1)!), { webkitRelativePath: path });

test("a folder is looked through: keys by what is in them, programs by their first line", async () => {
  const key = `-----BEGIN OPENSSH PRIVATE KEY-----\n${"A".repeat(64)}\n`;
  const chosen = [
    file("proj/run", "#!/bin/sh\n"),
    file("proj/notes.txt", key),
    file("proj/ours.txt", key),
    file("proj/.windrowignore", "!ours.txt\n"),
  ];
  const parcel = await survey(ofInput(chosen as unknown as FileList));
  expect([parcel.title, parcel.isFolder, parcel.left.secrets]).toEqual(["proj", true, ["notes.txt"]]);
  expect(parcel.files.map((one) => [one.name, one.isProgram])).toEqual([
    [".windrowignore", false],
    ["ours.txt", false],
    ["run", true],
  ]);
  const one = ofInput([Object.assign(new File(["{}"], "a.ipynb"), { webkitRelativePath: "" })] as unknown as FileList);
  expect(await survey(one)).toMatchObject({ title: "a.ipynb", isFolder: false, sizeBytes: 2 });
  await expect(survey(ofInput([file("p/.env", "A=1")] as unknown as FileList))).rejects.toThrow("None of these files");
});

test("a reading says how far it is, and stops", async () => {
  const found = ofInput(Array.from({ length: 200 }, (_, one) => file(`p/${one}`, "")) as unknown as FileList);
  const told: number[][] = [];
  await survey(found, { told: (done, of) => told.push([done, of]) });
  expect([told[0], told.at(-1)]).toEqual([
    [0, 200],
    [192, 200],
  ]);
  const stop = new AbortController();
  await expect(survey(found, { stop: stop.signal, told: () => stop.abort() })).rejects.toThrow();
});

test("files that were changed since they were chosen are named", async () => {
  const lost = Object.assign(new Blob(["x"]), { slice: () => ({ arrayBuffer: () => Promise.reject(new Error("")) }) });
  const names = await unreadable([
    { name: "kept", file: new Blob(["x"]) },
    { name: "log.txt", file: lost as unknown as Blob },
  ]);
  expect(names).toEqual(["log.txt"]);
  expect(changedText(names)).toBe("log.txt has changed since it was chosen. Choose the folder or the files again.");
  expect(changedText(["a", "b"])).toMatch(/^a and 1 more have changed since they were chosen/);
});
