import { expect, test } from "vitest";
import type { Cluster, Offer, Template } from "../api/types.ts";
import { toRequest } from "../clusters/request.ts";
import { toJob } from "../jobs/jobs.ts";
import { BLANK_CHOICE, changed, imageOf, toJobDraft, toMachine } from "./choice.ts";
import { firstPlace, placesOf } from "./places.ts";
import { keyName, usedBefore } from "./saved.ts";

const offer = (tier: string, price: string, more: Partial<Offer> = {}) =>
  ({
    tier,
    unit: tier.startsWith("cpu") ? "processor" : "gpu",
    simulated: false,
    free: 1,
    total: 2,
    price_per_hour: price,
    currency: "CRD",
    runtimes: ["docker"],
    min_memory_bytes: 80e9,
    ...more,
  }) as Offer;

const OFFERS = [
  offer("h100/A", "3"),
  offer("h100/C", "2", { min_memory_bytes: 79e9, free: 3 }),
  offer("h100:1g.10gb/C", "0.4", { free: 0 }),
  offer("cpu/C", "0.01", { runtimes: ["process"] }),
  offer("l40s/C", "0.9", { simulated: true }),
];

test("a model is one card, from its cheapest grade; what starts now and is real comes first", () => {
  const places = placesOf(OFFERS);
  expect(places.map((one) => [one.name, one.free, one.price])).toEqual([
    ["H100", 4, "2"],
    ["No GPU", 1, "0.01"],
    ["H100 1g.10gb", 0, "0.4"],
    ["L40S", 1, "0.9"],
  ]);
  expect([places[0]!.tier, places[0]!.memoryBytes, places[2]!.slice]).toEqual(["h100", 79e9, "1g.10gb"]);
});

test("nobody has to choose a place: a free GPU, else a real host, else what is there", () => {
  const first = (of: readonly Offer[], needsGpu = false) => firstPlace(placesOf(of), needsGpu)?.id ?? null;
  expect(first(OFFERS)).toBe("h100");
  expect(first(OFFERS.slice(2))).toBe("cpu");
  expect(first(OFFERS.slice(3), true)).toBe("l40s simulated");
  expect(first([OFFERS[2]!])).toBe("h100:1g.10gb");
  // A host without containers runs something for its owner alone.
  expect(first([offer("h100/A", "3", { runtimes: ["process"] }), offer("cpu/C", "0.01")])).toBe("cpu");
  expect(first([])).toBe(null);
});

test("PyTorch with Jupyter starts as it stands, ends after 8 hours or 30 idle minutes", () => {
  const [place] = placesOf(OFFERS);
  const { request, faults } = toRequest(toMachine(BLANK_CHOICE, place!));
  expect(faults).toEqual({});
  expect(request).toMatchObject({
    kind: "box",
    notebook: true,
    tier: "h100",
    gpus: 1,
    image: "quay.io/jupyter/pytorch-notebook:cuda12-latest",
    max_duration_seconds: 8 * 3600,
    idle_seconds: 1800,
  });
  const own = placesOf(OFFERS).find((one) => one.id === "cpu")!;
  expect(toRequest(toMachine(BLANK_CHOICE, own)).request).not.toHaveProperty("image");
  expect(imageOf({ what: "jupyter", image: "mine" }, own)).toBe("mine");
});

test("each card is a request of its kind", () => {
  const [place, , slice] = placesOf(OFFERS);
  const of = (what: typeof BLANK_CHOICE.what, more = {}) =>
    toRequest(toMachine({ ...BLANK_CHOICE, what, ...more }, place!));
  expect(of("vllm").request).toMatchObject({
    kind: "service",
    ports: [8000],
    image: "vllm/vllm-openai:latest",
    argv: ["--model", "Qwen/Qwen3-0.6B", "--port", "8000"],
  });
  expect(of("ray", { hosts: 3 }).request).toMatchObject({ kind: "ray", hosts: 3, image: "rayproject/ray:latest-gpu" });
  expect(of("ssh", { sshKeys: "ssh-ed25519 AAAA me" }).request.ssh_keys).toEqual(["ssh-ed25519 AAAA me"]);
  expect(of("ssh").request).not.toHaveProperty("notebook");
  expect(of("image", { image: "a/b:1", command: "serve --all" }).request).toMatchObject({
    image: "a/b:1",
    argv: ["serve", "--all"],
  });
  expect(toRequest(toMachine(BLANK_CHOICE, slice!)).request).toMatchObject({ tier: "h100:1g.10gb", slice: "1g.10gb" });
});

test("a job has the command, the place and the limits, and waits for its files", () => {
  const [place] = placesOf(OFFERS);
  const choice = { ...BLANK_CHOICE, what: "job" as const, command: "python train.py", gpus: 2, budget: "5" };
  expect(toJob(toJobDraft(choice, place!), true)).toMatchObject({
    faults: {},
    request: { await_files: true, gpus: 2, tier: "h100", max_duration_seconds: 8 * 3600, budget: "5" },
  });
  expect(toJob(toJobDraft({ ...choice, hours: "soon" }, place!)).faults.minutes).toBeDefined();
});

test("a change with which it would fit is made where it is shown, else kept", () => {
  const [place] = placesOf(OFFERS);
  const choice = changed(BLANK_CHOICE, { gpus: 4, memoryGib: "8", tier: "" });
  expect([choice.gpus, choice.also]).toEqual([4, { memoryGib: "8", tier: "" }]);
  expect(toMachine(choice, place!)).toMatchObject({ gpus: 4, memoryGib: "8", tier: "" });
});

test("images and keys of before are offered, the newest first", () => {
  const machine = (image: string | null, ...ssh_keys: string[]) =>
    ({ account_id: "mine", request: { image, ssh_keys } }) as Cluster;
  const used = usedBefore(
    "mine",
    [
      { ...machine("x", "ssh-ed25519 K2 a-stranger"), account_id: "theirs" },
      machine("b", "ssh-ed25519 K1 me@home"),
      machine(null),
      machine("a", "ssh-ed25519 K1 me@home"),
    ],
    [],
    [machine("c") as unknown as Template],
  );
  expect(used).toEqual({ images: ["b", "a", "c"], keys: ["ssh-ed25519 K1 me@home"] });
  expect([keyName("ssh-ed25519 K1 me@home"), keyName("ssh-ed25519 AAAABBBBCCCC")]).toEqual([
    "me@home",
    "ed25519 …BBBBCCCC",
  ]);
});
