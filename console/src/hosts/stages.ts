// The stages of a host from installation to listing. Pure.
import type { HostProof, ProofStep, Stage } from "../api/types.ts";
import { duration, plain, words } from "../parts/format.ts";
import { type Tone, toneOf } from "../parts/states.ts";

export const toneOfStage = (state: string | null): Tone => toneOf(state ?? "running", "stage");

/** The rate of looking again: something is in progress, something has not come yet, or nothing moves. */
export function paceOf(stages: readonly Stage[]): "live" | "brisk" | "calm" {
  if (stages.some((one) => one.state === "running")) return "live";
  return stages.some((one) => one.state === "waiting") ? "brisk" : "calm";
}

/** A stage as a screen reader says it: its name and how it is. */
export const stageLabel = (stage: Stage): string =>
  `${words(stage.name)}: ${stage.state === "skipped" ? "does not apply" : stage.state}`;

/** One step of a test rental: what it was, how long it took, what came of it. */
export function stepText(step: ProofStep): string {
  const took = step.took_ms === null ? "" : ` in ${duration(step.took_ms / 1000)}`;
  return `${words(step.name)} ${step.state}${took}: ${plain(step.words)}`;
}

/** A test rental in a few words. */
export const proofLabel = (proof: HostProof): string =>
  `${proof.was_asked ? "Asked for" : "By itself"}: ${proof.outcome ?? "it runs"}`;
