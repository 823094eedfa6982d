// The fields of a form that follow from changes of its request. Pure.
import type { Refusal } from "../api/types.ts";
import type { JobDraft } from "../jobs/jobs.ts";
import { GIB } from "../parts/format.ts";
import { PLACE_CHANGES } from "./place.ts";
import type { Draft } from "./request.ts";

type Changes = Refusal["ways"][number]["changes"];

const text = (value: unknown) => (value === null ? "" : String(value));
const gib = (value: unknown) => (value === null ? "" : String(Number(value) / GIB));

const OF_A_CLUSTER: Record<string, (value: unknown) => Partial<Draft>> = {
  hosts: (value) => ({ hosts: Number(value) }),
  gpus: (value) => ({ gpus: Number(value) }),
  gpu_model: (value) => ({ gpuModel: text(value) }),
  gpu_memory_bytes: (value) => ({ gpuMemoryGib: gib(value) }),
  tier: (value) => ({ tier: text(value) }),
  cpus: (value) => ({ cpus: Number(value) }),
  memory_bytes: (value) => ({ memoryGib: gib(value) }),
  max_price_per_hour: (value) => ({ maxPrice: text(value) }),
  host_id: (value) => ({ host: text(value) }),
  image: (value) => ({ image: text(value) }),
  slice: (value) => ({ more: value === null ? {} : { slice: String(value) } }),
  ...PLACE_CHANGES,
};

const OF_A_JOB: Record<string, (value: unknown) => Partial<JobDraft>> = {
  gpus: (value) => ({ gpus: Number(value) }),
  gpu_model: (value) => ({ gpu: text(value) }),
  gpu_memory_bytes: (value) => ({ gpu: `${gib(value)}GiB` }),
  tier: (value) => ({ tier: text(value) }),
  cpus: (value) => ({ cpus: Number(value) }),
  image: (value) => ({ image: text(value) }),
  memory_bytes: (value) => ({ memoryGib: gib(value) }),
  max_price_per_hour: (value) => ({ maxPrice: text(value) }),
  host_id: (value) => ({ host: text(value) }),
  slice: (value) => ({ slice: text(value) }),
  ...PLACE_CHANGES,
};

/** What waiting would do for a request that fits nowhere now; "" where it would not help. */
export const waitText = (isPossible: boolean, waitSeconds: number | null | undefined): string =>
  !isPossible
    ? ""
    : waitSeconds
      ? "It will wait in the queue, and starts by itself when there is a place."
      : "Or let it wait in the queue: fill in Wait for a place.";

export const clusterChange = (changes: Changes): Partial<Draft> => change(changes, OF_A_CLUSTER);

export const jobChange = (changes: Changes): Partial<JobDraft> => change(changes, OF_A_JOB);

function change<D>(changes: Changes, fields: Record<string, (value: unknown) => Partial<D>>): Partial<D> {
  const parts = Object.entries(changes).map(([name, value]) => fields[name]?.(value));
  return Object.assign({}, ...parts);
}
