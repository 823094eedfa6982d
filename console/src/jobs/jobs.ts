// A job's request from the fields of a form, and the same as a command. Pure.

import type { Job, JobRequest, RegistryLogin } from "../api/types.ts";
import { BLANK_PLACE, type PlaceDraft, placeWords, readPlace } from "../clusters/place.ts";
import {
  entrypointWords,
  gib,
  LOGIN_FILE,
  NO_LOGIN,
  readAmount,
  readEntrypoint,
  readEnv,
  readLogin,
  readSpan,
  splitCommand,
} from "../clusters/request.ts";
import { GIB, toBytes } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";
import { readSecrets } from "../secrets/secrets.ts";
import { readMounts } from "../volumes/volumes.ts";

/** The name under which a pasted program is sent. */
export const PROGRAM = "program.py";

export interface JobDraft extends PlaceDraft {
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
  /** Ids of jobs that must succeed, end in any way, or fail before. */
  after: string;
  afterAny: string;
  afterFailure: string;
  volumes: string;
  /** A line each: NAME or NAME=VARIABLE. */
  secrets: string;
  env: string;
  registrySecret: string;
  memoryGib: string;
  slice: string;
  runtime: "" | "process" | "docker";
  maxPrice: string;
  retriesOnExit: boolean;
  /** As an input for local time gives it; empty: none. */
  deadline: string;
  /** Empty: normal. */
  priorityClass: "" | NonNullable<JobRequest["priority_class"]>;
  priority: number;
  /** As an input for local time gives it; empty: at once. */
  begin: string;
  /** How many copies; 0: one job without a number. */
  copies: number;
  /** Copies that run at once; empty: all. */
  atOnce: string;
  /** Empty: the Master's; 0: never. */
  checkpointSeconds: string;
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
  afterAny: "",
  afterFailure: "",
  volumes: "",
  secrets: "",
  env: "",
  registrySecret: "",
  memoryGib: "",
  slice: "",
  runtime: "",
  maxPrice: "",
  retriesOnExit: false,
  deadline: "",
  priorityClass: "",
  priority: 0,
  begin: "",
  copies: 0,
  atOnce: "",
  checkpointSeconds: "",
  simulated: false,
  ...BLANK_PLACE,
};

export type JobFaults = Partial<Record<keyof JobDraft, string>>;

const AFTER = [
  ["after", "after"],
  ["afterAny", "after_any"],
  ["afterFailure", "after_failure"],
] as const;
const MEMORY = /\d\s*[GT]i?B?$/i;
const MODEL = /^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}$/;

