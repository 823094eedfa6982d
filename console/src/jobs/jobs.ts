// A job's request from the fields of a form, and the same as a command. Pure.

import type { Job, JobRequest, RegistryLogin } from "../api/types.ts";
import {
  entrypointWords,
  LOGIN_FILE,
  NO_LOGIN,
  quoted,
  readAmount,
  readEntrypoint,
  readLogin,
  readSpan,
  splitCommand,
} from "../clusters/request.ts";
import { toBytes } from "../parts/format.ts";
import { readSecrets } from "../secrets/secrets.ts";
import { readMounts } from "../volumes/volumes.ts";

/** The name under which a pasted program is sent. */
export const PROGRAM = "program.py";

export interface JobDraft {
  /** A Python program that is sent with the job; empty: none. */
  program: string;
  command: string;
  packages: string;
  name: string;
  image: string;
  entrypoint: string;
  registryUser: string;
  registryPassword: string;
  gpus: number;
  /** A model, or a memory that each has at least: `H100`, `24GB`. */
  gpu: string;
  tier: string;
  /** The only host that may run it, by name or id; empty: any. */
  host: string;
  /** The kept route that it follows; empty: none. */
  route: string;
  cpus: number;
  retries: number;
  minutes: string;
  budget: string;
  after: string;
  volumes: string;
  /** A line each: NAME or NAME=VARIABLE. */
  secrets: string;
  simulated: boolean;
}

export const BLANK_JOB: JobDraft = {
  program: "",
  command: "",
  packages: "",
  name: "",
  image: "",
  entrypoint: "",
  ...NO_LOGIN,
  gpus: 0,
  gpu: "",
  tier: "",
  host: "",
  route: "",
  cpus: 1,
  retries: 0,
  minutes: "",
  budget: "",
  after: "",
  volumes: "",
  secrets: "",
  simulated: false,
};

export type JobFaults = Partial<Record<keyof JobDraft, string>>;

const MEMORY = /\d\s*[GT]i?B?$/i;
const MODEL = /^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}$/;

export function toJob(draft: JobDraft): { request: JobRequest; login: RegistryLogin | null; faults: JobFaults } {
  const faults: JobFaults = {};
  const request: JobRequest = { argv: [], gpus: draft.gpus, cpus: draft.cpus, retries: draft.retries };
  try {
    request.argv = splitCommand(draft.command);
    if (draft.program.trim()) {
      request.await_files = true;
      if (request.argv.length === 0) request.argv = ["python", PROGRAM];
    }
    if (request.argv.length === 0) faults.command = "A command to run";
  } catch (failure) {
    faults.command = (failure as Error).message;
  }
  if (draft.name.trim()) request.name = draft.name.trim();
  if (draft.image.trim()) request.image = draft.image.trim();
  readEntrypoint(draft, faults, (program) => (request.entrypoint = program));
  if (draft.simulated) request.simulated = true;
  if (draft.tier.trim()) request.tier = draft.tier.trim();
  if (draft.host.trim()) request.host_id = draft.host.trim();
  if (draft.route) request.route_id = draft.route;
  const kind = draft.gpu.trim();
  const memory = MEMORY.test(kind) ? toBytes(kind) : null;
  if (kind && draft.gpus === 0) faults.gpu = "Only said with GPUs above 0";
  else if (memory) request.gpu_memory_bytes = memory;
  else if (kind && MODEL.test(kind)) request.gpu_model = kind;
  else if (kind) faults.gpu = "A model such as H100, or a memory such as 24GB";
  readSpan(
    draft,
    "minutes",
    faults,
    [60, 1, "A number of minutes"],
    (seconds) => (request.max_duration_seconds = seconds),
  );
  readAmount(draft, "budget", faults, (amount) => (request.budget = amount));
  const packages = draft.packages
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean);
  if (packages.some((one) => one.startsWith("-")))
    faults.packages = "Packages such as numpy or numpy==2.4, a line each";
  else if (packages.length) request.packages = packages;
  const after = draft.after.split(/[\s,]+/).filter(Boolean);
  if (after.some((id) => !id.startsWith("job_"))) faults.after = "Ids of jobs: job_…";
  else if (after.length) request.after = after;
  const mounts = readMounts(draft, 1);
  if (mounts.fault) faults.volumes = mounts.fault;
  else if (mounts.volumes.length) request.volumes = mounts.volumes;
  const named = readSecrets(draft.secrets);
  if (named.fault) faults.secrets = named.fault;
  else if (named.secrets.length) request.secrets = named.secrets;
  return { request, login: readLogin(draft, faults), faults };
}

/** The same as the `windrow` command. */
export function asJobCommand(request: JobRequest, hasLogin = false): string {
  const isScript = request.await_files && request.argv.join(" ") === `python ${PROGRAM}`;
  const words = ["windrow", "job", "submit", ...(request.await_files ? [] : ["--no-files"])];
  if (isScript) words.push("--script", PROGRAM);
  const flag = (name: string, value: string | number | null | undefined) =>
    value && words.push(name, quoted(String(value)));
  flag("--name", request.name);
  flag("--image", request.image);
  words.push(...entrypointWords(request));
  if (hasLogin) flag("--registry-login", LOGIN_FILE);
  flag("--gpu", gpuWords(request));
  flag("--tier", request.tier);
  flag("--host", request.host_id);
  flag("--route", request.route_id);
  if (request.simulated) flag("--runtime", "simulated");
  if (request.cpus !== 1) flag("--cpus", request.cpus);
  flag("--retries", request.retries);
  if (request.max_duration_seconds) flag("--max-duration", `${request.max_duration_seconds}s`);
  flag("--budget", request.budget);
  for (const one of request.packages ?? []) flag("--with", one);
  for (const id of request.after ?? []) flag("--after", id);
  for (const one of request.volumes ?? []) flag("--volume", one);
  for (const one of request.secrets ?? []) flag("--secret", one);
  return (isScript ? words : [...words, "--", ...request.argv.map(quoted)]).join(" ");
}

function gpuWords(request: JobRequest): string | number | undefined {
  const bytes = request.gpu_memory_bytes;
  const kind =
    request.gpu_model ?? (bytes ? (bytes % 2 ** 30 === 0 ? `${bytes / 2 ** 30}GiB` : `${bytes / 1e9}GB`) : "");
  return kind ? `${kind}:${request.gpus}` : request.gpus;
}

export const isOver = (job: Job): boolean => job.ended_at !== null;
