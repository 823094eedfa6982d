// What the pages of alerts say and ask: words and tones, an own rule from its form, what is said twice. Pure.
import type {
  Alert,
  Attention,
  Delivery,
  InboxMessage,
  OwnRule,
  OwnRuleRequest,
  Role,
  WholeAlert,
} from "../api/types.ts";
import type { Product } from "../app/pages.ts";
import { count, duration, listed, plain } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";
import type { Tone } from "../parts/states.ts";

type Severity = Alert["severity"];

export const SEVERITY_NAMES: Record<Severity, string> = { page: "Urgent", ticket: "Can wait", info: "For information" };
export const SEVERITY_TONES: Record<Severity, Tone> = { page: "bad", ticket: "warn", info: "off" };
export const severityName = (severity: string): string => SEVERITY_NAMES[severity as Severity] ?? severity;

export const STATE_TONES: Record<Alert["state"], Tone> = {
  ...{ pending: "busy", firing: "bad", acknowledged: "busy", silenced: "off", resolved: "ok" },
};
export const DELIVERY_TONES: Record<Delivery["state"], Tone> = {
  ...{ waiting: "busy", held: "off", sent: "ok", given_up: "bad" },
};

/** Before the title of a message. */
export const MESSAGE_WORDS: Record<InboxMessage["kind"], string> = {
  ...{ firing: "", resolved: "Resolved: ", escalated: "Nobody has answered: ", test: "Test: " },
};
export const messageTone = (message: InboxMessage): Tone =>
  message.kind === "resolved" ? "ok" : SEVERITY_TONES[message.severity];

/** Who may do something about alerts; the Master's GRANTS (identity/decide.py) has the same. */
const ACTORS: readonly Role[] = ["operator", "provider", "renter", "admin"];
export const mayAct = (roles: readonly Role[]): boolean => roles.some((role) => ACTORS.includes(role));

/** "gpu-7, gpu-8 and 3 more" */
export function subjectsText({ subjects, subject_count }: Pick<Alert, "subjects" | "subject_count">): string {
  const more = subject_count - subjects.length;
  return listed(subjects) + (more > 0 && subjects.length > 0 ? ` and ${count(more)} more` : "");
}

/** The id of one thing with a page, by how it begins. */
export const hasPage = (id: string): boolean => /^(host_|GPU-|job_|cluster_|command_)./.test(id);

/** Who silenced an alert, and why; null: a silence of its rule or cause did. */
export function silencedBy({ notes }: Pick<WholeAlert, "notes">): WholeAlert["notes"][number] | null {
  const last = notes.findLast((one) => one.kind === "silenced" || one.kind === "unsilenced");
  return last?.kind === "silenced" ? last : null;
}

/** What keeps an alert from being told, or who looks after it, as a sentence; of a silenced one nothing. */
export function stateWords(alert: Alert): string {
  if (alert.state === "pending") return "It does not hold for long enough yet: nobody was told.";
  if (alert.state === "resolved") return "Resolved: what was wrong does not hold any more.";
  if (alert.state === "silenced") return "";
  if (alert.state === "acknowledged") return "Somebody looks after it: it is not told again.";
  return alert.severity === "page"
    ? "People were told. Nobody has acknowledged it: it is told again."
    : "People were told. Nobody has acknowledged it.";
}

export const SPANS: readonly (readonly [seconds: number, name: string])[] = [
  [3600, "1 hour"],
  [8 * 3600, "8 hours"],
  [86_400, "1 day"],
];

// --- the homes ---

const RENTED = /^(job|cluster|budget|balance|lease|volume)[.]/;
const OF_BOTH = /^(alertrule_|host[.]maintenance$)/;

/** The alerts of one home: of what is rented, or of what is provided. Own rules and maintenance are of both. */
export const ofProduct = (alerts: readonly Alert[], product: Product): Alert[] =>
  product === "operate"
    ? [...alerts]
    : alerts.filter(({ rule }) => OF_BOTH.test(rule) || RENTED.test(rule) === (product === "rent"));

/** Troubles of the attention list by the rules of the alerts that say the same. */
const SAYS: Readonly<Record<string, RegExp>> = {
  no_relay: /^relay[.]down$/,
  relay: /^relay[.]down$/,
  offline: /^(host[.]lost|relay[.]down)$/,
  quarantined: /^host[.]quarantined$/,
  disk_full: /^agent[.]disk_full$/,
  hot: /^gpu[.](hot|throttled)$/,
  faulty: /^gpu[.](?!hot$|throttled$)/,
};

/** True if open alerts say all that this group of the attention list does: it is shown once. */
export function isSaid(group: Attention, alerts: readonly Alert[]): boolean {
  const code = /^(?:master|condition):(.+)$/.exec(group.kind)?.[1];
  const same = alerts.filter(({ rule }) => (code === undefined ? SAYS[group.kind]?.test(rule) : rule === code));
  return same.reduce((sum, one) => sum + Math.max(1, one.subject_count), 0) >= Math.max(1, group.count);
}

// --- own rules ---

export interface RuleDraft {
  name: string;
  of: "metric" | "event";
  metric: string;
  event: string;
  where: string;
  comparison: NonNullable<OwnRuleRequest["comparison"]>;
  threshold: string;
  durationS: string;
  severity: "ticket" | "page";
}

export const NEW_RULE: RuleDraft = {
  ...{ name: "", of: "metric", metric: "gpu_temperature_celsius", event: "job.failed", where: "", comparison: ">" },
  ...{ threshold: "85", durationS: "300", severity: "ticket" },
};

