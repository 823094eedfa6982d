import { expect, test } from "vitest";
import type { ProofStep, Stage } from "../api/types.ts";
import { paceOf, proofLabel, stageLabel, stepText, toneOfStage } from "./stages.ts";

const stage = (state: string): Stage => ({ name: "tested", state, at: null, words: "" });
const step = (over: Partial<ProofStep> = {}): ProofStep => ({
  name: "reach",
  state: "passed",
  took_ms: 1900,
  words: "Greeted.",
  fields: {},
  ...over,
});

test("a host is looked at again the sooner the more it moves", () => {
  expect(paceOf([stage("waiting"), stage("running")])).toBe("live");
  expect(paceOf([stage("done"), stage("waiting")])).toBe("brisk");
  expect(paceOf([stage("done"), stage("skipped"), stage("failed")])).toBe("calm");
});

test("a state has a tone, also one that a newer Master says", () => {
  expect(["done", "running", "failed", "skipped", "unheard"].map(toneOfStage)).toEqual([
    "ok",
    "busy",
    "bad",
    "off",
    "off",
  ]);
  expect(toneOfStage(null)).toBe("busy");
});

test("what does not apply is said so", () => {
  expect(stageLabel(stage("skipped"))).toBe("Tested: does not apply");
  expect(stageLabel(stage("done"))).toBe("Tested: done");
});

test("a step says how long it took, and nothing where nothing was timed", () => {
  expect(stepText(step())).toBe("Reach passed in 1.9 s: Greeted.");
  expect(stepText(step({ took_ms: null, state: "absent" }))).toBe("Reach absent: Greeted.");
});

test("a proof says who wanted it", () => {
  const proof = { proof_id: "p", at: "", ended_at: null, was_asked: true, outcome: null, words: null, steps: [] };
  expect(proofLabel(proof)).toBe("Asked for: it runs");
  expect(proofLabel({ ...proof, was_asked: false, outcome: "passed" })).toBe("By itself: passed");
});