/** sends: files go with it, besides the program. */
export function toJob(
  draft: JobDraft,
  sends = false,
): { request: JobRequest; login: RegistryLogin | null; faults: JobFaults } {
  const faults: JobFaults = {};
  const request: JobRequest = { argv: [], gpus: draft.gpus, cpus: draft.cpus, retries: draft.retries };
  try {
    request.argv = splitCommand(draft.command);
    if (sends || draft.program.trim()) request.await_files = true;
    if (draft.program.trim() && request.argv.length === 0) request.argv = ["python", PROGRAM];
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
  for (const [field, name] of AFTER) {
    const ids = draft[field].split(/[\s,]+/).filter(Boolean);
    if (ids.some((id) => !id.startsWith("job_"))) faults[field] = "Ids of jobs: job_…";
    else if (ids.length) request[name] = ids;
  }
  const mounts = readMounts(draft, 1);
  if (mounts.fault) faults.volumes = mounts.fault;
  else if (mounts.volumes.length) request.volumes = mounts.volumes;
  const named = readSecrets(draft.secrets);
  if (named.fault) faults.secrets = named.fault;
  else if (named.secrets.length) request.secrets = named.secrets;
  readMore(draft, request, faults);
  return { request, login: readLogin(draft, faults), faults };
}

/** What few jobs say. */
function readMore(draft: JobDraft, request: JobRequest, faults: JobFaults): void {
  readEnv(draft, request, faults);
  if (draft.registrySecret.trim()) request.registry_secret = draft.registrySecret.trim();
  gib(draft, "memoryGib", faults, (bytes) => (request.memory_bytes = bytes));
  if (draft.slice.trim() && draft.gpus === 0) faults.slice = "Only said with GPUs above 0";
  else if (draft.slice.trim()) request.slice = draft.slice.trim();
  readPlace(draft, request, faults);
  if (draft.runtime) request.runtime = draft.runtime;
  readAmount(draft, "maxPrice", faults, (amount) => (request.max_price_per_hour = amount), 0);
  if (draft.retriesOnExit) request.retries_on_exit = true;
  readTime(draft, "deadline", faults, (at) => (request.deadline = at));
  readTime(draft, "begin", faults, (at) => (request.begin_at = at));
  if (draft.priorityClass) request.priority_class = draft.priorityClass;
  if (draft.priority) request.priority = draft.priority;
  if (draft.copies) request.array_size = draft.copies;
  const atOnce = draft.atOnce.trim();
  if (atOnce && !/^[1-9]\d{0,3}$/.test(atOnce)) faults.atOnce = "A whole number such as 20";
  else if (atOnce && !draft.copies) faults.atOnce = "Only said with copies above 0";
  else if (atOnce) request.array_at_once = Number(atOnce);
  const span = [1, 0, "A number of seconds; 0: never"] as const;
  readSpan(draft, "checkpointSeconds", faults, span, (seconds) => (request.checkpoint_every_seconds = seconds));
}

function readTime(draft: JobDraft, field: "deadline" | "begin", faults: JobFaults, put: (at: string) => void): void {
  if (Number.isNaN(Date.parse(draft[field] || "2000-01-01"))) faults[field] = "A day and a time";
  else if (draft[field]) put(new Date(draft[field]).toISOString());
}

/** What is sent, as a command finds it: a folder, or a file alone; null: nothing, or the pasted program. */
export type Sent = { title: string; isFolder: boolean } | null;

/** The same as the `windrow` command. */
export function asJobCommand(request: JobRequest, hasLogin = false, sent: Sent = null): string {
  const script = sent === null ? PROGRAM : sent.isFolder ? null : sent.title;
  const [runner, program, ...more] = request.argv;
  const isScript = request.await_files && runner === "python" && program === script && more.length === 0;
  const words = ["windrow", "job", "submit", ...(request.await_files ? [] : ["--no-files"])];
  if (isScript) words.push("--script", quoted(program));
  else if (sent?.isFolder) words.push("--folder", quoted(sent.title));
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
  for (const [, name] of AFTER) for (const id of request[name] ?? []) flag(`--${name.replace("_", "-")}`, id);
  for (const one of request.volumes ?? []) flag("--volume", one);
  for (const one of request.secrets ?? []) flag("--secret", one);
  words.push(...moreWords(request));
  return (isScript ? words : [...words, "--", ...request.argv.map(quoted)]).join(" ");
}

function moreWords(request: JobRequest): string[] {
  const flags: readonly (readonly [string, string | number | null | undefined])[] = [
    ["--registry-secret", request.registry_secret],
    ["--memory", request.memory_bytes && `${request.memory_bytes / GIB}GiB`],
    ["--slice", request.slice],
    ["--runtime", request.runtime],
    ["--max-price", request.max_price_per_hour],
    ["--deadline", request.deadline],
    ["--class", request.priority_class],
    ["--priority", request.priority],
    ["--begin", request.begin_at],
    ["--array", request.array_at_once ? `${request.array_size}%${request.array_at_once}` : request.array_size],
    ["--checkpoint-every", request.checkpoint_every_seconds?.toString()],
    ...Object.entries(request.env ?? {}).map(([name, value]) => ["--env", `${name}=${value}`] as const),
  ];
  const said = flags.flatMap(([name, value]) => (value ? [name, quoted(String(value))] : []));
  return [...said, ...placeWords(request), ...(request.retries_on_exit ? ["--retry-on-exit"] : [])];
}

function gpuWords(request: JobRequest): string | number | undefined {
  const bytes = request.gpu_memory_bytes;
  const kind =
    request.gpu_model ?? (bytes ? (bytes % 2 ** 30 === 0 ? `${bytes / 2 ** 30}GiB` : `${bytes / 1e9}GB`) : "");
  return kind ? `${kind}:${request.gpus}` : request.gpus;
}

export const isOver = (job: Job): boolean => job.ended_at !== null;

/** It was submitted to be followed by its files, and they are not there. */
export const waitsForFiles = ({ state, request, folder_bytes }: Job): boolean =>
  state === "Submitted" && request.await_files && folder_bytes === null;
