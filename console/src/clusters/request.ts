// A cluster's request from the fields of a form, and the same as a command and as an HTTP call. Pure.

import { wholePath } from "../api/paths.ts";
import type { ClusterRequest, KeptRequest, RegistryLogin } from "../api/types.ts";
import { GIB } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";
import { readSecrets } from "../secrets/secrets.ts";
import { readMounts } from "../volumes/volumes.ts";
import { BLANK_PLACE, type PlaceDraft, placeWords, readPlace, toPlace } from "./place.ts";

export { operand, quoted } from "../parts/shell.ts";

export type Kind = "box" | "service" | "gang" | "ray" | "dask";

/** Kinds whose members may be on several hosts. */
export const overHosts = (kind: Kind) => kind === "gang" || kind === "ray" || kind === "dask";

export interface Draft extends PlaceDraft {
  name: string;
  kind: Kind;
  hosts: number;
  hardware: "cpu" | "gpu";
  gpus: number;
  gpuModel: string;
  gpuMemoryGib: string;
  tier: string;
  cpus: number;
  memoryGib: string;
  runtime: "" | "process" | "docker";
  image: string;
  registryUser: string;
  registryPassword: string;
  command: string;
  entrypoint: string;
  env: string;
  volumes: string;
  /** A line each: NAME or NAME=VARIABLE. */
  secrets: string;
  ports: string;
  sshKeys: string;
  notebook: boolean;
  host: string;
  maxPrice: string;
  hours: string;
  budget: string;
  idleMinutes: string;
  /** Empty: it is refused where there is no place now. */
  waitHours: string;
  simulated: boolean;
  /** Fields of a template that this form does not show. */
  more: Pick<ClusterRequest, "slice" | "restart_members" | "registry_secret">;
}

export const NO_LOGIN = { registryUser: "", registryPassword: "" };

export const BLANK: Draft = {
  name: "",
  kind: "box",
  hosts: 2,
  hardware: "cpu",
  gpus: 1,
  gpuModel: "",
  gpuMemoryGib: "",
  tier: "",
  cpus: 1,
  memoryGib: "",
  runtime: "",
  image: "",
  ...NO_LOGIN,
  command: "",
  entrypoint: "",
  env: "",
  volumes: "",
  secrets: "",
  ports: "",
  sshKeys: "",
  notebook: true,
  host: "",
  maxPrice: "",
  hours: "",
  budget: "",
  idleMinutes: "",
  waitHours: "",
  simulated: false,
  ...BLANK_PLACE,
  more: {},
};

/** Errors of fields by name. */
export type Faults = Partial<Record<keyof Draft, string>>;

export function toRequest(draft: Draft): { request: ClusterRequest; login: RegistryLogin | null; faults: Faults } {
  const faults: Faults = {};
  const request: ClusterRequest = {
    kind: draft.kind,
    gpus: draft.hardware === "gpu" ? draft.gpus : 0,
    cpus: draft.cpus,
    argv: [],
    ...draft.more,
  };
  try {
    request.argv = splitCommand(draft.command);
  } catch (failure) {
    faults.command = (failure as Error).message;
  }
  if (draft.name.trim()) request.name = draft.name.trim();
  if (draft.hardware === "gpu" && draft.gpuModel.trim()) request.gpu_model = draft.gpuModel.trim();
  if (draft.hardware === "gpu") gib(draft, "gpuMemoryGib", faults, (bytes) => (request.gpu_memory_bytes = bytes));
  gib(draft, "memoryGib", faults, (bytes) => (request.memory_bytes = bytes));
  if (draft.simulated) request.simulated = true;
  if (draft.tier) request.tier = draft.tier;
  if (draft.image.trim()) request.image = draft.image.trim();
  readEntrypoint(draft, faults, (program) => (request.entrypoint = program));
  if (draft.runtime) request.runtime = draft.runtime;
  if (draft.host.trim()) request.host_id = draft.host.trim();
  readEnv(draft, request, faults);
  readPorts(draft, request, faults);
  if (draft.kind === "box") readBox(draft, request, faults);
  readAmount(draft, "maxPrice", faults, (amount) => (request.max_price_per_hour = amount), 0);
  readLimits(draft, request, faults);
  if (overHosts(draft.kind)) request.hosts = draft.hosts;
  readPlace(draft, request, faults);
  if (request.backend && !draft.waitHours.trim())
    faults.waitHours = "How long it may wait: a machine is bought in minutes";
  const mounts = readMounts(draft, request.hosts ?? 1);
  if (mounts.fault) faults.volumes = mounts.fault;
  else if (mounts.volumes.length) request.volumes = mounts.volumes;
  const named = readSecrets(draft.secrets);
  if (named.fault) faults.secrets = named.fault;
  else if (named.secrets.length) request.secrets = named.secrets;
  if (draft.kind === "gang" && !request.argv?.length && !faults.command)
    faults.command = "Needs a command: every host runs it";
  if (draft.kind === "service" && !request.ports?.length && !faults.ports)
    faults.ports = "A service serves at least one port";
  return { request, login: readLogin(draft, faults), faults };
}

