import { expect, test } from "vitest";
import type { Volume } from "../api/types.ts";
import { asCommand, BLANK, toDraft, toRequest } from "../clusters/request.ts";
import { asJobCommand, BLANK_JOB, toJob } from "../jobs/jobs.ts";
import { partsOf, readMounts, toVolume, unnamed, usersOf, withMount } from "./volumes.ts";

const volume = (name: string, used_by: Volume["used_by"] = []): Volume => ({
  id: `volume_${name}`,
  name,
  version: 0,
  size_bytes: 0,
  files: 0,
  max_bytes: 1,
  saved_at: null,
  created_at: "2026-01-31T00:00:00.000Z",
  problem: null,
  used_by,
});
const fault = (volumes: string, hosts = 1, simulated = false) => readMounts({ volumes, simulated }, hosts).fault;

test("a volume is asked for by name, and by size as the command reads it", () => {
  expect(toVolume({ name: " data ", maxSize: "" })).toEqual({ request: { name: "data" }, size: "", faults: {} });
  expect(toVolume({ name: "data", maxSize: "20 GB" })).toEqual({
    request: { name: "data", max_bytes: 20e9 },
    size: "20GB",
    faults: {},
  });
  expect(toVolume({ name: "data", maxSize: "1.5gib" }).request.max_bytes).toBe(1.5 * 1024 ** 3);
  expect(toVolume({ name: "data", maxSize: "64GiB" }).faults).toEqual({});
});

test("what is no name and no size is said beside its field, and not sent", () => {
  for (const name of ["", "Data", "-data", "a".repeat(41), "a b", "a/b"])
    expect(toVolume({ name, maxSize: "" }).faults.name, name).toBeDefined();
  for (const maxSize of ["lots", "20", "0GB", "65GiB", "1TB", "-1GB"]) {
    const { request, faults } = toVolume({ name: "data", maxSize });
    expect(Object.keys(faults), maxSize).toEqual(["maxSize"]);
    expect(request).toEqual({ name: "data" });
  }
});

test("volumes of a cluster or a job are a line each", () => {
  expect(readMounts({ volumes: "\n data:/data \nmodels.v1:/mnt/models:ro\n", simulated: false }, 1)).toEqual({
    volumes: ["data:/data", "models.v1:/mnt/models:ro"],
  });
  expect(readMounts({ volumes: " ", simulated: true }, 4)).toEqual({ volumes: [] });
  for (const bad of ["data", "data:", "data:data", "Data:/data", "data:/data:wo", "data:/../etc", ":/data"])
    expect(fault(bad), bad).toContain(bad);
  expect(fault("data:/a\ndata:/b")).toContain("twice");
  expect(fault("data:/a\nmore:/a/b")).toContain("lie in each other");
  expect(fault("data:/a\nmore:/ab")).toBeUndefined();
  expect(fault(Array.from({ length: 9 }, (_, at) => `v${at}:/v${at}`).join("\n"))).toContain("At most 8");
});

test("one host writes, and a simulated one has no disk", () => {
  expect(fault("data:/data", 2)).toContain("data:/data:ro");
  expect(fault("data:/data:ro", 2)).toBeUndefined();
  expect(fault("data:/data", 1, true)).toContain("Simulated");
});

test("they are in the request, in the command, and in a form that a template fills", () => {
  const { request, faults } = toRequest({ ...BLANK, command: "train", volumes: "data:/data\nmodels:/models:ro" });
  expect([request.volumes, faults]).toEqual([["data:/data", "models:/models:ro"], {}]);
  expect(asCommand(request)).toBe("windrow cluster create --volume data:/data --volume models:/models:ro -- train");
  expect(toDraft(request).volumes).toBe("data:/data\nmodels:/models:ro");
  expect(toRequest({ ...BLANK, kind: "ray", hosts: 2, volumes: "data:/data" }).faults.volumes).toContain(":ro");
  expect(toRequest({ ...BLANK, kind: "box", hosts: 2, volumes: "data:/data" }).faults).toEqual({});
  expect("volumes" in toRequest(BLANK).request).toBe(false);
  const job = toJob({ ...BLANK_JOB, command: "train", volumes: "data:/data" });
  expect([job.request.volumes, job.faults]).toEqual([["data:/data"], {}]);
  expect(asJobCommand(job.request)).toBe("windrow job submit --no-files --volume data:/data -- train");
  expect(toJob({ ...BLANK_JOB, command: "train", volumes: "data" }).faults.volumes).toContain("NAME:/path");
});

test("what the account has is offered until it is named, each in a folder of its own", () => {
  const known = [volume("data"), volume("models")];
  expect(unnamed(known, "data:/x")).toEqual(["models"]);
  expect(withMount("", "data", 1)).toBe("data:/data");
  expect(withMount("data:/data", "models", 2)).toBe("data:/data\nmodels:/data-models:ro");
  expect(fault(withMount("data:/data", "models", 1))).toBeUndefined();
});

test("a line as it was asked for says whether it is written", () => {
  expect(partsOf("data:/data")).toEqual({ name: "data", path: "/data", writes: true });
  expect(partsOf("data:/data:ro").writes).toBe(false);
});

test("the writer is named first", () => {
  const use = (cluster_id: string, writes: boolean) => ({
    cluster_id,
    cluster_name: cluster_id,
    phase: "Running",
    writes,
  });
  expect(usersOf(volume("data", [use("reads", false), use("writes", true)])).map((one) => one.cluster_id)).toEqual([
    "writes",
    "reads",
  ]);
});
