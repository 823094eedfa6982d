// A job's request from what a person typed, the same as a command, and what a job waits for. Pure.
import type { Job, JobRequest } from "./api/types.ts";
import { quoted, splitCommand } from "./request.ts";

export interface JobDraft {
  command: string;
  name: string;
  image: string;
  gpus: number;
  cpus: number;
  retries: number;
  minutes: string;
  budget: string;
  after: string;
  simulated: boolean;
}

export const BLANK_JOB: JobDraft = { command: "", name: "", image: "", gpus: 0, cpus: 1, retries: 0, minutes: "", budget: "", after: "", simulated: false };

export type JobFaults = Partial<Record<keyof JobDraft, string>>;

const NUMBER = /^\d+(\.\d+)?$/;

export function toJob(draft: JobDraft): { request: JobRequest; faults: JobFaults } {
  const faults: JobFaults = {};
  const request: JobRequest = { argv: [], gpus: draft.gpus, cpus: draft.cpus, retries: draft.retries };
  try {
    request.argv = splitCommand(draft.command);
    if (request.argv.length === 0) faults.command = "A command to run";
  } catch (failure) {
    faults.command = (failure as Error).message;
  }
  if (draft.name.trim()) request.name = draft.name.trim();
  if (draft.image.trim()) request.image = draft.image.trim();
  if (draft.simulated) request.simulated = true;
  if (draft.minutes.trim()) {
    if (NUMBER.test(draft.minutes.trim()) && Number(draft.minutes) > 0) request.max_duration_seconds = Number(draft.minutes) * 60;
    else faults.minutes = "A number of minutes";
  }
  if (draft.budget.trim()) {
    if (NUMBER.test(draft.budget.trim()) && Number(draft.budget) > 0) request.budget = draft.budget.trim();
    else faults.budget = "An amount such as 0.50";
  }
  const after = draft.after.split(/[\s,]+/).filter(Boolean);
  if (after.some((id) => !id.startsWith("job_"))) faults.after = "Ids of jobs: job_…";
  else if (after.length) request.after = after;
  return { request, faults };
}

/** The same as the `windrow` command, which knows real hosts only. */
export function asJobCommand(request: JobRequest): string {
  const words = ["windrow", "job", "submit", "--no-files"];
  const flag = (name: string, value: string | number | null | undefined) => value && words.push(name, quoted(String(value)));
  flag("--name", request.name);
  flag("--image", request.image);
  flag("--gpu", request.gpus);
  if (request.cpus !== 1) flag("--cpus", request.cpus);
  flag("--retries", request.retries);
  if (request.max_duration_seconds) flag("--max-duration", `${request.max_duration_seconds}s`);
  flag("--budget", request.budget);
  for (const id of request.after ?? []) flag("--after", id);
  return [...words, "--", ...request.argv.map(quoted)].join(" ");
}

export const isOver = (job: Job): boolean => job.ended_at !== null;