/** Metrics that people watch most; the field takes any that the Master measures. */
export const METRICS: readonly string[] = [
  ...["gpu_temperature_celsius", "gpu_memory_temperature_celsius", "gpu_utilization_ratio", "gpu_memory_used_bytes"],
  ...["gpu_power_watts", "gpu_clock_sm_hertz", "host_cpu_ratio", "host_memory_used_bytes", "host_load1"],
  ...["host_disk_used_bytes", "host_memory_pressure_ratio", "host_io_pressure_ratio", "host_workloads"],
];
export const COMPARISONS = [">", ">=", "<", "<="] as const;
export const DURATIONS: readonly number[] = [60, 300, 600, 1800, 3600, 6 * 3600, 86_400];

/** What a number of this metric means. */
export function unitOf(metric: string): string {
  const unit = metric.slice(metric.lastIndexOf("_") + 1);
  const units: Record<string, string> = {
    celsius: "°C",
    watts: "W",
    bytes: "bytes",
    hertz: "Hz",
    ratio: "from 0 to 1",
  };
  return units[unit] ?? "";
}

/** The kinds of events that built-in rules name, for the field of another one. */
export const eventKinds = (signals: readonly string[]): string[] =>
  [...new Set(signals.flatMap((signal) => signal.match(/\b[a-z_]+(?:[.][a-z_]+)+\b/g) ?? []))].sort();

const SCOPE = /^([a-z]+)=(\S+)$/;

/** "host=gpu-7 tier=h100/A" as labels; null: it cannot be read. */
export function scopeFrom(text: string): Record<string, string> | null {
  const found = text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((word) => SCOPE.exec(word));
  if (found.some((one) => one === null)) return null;
  return Object.fromEntries(found.map((one) => [one![1]!, one![2]!]));
}

export const scopeText = (scope: Readonly<Record<string, string>>): string =>
  Object.entries(scope)
    .map((one) => one.join("="))
    .join(" ");

type Faults = Partial<Record<"name" | "metric" | "event" | "where" | "threshold", string>>;

/** The request of a form, and what is wrong with it by its field. */
export function ruleFrom(draft: RuleDraft): { body: OwnRuleRequest; faults: Faults } {
  const isMetric = draft.of === "metric";
  const scope = scopeFrom(draft.where);
  const threshold = Number(draft.threshold);
  const isNumber = draft.threshold.trim() !== "" && Number.isFinite(threshold);
  const faults: Faults = {};
  if (!draft.name.trim()) faults.name = "A name, such as hot";
  if (isMetric && !/^[a-z0-9_]+$/.test(draft.metric.trim())) faults.metric = "A metric, such as gpu_power_watts";
  if (!isMetric && !/^[a-z_]+([.][a-z_]+)+$/.test(draft.event.trim())) faults.event = "A kind, such as job.failed";
  if (scope === null) faults.where = "Words of the form label=value, such as host=gpu-7";
  if (!isNumber) faults.threshold = "A number";
  else if (!isMetric && (threshold < 1 || !Number.isInteger(threshold))) faults.threshold = "A count from 1 on";
  const body: OwnRuleRequest = {
    name: draft.name.trim(),
    ...(isMetric
      ? { metric: draft.metric.trim(), comparison: draft.comparison }
      : { event: draft.event.trim(), comparison: ">=" as const }),
    scope: scope ?? {},
    threshold: isNumber ? threshold : 1,
    duration_s: Number(draft.durationS),
    severity: draft.severity,
  };
  return { body, faults };
}

export const draftOf = (rule: OwnRule): RuleDraft => ({
  name: rule.name,
  of: rule.metric === null ? "event" : "metric",
  metric: rule.metric ?? NEW_RULE.metric,
  event: rule.event ?? NEW_RULE.event,
  where: scopeText(rule.scope),
  comparison: rule.comparison as RuleDraft["comparison"],
  threshold: String(rule.threshold),
  durationS: String(Number(rule.duration_s)),
  severity: rule.severity === "page" ? "page" : "ticket",
});

/** "gpu_temperature_celsius > 85 for 5 min where host=gpu-7" */
export function ruleText(
  rule: Pick<OwnRule, "metric" | "event" | "scope" | "comparison" | "threshold" | "duration_s">,
) {
  const where = scopeText(rule.scope);
  const said = rule.metric
    ? `${rule.metric} ${rule.comparison} ${rule.threshold} for ${duration(rule.duration_s)}`
    : `${rule.threshold > 1 ? `${rule.threshold} times ` : ""}${rule.event}` +
      (rule.threshold > 1 ? ` within ${duration(rule.duration_s)}` : "");
  return plain(said + (where ? ` where ${where}` : ""));
}

/** The same as a line of `windrow`, which has no words for >= and <= of a metric. */
export function ruleCommand({ name, metric, event, scope, comparison, ...rule }: OwnRuleRequest): string | undefined {
  if (metric && comparison?.endsWith("=")) return undefined;
  const level = comparison?.startsWith("<") ? "--below" : "--above";
  return [
    `windrow alert rule add ${quoted(name || "NAME")}`,
    metric ? `--metric ${metric} ${level} ${rule.threshold}` : `--event ${event} --count ${rule.threshold}`,
    `--for ${rule.duration_s}s`,
    ...Object.entries(scope ?? {}).map((one) => `--where ${quoted(one.join("="))}`),
    ...(rule.severity === "page" ? ["--severity page"] : []),
  ].join(" ");
}

/** Where a span lies on a strip of the last so many milliseconds, from 0 to 1. */
export function onStrip(at: string, until: string | null, nowMs: number, spanMs: number): readonly [number, number] {
  const place = (ms: number) => Math.min(1, Math.max(0, 1 - (nowMs - ms) / spanMs));
  return [place(Date.parse(at)), place(until === null ? nowMs : Date.parse(until))];
}
