// What is wrong with a host and its GPUs, and the steps that mend it, from the words of conditions. Pure.
import type { Condition, Gpu, Host } from "../api/types.ts";

/** What the API can do about a host, by the last word of its route. */
export const VERBS = [
  "drain",
  "activate",
  "maintenance",
  "quarantine",
  "retire",
  "verify",
  "prove",
  "measure",
] as const;
export type Verb = (typeof VERBS)[number];

export interface Step {
  /** With commands in backticks. */
  text: string;
  /** A command to run on the host; null: there is none, or it is the button. */
  command: string | null;
  verb: Verb | null;
}

export interface Trouble {
  key: string;
  title: string;
  detail: string;
  since: string | null;
  isInfo: boolean;
  gpu: { uuid: string; index: number } | null;
  steps: readonly Step[];
}

type Place = Pick<Host, "name" | "admin_state">;
type Card = Pick<Gpu, "uuid" | "index" | "state" | "state_reason">;

const VERIFY = "Run `windrow host verify HOST`: the GPU is offered again when it passes.";
const DRAIN: Step = {
  text: "Drain the host, so that nothing new starts on it meanwhile. What runs goes on.",
  command: null,
  verb: "drain",
};
const CHECK: Step = {
  text: "Verify the host: the GPU is offered again when it passes.",
  command: null,
  verb: "verify",
};
const BACK: Step = { text: "Activate the host: it takes new work again.", command: null, verb: "activate" };

/** The sentences of a remedy; names in the place of HOST and INDEX in its commands. */
export function stepsOf(remedy: string, host: string, index: number | null): Step[] {
  const meant = remedy.replace(/`[^`]*`/g, (code) =>
    code.replaceAll("HOST", host).replaceAll("INDEX", index === null ? "INDEX" : String(index)),
  );
  return sentences(meant).map((text) => {
    const codes = [...text.matchAll(/`([^`]*)`/g)].map((found) => found[1]!);
    const verb =
      codes.map((code) => VERBS.find((one) => code.startsWith(`windrow host ${one} `))).find(Boolean) ?? null;
    const command = codes.find((code) => code.includes(" ") && !code.startsWith("windrow host ")) ?? null;
    return { text, command, verb };
  });
}

/** Ends of sentences inside of a command are none. */
function sentences(text: string): string[] {
  const found = [""];
  for (const [index, part] of text.split("`").entries()) {
    if (index % 2) {
      found[found.length - 1] += `\`${part}\``;
      continue;
    }
    const [first = "", ...rest] = part.split(/(?<=[.!?])\s+/);
    found[found.length - 1] += first;
    found.push(...rest);
  }
  return found.map((one) => one.trim()).filter(Boolean);
}

/** A broken GPU is mended while its host takes no new work, and is offered again once it was verified. */
function mending(steps: readonly Step[], host: Place, isFaulty: boolean): Step[] {
  if (!isFaulty) return [...steps];
  const has = (verb: Verb) => steps.some((step) => step.verb === verb);
  const isActive = host.admin_state === "active";
  return [
    ...(isActive && !has("drain") ? [DRAIN] : []),
    ...steps,
    ...(has("verify") ? [] : [CHECK]),
    ...(isActive ? [] : [BACK]),
  ];
}

/** Faults whose remedy serves for any other fault of the same GPU, the heaviest first. */
const HEAVIEST = ["gpu.lost", "gpu.remap_failed", "gpu.host_fault"];

/** The rank of a condition by its code, with or without its GPU. Codes without a rank come last. */
function rank(code: string): number {
  const found = HEAVIEST.indexOf(code.split(":")[0] ?? "");
  return found < 0 ? HEAVIEST.length : found;
}

/** What is wrong with one GPU at once is one trouble, with one list of what to do: that of the heaviest. */
function asOne(ill: readonly Condition[]): Condition {
  const [first, ...others] = [...ill].sort((one, other) => rank(one.code) - rank(other.code));
  const isAll = rank(first!.code) === HEAVIEST.length;
  const distinct = (texts: readonly string[]) => [...new Set(texts)].join(" ");
  return {
    ...first!,
    title: [first!, ...others].map((one) => one.title).join(", "),
    detail: distinct([first!, ...others].map((one) => one.detail)),
    remedy: isAll ? distinct([first!, ...others].map((one) => one.remedy)) : first!.remedy,
    since: ill.map((one) => one.since).sort()[0] ?? first!.since,
  };
}

/** Conditions with those of one GPU as one; what only explains stays by itself. */
function joined(found: readonly Condition[]): Condition[] {
  const groups = new Map<string, Condition[]>();
  for (const one of found) {
    const [code, ...device] = one.code.split(":");
    const key = one.severity !== "info" && device.length ? device.join(":") : code!;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()].map((ill) => asOne(ill));
}

/** What is wrong with these GPUs, or with the host itself: what the conditions say, then what they do not. */
export function troublesOf(host: Place, found: readonly Condition[], cards: readonly Card[]): Trouble[] {
  const told = new Set<string>();
  const rows = joined(found).map((one): Trouble => {
    const gpu = cards.find((card) => one.code.endsWith(`:${card.uuid}`)) ?? null;
    const isInfo = one.severity === "info";
    if (gpu && !isInfo) told.add(gpu.uuid);
    return {
      key: one.code,
      title: `${one.about ? `${one.about}: ` : ""}${one.title}`,
      detail: one.detail,
      since: one.since,
      isInfo,
      gpu,
      steps: mending(stepsOf(one.remedy, host.name, gpu?.index ?? null), host, gpu?.state === "faulty"),
    };
  });
  const silent = host.admin_state === "quarantined" ? [] : cards.filter((card) => card.state === "faulty");
  const others = silent
    .filter((card) => !told.has(card.uuid))
    .map(
      (card): Trouble => ({
        key: card.uuid,
        title: `GPU ${card.index}: faulty`,
        detail: card.state_reason ?? "",
        since: null,
        isInfo: false,
        gpu: card,
        steps: mending(stepsOf(VERIFY, host.name, card.index), host, true),
      }),
    );
  return [...rows, ...others].sort((one, other) => Number(one.isInfo) - Number(other.isInfo));
}