/** The fields of a form for this request; `more` holds the rest. */
export function toDraft(request: KeptRequest): Draft {
  const many = (unit: number, value: number | null | undefined) => (value ? String(value / unit) : "");
  return {
    ...BLANK,
    kind: (request.kind ?? BLANK.kind) as Kind,
    hosts: overHosts((request.kind ?? BLANK.kind) as Kind) ? (request.hosts ?? BLANK.hosts) : BLANK.hosts,
    hardware: request.gpus ? "gpu" : "cpu",
    gpus: request.gpus || BLANK.gpus,
    gpuModel: request.gpu_model ?? "",
    gpuMemoryGib: many(GIB, request.gpu_memory_bytes),
    tier: request.tier ?? "",
    cpus: request.cpus ?? BLANK.cpus,
    memoryGib: many(GIB, request.memory_bytes),
    runtime: request.runtime === "process" || request.runtime === "docker" ? request.runtime : "",
    image: request.image ?? "",
    command: (request.argv ?? []).map(quoted).join(" "),
    entrypoint: request.entrypoint == null ? "" : quoted(request.entrypoint),
    env: Object.entries(request.env ?? {})
      .map(([name, value]) => `${name}=${value ?? ""}`)
      .join("\n"),
    volumes: (request.volumes ?? []).join("\n"),
    secrets: (request.secrets ?? []).join("\n"),
    ports: (request.ports ?? []).join(", "),
    sshKeys: (request.ssh_keys ?? []).join("\n"),
    notebook: request.notebook ?? BLANK.notebook,
    host: request.host_id ?? "",
    maxPrice: request.max_price_per_hour ?? "",
    hours: many(3600, request.max_duration_seconds),
    budget: request.budget ?? "",
    idleMinutes: many(60, request.idle_seconds),
    waitHours: many(3600, request.wait_seconds),
    simulated: request.simulated ?? false,
    ...toPlace(request),
    more: {
      ...(request.slice ? { slice: request.slice } : {}),
      ...(request.restart_members ? { restart_members: true } : {}),
      ...(request.registry_secret ? { registry_secret: request.registry_secret } : {}),
    },
  };
}

/** The fields of a registry's login; both empty: there is none. */
export interface LoginDraft {
  image: string;
  registryUser: string;
  registryPassword: string;
}

/** The login, which stays out of the request: that is planned with, kept and shown. */
export function readLogin(draft: LoginDraft, faults: Partial<Record<keyof LoginDraft, string>>): RegistryLogin | null {
  const username = draft.registryUser.trim();
  const password = draft.registryPassword;
  if (!username && !password) return null;
  if (!username) faults.registryUser = "A user name beside the password";
  if (!password) faults.registryPassword = "A password beside the user name";
  if (!draft.image.trim()) faults.image = "The image that the registry's login is for";
  return { username, password };
}

/**
 * The login for an existing cluster: none where no host is added; one where its image wants
 * it again.
 */
export function loginOf(
  draft: LoginDraft,
  adds: boolean,
  needed: boolean,
): { login: RegistryLogin | null; faults: Partial<Record<keyof LoginDraft, string>>; sound: boolean } {
  const faults: Partial<Record<keyof LoginDraft, string>> = {};
  const login = adds ? readLogin(draft, faults) : null;
  return { login, faults, sound: Object.keys(faults).length === 0 && (login !== null || !adds || !needed) };
}

/** A request as it is sent, with the login; or as it is shown, which never has the password. */
export const withLogin = <T extends object>(request: T, login: RegistryLogin | null): T =>
  login ? { ...request, registry_login: login } : request;
export const shownWith = <T extends object>(request: T, login: RegistryLogin | null): T =>
  withLogin(request, login && { ...login, password: "YOUR_PASSWORD" });

