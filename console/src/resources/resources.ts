// Compute resources from the fields of a form, and in words. Pure.
import type { Resource, ResourceRequest } from "../api/types.ts";
import { operand } from "../parts/shell.ts";

export const TYPES = ["on-premise", "cloud", "edge"] as const;
export const STATUSES = ["available", "busy", "maintenance", "unavailable"] as const;
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export interface ResourceDraft {
  id: string;
  type: (typeof TYPES)[number];
  provider: string;
  region: string;
  location: string;
  gpus: string;
  gpuType: string;
  cores: string;
  memory: string;
  frameworks: string;
  jobs: string;
  cost: string;
}

export const BLANK: ResourceDraft = {
  id: "",
  type: "on-premise",
  provider: "",
  region: "",
  location: "",
  gpus: "",
  gpuType: "",
  cores: "",
  memory: "",
  frameworks: "",
  jobs: "1",
  cost: "",
};

export type ResourceFaults = Partial<Record<keyof ResourceDraft, string>>;

/** The request, the same as a command, and what is wrong with the fields. */
export function toResource(draft: ResourceDraft): {
  request: ResourceRequest;
  command: string;
  faults: ResourceFaults;
} {
  const faults: ResourceFaults = {};
  const words = ["windrow resource add", operand(draft.id.trim() || "ID"), "--type", draft.type];
  const request: ResourceRequest = { resource_id: draft.id.trim(), resource_type: draft.type, capabilities: {} };
  if (!ID.test(request.resource_id)) faults.id = "1 to 128 letters, digits, dots, dashes and underscores";

  const text = (field: "provider" | "region" | "location") => {
    const said = draft[field].trim();
    if (!said) return;
    request[field] = said;
    words.push(`--${field}`, operand(said));
  };
  const number = (field: "gpus" | "cores" | "memory" | "jobs" | "cost", isWhole: boolean): number | null => {
    const said = draft[field].trim();
    if (!said) return null;
    const value = Number(said);
    if (Number.isFinite(value) && value >= 0 && (!isWhole || Number.isInteger(value))) return value;
    faults[field] = isWhole ? "A whole number" : "A number of 0 or more";
    return null;
  };

  text("provider");
  text("region");
  text("location");
  if (draft.type === "cloud" && !request.provider) faults.provider = "A cloud has a provider, such as AWS";
  const [gpus, cores, memory] = [number("gpus", true), number("cores", true), number("memory", false)];
  const gpuType = draft.gpuType.trim();
  if (gpus !== null || gpuType) request.capabilities.gpu = gpus !== 0;
  for (const [name, flag, value] of [
    ["gpu_count", "--gpu-count", gpus],
    ["gpu_type", "--gpu-type", gpuType || null],
    ["cpu_cores", "--cpu-cores", cores],
    ["memory_gb", "--memory-gb", memory],
  ] as const) {
    if (value === null) continue;
    request.capabilities[name] = value;
    words.push(flag, operand(String(value)));
  }
  const frameworks = draft.frameworks.split(/[\s,]+/).filter(Boolean);
  if (frameworks.length) request.supported_frameworks = frameworks;
  words.push(...frameworks.flatMap((one) => ["--framework", operand(one)]));
  const jobs = number("jobs", true);
  if (jobs === 0) faults.jobs = "At least 1";
  if (jobs !== null && jobs !== 1) {
    request.max_parallel_jobs = jobs;
    words.push("--max-parallel-jobs", String(jobs));
  }
  const cost = number("cost", false);
  if (cost !== null) {
    request.cost_per_hour_usd = cost;
    words.push("--cost-per-hour-usd", String(cost));
  }
  return { request, command: words.join(" "), faults };
}

/** Its GPUs in a few words. */
export function gpusOf({ capabilities }: Resource): string {
  const { gpu, gpu_count, gpu_type } = capabilities;
  if (!gpu && !gpu_count) return "none";
  return `${gpu_count ?? "?"} × ${gpu_type ?? "GPU"}`;
}

export const placeOf = ({ provider, region, location }: Resource): string =>
  [provider, region, location].filter(Boolean).join(", ");
