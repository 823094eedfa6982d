// What is rented in three steps: what runs, where, and until when, as the drafts of the forms with all options. Pure.
import { BLANK, type Draft } from "../clusters/request.ts";
import { BLANK_JOB, type JobDraft } from "../jobs/jobs.ts";
import type { Place } from "./places.ts";

export type What = "jupyter" | "vllm" | "ssh" | "ray" | "image" | "job";

interface Recipe {
  id: What;
  name: string;
  about: string;
  /** Where containers run, until another is chosen; null: the host's own. gpu: for a place that has one. */
  image: { gpu: string; cpu: string } | null;
  needsGpu: boolean;
  draft: Partial<Draft>;
}

export const RECIPES: readonly Recipe[] = [
  {
    id: "jupyter",
    name: "PyTorch with Jupyter",
    about: "Notebooks in your browser.",
    image: { gpu: "quay.io/jupyter/pytorch-notebook:cuda12-latest", cpu: "quay.io/jupyter/pytorch-notebook:latest" },
    needsGpu: false,
    draft: { notebook: true },
  },
  {
    id: "vllm",
    name: "vLLM service",
    about: "A language model at an HTTPS address, with the API of OpenAI.",
    image: { gpu: "vllm/vllm-openai:latest", cpu: "vllm/vllm-openai:latest" },
    needsGpu: true,
    draft: { kind: "service", ports: "8000" },
  },
  {
    id: "ssh",
    name: "SSH machine",
    about: "Linux for your terminal and VS Code.",
    image: null,
    needsGpu: false,
    draft: { notebook: false },
  },
  {
    id: "ray",
    name: "Ray cluster",
    about: "Several hosts as one.",
    image: { gpu: "rayproject/ray:latest-gpu", cpu: "rayproject/ray:latest" },
    needsGpu: false,
    draft: { kind: "ray" },
  },
  {
    id: "image",
    name: "Own image",
    about: "Your container and your command.",
    image: null,
    needsGpu: false,
    draft: { notebook: false },
  },
  {
    id: "job",
    name: "A job from a folder",
    about: "Runs a command on your files, keeps the results, and ends.",
    image: null,
    needsGpu: false,
    draft: {},
  },
];

export const recipeOf = (what: What): Recipe => RECIPES.find((one) => one.id === what) ?? RECIPES[0]!;

/** What one says beside the choice of a card. */
export interface Choice {
  what: What;
  name: string;
  /** null: the recipe's own. */
  image: string | null;
  command: string;
  packages: string;
  /** That vLLM serves, by its name at Hugging Face. */
  model: string;
  sshKeys: string;
  /** A machine to log in to is wanted without a key: only the terminal in the browser reaches it. */
  isWithoutSsh: boolean;
  env: string;
  secrets: string;
  volumes: string;
  hosts: number;
  gpus: number;
  cpus: number;
  hours: string;
  idleMinutes: string;
  budget: string;
  /** Changes with which it would fit, that no field here shows. */
  also: Partial<Draft> & Partial<JobDraft>;
}

export const BLANK_CHOICE: Choice = {
  what: "jupyter",
  name: "",
  image: null,
  command: "",
  packages: "",
  model: "Qwen/Qwen3-0.6B",
  sshKeys: "",
  isWithoutSsh: false,
  env: "",
  secrets: "",
  volumes: "",
  hosts: 2,
  gpus: 1,
  cpus: 1,
  hours: "8",
  idleMinutes: "30",
  budget: "",
  also: {},
};

const TYPED = [
  ...(["name", "image", "command", "packages", "model", "sshKeys", "env", "secrets", "volumes"] as const),
  ...(["hours", "idleMinutes", "budget"] as const),
];

/** Something was typed that would have to be typed again: cards are chosen again with a click. */
export const isFilled = (choice: Choice): boolean => TYPED.some((name) => choice[name] !== BLANK_CHOICE[name]);

/** The image that runs: none where no container does, but for one that was asked for. */
export function imageOf({ what, image }: Pick<Choice, "what" | "image">, place: Place | null): string {
  const own = recipeOf(what).image;
  if (image !== null) return image;
  return own === null || !place?.hasContainers ? "" : place.isGpu ? own.gpu : own.cpu;
}

/** vLLM's own program takes its words from an image's, and is named where there is none. */
function commandOf(choice: Choice, place: Place | null): string {
  if (choice.what === "image") return choice.command;
  if (choice.what !== "vllm") return "";
  const words = `--model ${choice.model.trim()} --port 8000`;
  return imageOf(choice, place) ? words : `python3 -m vllm.entrypoints.openai.api_server ${words}`;
}

/** What a machine to log in to lacks. A simulated one runs no SSH with or without a key. */
export const keyFault = ({ what, sshKeys, isWithoutSsh }: Choice, place: Place | null): { sshKeys?: string } =>
  what === "ssh" && !sshKeys.trim() && !isWithoutSsh && !place?.isSimulated
    ? { sshKeys: "A public key, or tick that no SSH is wanted" }
    : {};

const shared = (choice: Choice, place: Place | null) => ({
  name: choice.name,
  image: imageOf(choice, place),
  tier: place?.tier ?? "",
  simulated: place?.isSimulated ?? false,
  cpus: choice.cpus,
  env: choice.env,
  secrets: choice.secrets,
  volumes: choice.volumes,
  budget: choice.budget,
});

/** The same as the form of a machine has it. */
export function toMachine(choice: Choice, place: Place | null): Draft {
  const { what, also } = choice;
  return {
    ...BLANK,
    ...recipeOf(what).draft,
    ...shared(choice, place),
    command: commandOf(choice, place),
    hosts: choice.hosts,
    hardware: place?.isGpu ? "gpu" : "cpu",
    gpus: choice.gpus,
    sshKeys: (what === "ssh" && !choice.isWithoutSsh) || what === "jupyter" ? choice.sshKeys : "",
    hours: choice.hours,
    idleMinutes: choice.idleMinutes,
    more: place?.slice ? { slice: place.slice } : {},
    ...also,
  };
}

/** The same as the form of a job has it. */
export function toJobDraft(choice: Choice, place: Place | null): JobDraft {
  const hours = choice.hours.trim();
  return {
    ...BLANK_JOB,
    ...shared(choice, place),
    command: choice.command,
    packages: choice.packages,
    gpus: place?.isGpu ? choice.gpus : 0,
    slice: place?.slice ?? "",
    minutes: Number(hours) > 0 ? String(Number(hours) * 60) : hours,
    ...choice.also,
  };
}

const SHOWN = ["gpus", "cpus", "hosts", "image"] as const;

/** The choice after changes with which it would fit: of its own fields where it has them. */
export function changed(choice: Choice, part: Choice["also"]): Choice {
  const own = Object.fromEntries(SHOWN.flatMap((name) => (part[name] === undefined ? [] : [[name, part[name]]])));
  const rest = Object.entries(part).filter(([name]) => !SHOWN.some((one) => one === name));
  return { ...choice, ...own, also: { ...choice.also, ...Object.fromEntries(rest) } };
}