export function gib<F extends string>(
  draft: Texts<F>,
  field: F,
  faults: FaultsOf<F>,
  put: (bytes: number) => void,
): void {
  const text = draft[field].trim();
  if (!text) return;
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) > 0) put(Math.round(Number(text) * GIB));
  else faults[field] = "A number of GiB";
}

/** One program in place of the image's own, as a shell would read it; `''` is none. */
export function readEntrypoint(
  draft: Readonly<Record<"entrypoint" | "image", string>>,
  faults: Partial<Record<"entrypoint", string>>,
  put: (program: string) => void,
): void {
  try {
    const [program, ...more] = splitCommand(draft.entrypoint);
    if (program === undefined) return;
    if (more.length) faults.entrypoint = "One program; its arguments belong to the command";
    else if (program && !draft.image.trim()) faults.entrypoint = "Only with an image: it replaces the image's program";
    else put(program);
  } catch (failure) {
    faults.entrypoint = (failure as Error).message;
  }
}

const NUMBER = /^\d+(\.\d+)?$/;

type Texts<F extends string> = Readonly<Record<F, string>>;
type FaultsOf<F extends string> = Partial<Record<F, string>>;

/** An amount of money that a form may hold, above 0 or from `least`; it is put as it was typed. */
export function readAmount<F extends string>(
  draft: Texts<F>,
  field: F,
  faults: FaultsOf<F>,
  put: (amount: string) => void,
  least = Number.MIN_VALUE,
): void {
  const text = draft[field].trim();
  if (!text) return;
  if (NUMBER.test(text) && Number(text) >= least) put(text);
  else faults[field] = "An amount such as 0.50";
}

/** A span that a form may hold, in a unit of so many seconds and of at least so many. */
export function readSpan<F extends string>(
  draft: Texts<F>,
  field: F,
  faults: FaultsOf<F>,
  [unit, least, what]: readonly [number, number, string],
  put: (seconds: number) => void,
): void {
  const text = draft[field].trim();
  if (!text) return;
  if (NUMBER.test(text) && Number(text) * unit >= least) put(Math.round(Number(text) * unit));
  else faults[field] = what;
}

/** True for a cluster that may be ended because nobody uses it: not for work that ends by itself. */
export const mayIdle = (draft: Draft) => draft.kind === "service" || !draft.command.trim();

function readLimits(draft: Draft, request: ClusterRequest, faults: Faults): void {
  readAmount(draft, "budget", faults, (amount) => (request.budget = amount));
  readSpan(
    draft,
    "hours",
    faults,
    [3600, 1, "A number of hours"],
    (seconds) => (request.max_duration_seconds = seconds),
  );
  readSpan(draft, "waitHours", faults, [3600, 1, "A number of hours"], (seconds) => (request.wait_seconds = seconds));
  if (mayIdle(draft))
    readSpan(
      draft,
      "idleMinutes",
      faults,
      [60, 60, "A number of minutes, 1 or more"],
      (seconds) => (request.idle_seconds = seconds),
    );
}

export function readEnv(draft: Texts<"env">, request: Pick<ClusterRequest, "env">, faults: FaultsOf<"env">): void {
  const env: Record<string, string> = {};
  for (const line of draft.env.split("\n").filter((one) => one.trim())) {
    const pair = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line);
    if (!pair) faults.env = `Not NAME=value: ${line.trim()}`;
    else env[pair[1]!] = pair[2]!;
  }
  if (Object.keys(env).length) request.env = env;
}

/** A box without a command is one to work in: it starts Jupyter unless that is unchecked. */
function readBox(draft: Draft, request: ClusterRequest, faults: Faults): void {
  const keys = draft.sshKeys
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  if (keys.some((key) => key.includes("PRIVATE KEY")))
    faults.sshKeys = "That is a private key: keep it, and paste the .pub file beside it";
  else if (keys.some((key) => !/^(ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]+( .*)?$/.test(key)))
    faults.sshKeys = "A line as in id_ed25519.pub for each key";
  else if (keys.length) request.ssh_keys = keys;
  if (draft.notebook && request.argv?.length === 0) request.notebook = true;
}

function readPorts(draft: Draft, request: ClusterRequest, faults: Faults): void {
  const words = draft.ports.split(/[\s,]+/).filter(Boolean);
  const ports = words.map(Number);
  if (ports.some((port) => !Number.isInteger(port) || port < 1 || port > 65535))
    faults.ports = "Ports are numbers from 1 to 65535";
  else if (ports.length) request.ports = ports;
}

