import { expect, test } from "vitest";
import type { Secret } from "../api/types.ts";
import { asCommand, BLANK, toDraft, toRequest } from "../clusters/request.ts";
import { asJobCommand, BLANK_JOB, toJob } from "../jobs/jobs.ts";
import { asSecretCommand, BLANK_SECRET, readSecrets, shownSecret, toSecret, unusedSecrets } from "./secrets.ts";

const secret = (name: string, kind = "text"): Secret => ({
  name,
  kind,
  created_at: "2026-01-31T00:00:00.000Z",
  created_by: "user/user_1",
  updated_at: "2026-01-31T00:00:00.000Z",
  updated_by: "user/user_1",
  last_used_at: null,
  last_used_by: null,
  used_by: [],
});

test("a text goes as it is and a file as base64", () => {
  expect(toSecret({ ...BLANK_SECRET, name: " HF_TOKEN ", text: "hf 1\n" })).toEqual({
    name: "HF_TOKEN",
    request: { value: "hf 1\n", kind: "text" },
    faults: {},
  });
  const bytes = new Uint8Array([0, 255, 10]);
  expect(toSecret({ ...BLANK_SECRET, name: "KEY", kind: "file", bytes }).request.value).toBe("AP8K");
});

test("what is no name and no value is said beside its field", () => {
  for (const name of ["", "hf_token", "1A", "A-B", "A".repeat(65)])
    expect(toSecret({ ...BLANK_SECRET, name, text: "x" }).faults.name, name).toBeDefined();
  const fault = (part: object) => toSecret({ ...BLANK_SECRET, name: "A", ...part }).faults.value;
  expect(fault({ text: "" })).toBe("A value");
  expect(fault({ text: "a\0b" })).toBe("A text without NUL");
  expect(fault({ text: "x".repeat(65_537) })).toBe("At most 64 KiB");
  expect(fault({ kind: "file" })).toBe("A file");
  expect(fault({ kind: "file", bytes: "large" })).toBe("At most 64 KiB");
  expect(fault({ kind: "registry_login", text: "me" })).toBe("NAME:PASSWORD on one line");
  expect(fault({ kind: "registry_login", text: "me:pass:word" })).toBeUndefined();
});

test("what is shown never has the value", () => {
  expect(shownSecret("file")).toEqual({ value: "YOUR_VALUE", kind: "file" });
  expect(asSecretCommand("KEY", "file")).toBe("windrow secret set KEY --kind file --file FILE");
  expect(asSecretCommand("", "text")).toBe("windrow secret set NAME");
});

test("a form names secrets by lines, each variable once", () => {
  expect(readSecrets("HF_TOKEN\n KEY=aws_key \n")).toEqual({ secrets: ["HF_TOKEN", "KEY=aws_key"] });
  expect(readSecrets("A\nB=A").fault).toBe("The variable A has two values");
  expect(readSecrets("hf_token").fault).toBe("Not NAME or NAME=VARIABLE: hf_token");
  const known = [secret("A"), secret("B"), secret("LOGIN", "registry_login")];
  expect(unusedSecrets(known, "A=x")).toEqual(["B"]);
});

test("a cluster's and a job's request and command name them", () => {
  const { request } = toRequest({ ...BLANK, command: "true", secrets: "HF_TOKEN\nKEY=aws" });
  expect(request.secrets).toEqual(["HF_TOKEN", "KEY=aws"]);
  expect(asCommand(request)).toContain("--secret HF_TOKEN --secret KEY=aws");
  expect(toDraft({ ...request, registry_secret: "GHCR" })).toMatchObject({
    secrets: "HF_TOKEN\nKEY=aws",
    more: { registry_secret: "GHCR" },
  });
  const job = toJob({ ...BLANK_JOB, command: "true", secrets: "HF_TOKEN" });
  expect(job.request.secrets).toEqual(["HF_TOKEN"]);
  expect(asJobCommand(job.request)).toContain("--secret HF_TOKEN");
  expect(toJob({ ...BLANK_JOB, command: "true", secrets: "bad" }).faults.secrets).toBeDefined();
});
