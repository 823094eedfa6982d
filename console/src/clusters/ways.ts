// Single changes to a request that fits nowhere, to be tried in turn. Pure.
import type { JobDraft } from "../jobs/jobs.ts";
import { type Draft, overHosts } from "./request.ts";

export interface Way<D> {
  words: string;
  change: Partial<D>;
}

type Shared = Pick<Draft, "gpus" | "tier" | "cpus" | "image" | "simulated">;

export function clusterWays(draft: Draft): Way<Draft>[] {
  const onGpus = draft.hardware === "gpu";
  return kept<Draft>([
    [draft.host !== "", "on any host", { host: "" }],
    [onGpus && draft.gpuModel !== "", "with any GPU model", { gpuModel: "" }],
    [onGpus && draft.gpuMemoryGib !== "", "with any GPU memory", { gpuMemoryGib: "" }],
    [draft.memoryGib !== "", "with any memory", { memoryGib: "" }],
    [draft.maxPrice !== "", "at any price", { maxPrice: "" }],
    [draft.runtime !== "", "with any runtime", { runtime: "" }],
    [overHosts(draft.kind) && draft.hosts > 1, "on 1 host", { hosts: 1 }],
    ...shared(draft, onGpus),
    [onGpus, "on processors instead of GPUs", { hardware: "cpu" }],
    simulated(draft),
  ]);
}

export function jobWays(draft: JobDraft): Way<JobDraft>[] {
  const onGpus = draft.gpus > 0;
  return kept<JobDraft>([
    [onGpus && draft.gpu !== "", "with any GPU", { gpu: "" }],
    ...shared(draft, onGpus),
    [onGpus, "on processors instead of GPUs", { gpus: 0, gpu: "" }],
    simulated(draft),
  ]);
}

type Tried<D> = readonly [boolean, string, Partial<D>];

const kept = <D>(tried: readonly Tried<D>[]): Way<D>[] =>
  tried.flatMap(([applies, words, change]) => (applies ? [{ words, change }] : []));

const shared = (draft: Shared, onGpus: boolean): Tried<Shared>[] => [
  [onGpus && draft.gpus > 1, "with 1 GPU", { gpus: 1 }],
  [draft.tier !== "", "in any tier", { tier: "" }],
  [draft.cpus > 1, "with 1 processor", { cpus: 1 }],
  [draft.image !== "", "without a container image", { image: "" }],
];

const simulated = (draft: Shared): Tried<Shared> =>
  draft.simulated
    ? [true, "on real hosts", { simulated: false }]
    : [true, "on simulated hosts, which compute nothing", { simulated: true }];