/** Words as a POSIX shell would split them: quotes and backslashes, nothing else is special. */
export function splitCommand(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]!;
    const next = text[at + 1];
    if (quote === "'") {
      if (char === "'") quote = null;
      else word += char;
    } else if (char === "\\" && next !== undefined && (quote === null || '"\\$`'.includes(next))) {
      word = (word ?? "") + next;
      at += 1;
    } else if (quote === '"') {
      if (char === '"') quote = null;
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + char;
    }
  }
  if (quote) throw new Error(`A quote (${quote}) is not closed`);
  if (word !== null) words.push(word);
  return words;
}

/** A file that holds NAME:PASSWORD, for the command line. */
export const LOGIN_FILE = "login.txt";

/** The entrypoint as words of a command line; an empty one is a word, too. */
export const entrypointWords = ({ entrypoint }: { entrypoint?: string | null }): string[] =>
  entrypoint == null ? [] : ["--entrypoint", quoted(entrypoint)];

/** The same request as the `windrow` command. */
export function asCommand(request: KeptRequest, hasLogin = false): string {
  const words = ["windrow", "cluster", "create"];
  const flag = (name: string, value: string | number | null | undefined) =>
    value !== undefined && value !== null && value !== "" && words.push(name, quoted(String(value)));
  if (request.kind !== "box") flag("--kind", request.kind);
  flag("--name", request.name);
  if (request.gpus && !request.gpu_model)
    flag("--gpu", request.gpu_memory_bytes ? `${request.gpu_memory_bytes / GIB}GiB:${request.gpus}` : request.gpus);
  if (request.cpus && request.cpus !== 1) flag("--cpus", request.cpus);
  if (request.memory_bytes) flag("--memory", `${request.memory_bytes / GIB}GiB`);
  flag("--tier", request.tier);
  flag("--runtime", request.simulated ? "simulated" : request.runtime);
  flag("--image", request.image);
  words.push(...entrypointWords(request));
  if (hasLogin) flag("--registry-login", LOGIN_FILE);
  if (request.gpu_model && request.gpus) flag("--gpu", `${request.gpu_model}:${request.gpus}`);
  flag("--slice", request.slice);
  if (request.restart_members) words.push("--restart-members");
  flag("--host", request.host_id);
  flag("--max-price", request.max_price_per_hour);
  words.push(...placeWords(request));
  if (request.hosts && request.hosts > 1) flag("--hosts", request.hosts);
  flag("--max-duration", request.max_duration_seconds && `${request.max_duration_seconds}s`);
  flag("--budget", request.budget);
  flag("--wait", request.wait_seconds && `${request.wait_seconds}s`);
  flag("--idle", request.idle_seconds && `${request.idle_seconds}s`);
  for (const [name, value] of Object.entries(request.env ?? {})) flag("--env", `${name}=${value}`);
  for (const port of request.ports ?? []) flag("--port", port);
  for (const one of request.volumes ?? []) flag("--volume", one);
  for (const one of request.secrets ?? []) flag("--secret", one);
  flag("--registry-secret", request.registry_secret);
  // Keys come from files there: those of ~/.ssh by themselves, into a box without a command.
  const plain = request.kind === "box" && !request.argv?.length;
  if (plain && !request.ssh_keys?.length) words.push("--no-ssh");
  if (!plain && request.ssh_keys?.length) words.push("--ssh-key", "~/.ssh/id_ed25519.pub");
  if (plain !== (request.notebook ?? false)) words.push(plain ? "--no-notebook" : "--notebook");
  if (request.argv?.length) words.push("--", ...request.argv.map(quoted));
  return words.join(" ");
}

/** A call as a line of curl; the token stays a variable, so that nobody pastes one into a history. */
export function callOf(method: string, path: string, body: unknown, origin: string): string {
  const verb = method === "GET" || (method === "POST" && body !== undefined) ? "" : ` -X ${method}`;
  const json =
    body === undefined ? "" : ` -H "Content-Type: application/json" \\\n  -d ${quoted(JSON.stringify(body))}`;
  const address = quoted(`${origin}${wholePath(path)}`);
  return `curl -fsS${verb} ${address} \\\n  -H "Authorization: Bearer $WINDROW_TOKEN"${json}`;
}
