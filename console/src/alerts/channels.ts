// Channels as their form has them, and in words. Pure.
import type { Channel, ChannelScope, ChannelSettings, Role } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { quoted } from "../parts/shell.ts";

export const KIND_NAMES: Record<Channel["kind"], string> = { mail: "Mail", webhook: "Webhook", apprise: "Chat" };
export const SCOPE_NAMES: Record<ChannelScope, string> = {
  me: "All that concern me",
  project: "This project's",
  organisation: "The organisation's",
  operators: "The installation's",
};

const SCOPES: readonly (readonly [ChannelScope, readonly Role[]])[] = [
  ["project", ["admin", "renter", "provider"]],
  ["organisation", ["org_owner", "org_admin"]],
  ["operators", ["operator"]],
];

/** Whose alerts somebody can have sent. */
export const scopesFor = (roles: readonly Role[], isUser: boolean): ChannelScope[] => [
  ...(isUser ? (["me"] as const) : []),
  ...SCOPES.flatMap(([scope, of]) => (of.some((role) => roles.includes(role)) ? [scope] : [])),
];

export const settingsOf = (channel: Channel): ChannelSettings => ({
  name: channel.name,
  min_severity: channel.min_severity,
  rules: channel.rules,
  quiet: channel.quiet,
  digest_minutes: channel.digest_minutes,
  is_enabled: channel.is_enabled,
});

/** "22:00 to 07:00 Europe/Berlin; together every 60 min" */
export function pauses({ quiet, digest_minutes }: Pick<Channel, "quiet" | "digest_minutes">): string {
  return [
    ...(quiet ? [`quiet ${quiet.begin} to ${quiet.end} ${quiet.time_zone}`] : []),
    ...(digest_minutes ? [`together every ${digest_minutes} min`] : []),
  ]
    .map(plain)
    .join("; ");
}

export interface ChannelDraft {
  kind: Channel["kind"];
  target: string;
  /** Null: the first that the person may have. */
  scope: ChannelScope | null;
  name: string;
  minSeverity: Channel["min_severity"];
  rules: string;
  digest: string;
  isQuiet: boolean;
  begin: string;
  end: string;
  zone: string;
}

export const channelDraft = (channel: Channel | undefined, zone: string): ChannelDraft => ({
  kind: channel?.kind ?? "mail",
  target: "",
  scope: null,
  name: channel?.name ?? "",
  minSeverity: channel?.min_severity ?? "ticket",
  rules: channel?.rules.join(" ") ?? "",
  digest: channel?.digest_minutes ? String(channel.digest_minutes) : "",
  isQuiet: channel?.quiet != null,
  begin: channel?.quiet?.begin ?? "22:00",
  end: channel?.quiet?.end ?? "07:00",
  zone: channel?.quiet?.time_zone ?? zone,
});

const TARGETS: Record<Channel["kind"], readonly [form: RegExp, fault: string]> = {
  mail: [/.@./, "A mail address, such as ada@example.org"],
  webhook: [/^https?:\/\/./, "A URL, such as https://example.org/hook"],
  apprise: [/^[a-z]+:\/\/./, "A URL, such as slack://..."],
};

/** What keeps a draft from being saved, by its field. */
export function channelFaults(draft: ChannelDraft, isNew: boolean): Partial<Record<string, string>> {
  const faults: Partial<Record<string, string>> = {};
  if (!draft.name.trim()) faults.name = "A name";
  const [form, example] = TARGETS[draft.kind];
  if (isNew && !form.test(draft.target.trim())) faults.target = example;
  if (draft.digest.trim() && !/^([5-9]|[1-9]\d{1,2}|1[0-3]\d\d|14[0-3]\d|1440)$/.test(draft.digest.trim()))
    faults.digest = "From 5 to 1440 minutes";
  if (draft.isQuiet && (!draft.begin || !draft.end || draft.begin === draft.end)) faults.quiet = "Two times of the day";
  return faults;
}

const rulesOf = (draft: ChannelDraft): string[] => draft.rules.split(/[\s,]+/).filter(Boolean);

export const settingsFrom = (draft: ChannelDraft, isEnabled: boolean): ChannelSettings => ({
  name: draft.name.trim(),
  min_severity: draft.minSeverity,
  rules: rulesOf(draft),
  quiet: draft.isQuiet ? { begin: draft.begin, end: draft.end, time_zone: draft.zone } : null,
  digest_minutes: draft.digest.trim() && draft.kind !== "webhook" ? Number(draft.digest) : null,
  is_enabled: isEnabled,
});

/** The same as a line of `windrow`. A chat's URL holds a secret, and is read from standard input. */
export function channelCommand(draft: ChannelDraft, scope: ChannelScope): string {
  const to = draft.kind === "apprise" ? "-" : draft.target.trim() || "WHERE";
  return [
    `windrow channel add ${quoted(draft.name.trim() || "NAME")} --kind ${draft.kind} --to ${quoted(to)} --for ${scope}`,
    ...(draft.minSeverity === "ticket" ? [] : [`--min-severity ${draft.minSeverity}`]),
    ...rulesOf(draft).map((rule) => `--rule ${quoted(rule)}`),
    ...(draft.isQuiet ? [`--quiet ${draft.begin}-${draft.end} --time-zone ${quoted(draft.zone)}`] : []),
    ...(draft.digest.trim() && draft.kind !== "webhook" ? [`--digest ${draft.digest.trim()}`] : []),
  ].join(" ");
}
