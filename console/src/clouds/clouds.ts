// Backends and purchases in words, and the fields of their forms as requests and as commands. Pure.
import type {
  CloudBackend,
  CloudBackendRequest,
  CloudBuyer,
  CloudFinding,
  CloudKind,
  CloudOffer,
  CloudPurchase,
  CloudPurchaseRequest,
} from "../api/types.ts";
import { amount, bytes, count, DASH, plain } from "../parts/format.ts";
import { operand, quoted } from "../parts/shell.ts";
import type { Tone } from "../parts/states.ts";

/** As the Master takes it (api/backend_routes.py). */
const NAME = /^[a-z][a-z0-9-]{0,62}$/;
const AMOUNT = /^\d+(\.\d+)?$/;
const WHOLE = /^\d+$/;
const HOURS_MOST = 744;

const MONEY_CAPS = ["per_hour", "per_day", "in_all"] as const;
const COUNT_CAPS = ["machines", "vcpus"] as const;
type Caps = CloudBackendRequest["caps"];
type Cap = (typeof MONEY_CAPS)[number] | (typeof COUNT_CAPS)[number];

/** The fields of caps in a form, with their labels; those of money end with the currency. */
export const CAPS: readonly (readonly [Cap, string])[] = [
  ["per_day", "Per day"],
  ["in_all", "In all"],
  ["per_hour", "Per hour"],
  ["machines", "Machines"],
  ["vcpus", "vCPUs"],
];
export const capLabel = (cap: Cap, label: string, currency: string): string =>
  MONEY_CAPS.some((one) => one === cap) ? `${label} (${currency})` : label;

export type CapsDraft = Record<Cap | "margin", string>;
export const NO_CAPS: CapsDraft = { per_hour: "", per_day: "", in_all: "", machines: "", vcpus: "", margin: "0" };

export const draftOfCaps = ({ caps, margin_percent }: Pick<CloudBackend, "caps" | "margin_percent">): CapsDraft => ({
  per_hour: caps.per_hour ?? "",
  per_day: caps.per_day ?? "",
  in_all: caps.in_all ?? "",
  machines: caps.machines?.toString() ?? "",
  vcpus: caps.vcpus?.toString() ?? "",
  margin: margin_percent.toString(),
});

export type CapsFaults = Partial<Record<keyof CapsDraft, string>>;

export function toCaps(draft: CapsDraft) {
  const faults: CapsFaults = {};
  const money = (cap: Cap): string | null => {
    const text = draft[cap].trim();
    if (text && !AMOUNT.test(text)) faults[cap] = "An amount, such as 40";
    return text || null;
  };
  const whole = (cap: Cap): number | null => {
    const text = draft[cap].trim();
    if (text && !WHOLE.test(text)) faults[cap] = "A whole number";
    return text ? Number(text) : null;
  };
  const caps = {
    per_hour: money("per_hour"),
    per_day: money("per_day"),
    in_all: money("in_all"),
    machines: whole("machines"),
    vcpus: whole("vcpus"),
  };
  if (MONEY_CAPS.every((cap) => caps[cap] === null)) faults.per_day = "Per day, in all or per hour needs a cap";
  const margin = draft.margin.trim() || "0";
  if (!WHOLE.test(margin)) faults.margin = "A whole number of percent";
  return { caps, margin: Number(margin), faults };
}

const flagOf = (name: string): string => `--${name.replaceAll("_", "-")}`;

/** The command's options for the caps. An empty cap is left out, or is `none` where it replaces another. */
const capFlags = (caps: Caps, isWhole: boolean): string[] =>
  [...MONEY_CAPS, ...COUNT_CAPS].flatMap((cap) => {
    const value = caps[cap];
    return value == null ? (isWhole ? [`${flagOf(cap)} none`] : []) : [`${flagOf(cap)} ${value}`];
  });

export const capsCommand = (name: string, caps: Caps, margin: number): string =>
  ["windrow backend cap", operand(name), ...capFlags(caps, true), `--margin ${margin}`].join(" ");

export interface BackendDraft extends CapsDraft {
  name: string;
  kind: string;
  settings: Record<string, string>;
  secrets: Record<string, string>;
}

/** Of the provider's prices: that of its kind, or of a setting. */
export const currencyOf = ({ settings }: Pick<BackendDraft, "settings">, kind: CloudKind | undefined): string =>
  kind?.currency ||
  settings.currency?.trim() ||
  kind?.settings.find((one) => one.name === "currency")?.default ||
  "USD";

const filled = (fields: Record<string, string>, of: readonly { name: string }[]): Record<string, string> =>
  Object.fromEntries(of.flatMap(({ name }) => (fields[name]?.trim() ? [[name, fields[name].trim()]] : [])));

export function toBackend(draft: BackendDraft, kind: CloudKind | undefined) {
  const { caps, margin, faults } = toCaps(draft);
  const told: Partial<Record<string, string>> = { ...faults };
  if (!NAME.test(draft.name)) told.name = "Lower-case letters, digits and -, a letter first";
  if (!kind) told.kind = "One of the list";
  const body: CloudBackendRequest = {
    name: draft.name,
    kind: draft.kind,
    settings: filled(draft.settings, kind?.settings ?? []),
    secrets: filled(draft.secrets, kind?.secrets ?? []),
    caps,
    margin_percent: margin,
  };
  for (const one of kind?.settings ?? [])
    if (one.required && !body.settings?.[one.name]) told[`settings.${one.name}`] = "It needs a value";
  for (const one of kind?.secrets ?? [])
    if (one.required && !body.secrets?.[one.name]) told[`secrets.${one.name}`] = "It needs a value";
  return { body, faults: told };
}

/** The same without a secret, for eyes; the command reads them from a file. */
export const withoutSecrets = <T extends Pick<CloudBackendRequest, "secrets">>(body: T): T => ({
  ...body,
  secrets: Object.fromEntries(Object.keys(body.secrets ?? {}).map((name) => [name, "..."])),
});

/** New credentials of a backend: the fields that are filled in, at least one. */
export function toSecrets(given: Record<string, string>, kind: CloudKind | undefined) {
  const secrets = filled(given, kind?.secrets ?? []);
  const lacks = (kind?.secrets ?? []).some((one) => one.required && !secrets[one.name]);
  return { body: { secrets }, ready: Object.keys(secrets).length > 0 && !lacks };
}

export const renewCommand = (name: string, secrets: Record<string, string>): string =>
  `windrow backend renew ${operand(name)}${Object.keys(secrets).length > 0 ? " --credentials FILE" : ""}`;

export const backendCommand = ({ name, kind, settings, secrets, caps, margin_percent }: CloudBackendRequest): string =>
  [
    `windrow backend add ${operand(name || "NAME")} --kind ${quoted(kind)}`,
    ...Object.entries(settings ?? {}).map(([key, value]) => `--set ${quoted(`${key}=${value}`)}`),
    ...(Object.keys(secrets ?? {}).length > 0 ? ["--credentials FILE"] : []),
    ...capFlags(caps, false),
    ...(margin_percent ? [`--margin ${margin_percent}`] : []),
  ].join(" ");

/** The form of a project that may buy: what it may spend on a day and in all. */
export interface BuyerDraft {
  account: string;
  per_day: string;
  in_all: string;
}
export const NO_BUYER: BuyerDraft = { account: "", per_day: "", in_all: "" };
export const draftOfBuyer = ({ account_id, per_day, in_all }: CloudBuyer): BuyerDraft => ({
  account: account_id,
  per_day: per_day ?? "",
  in_all: in_all ?? "",
});

type BuyerCap = "per_day" | "in_all";
export function toBuyer(draft: BuyerDraft) {
  const faults: Partial<Record<BuyerCap, string>> = {};
  const money = (cap: BuyerCap): string | null => {
    const text = draft[cap].trim();
    if (text && !AMOUNT.test(text)) faults[cap] = "An amount, such as 40";
    return text || null;
  };
  const body = { per_day: money("per_day"), in_all: money("in_all") };
  if (body.per_day === null && body.in_all === null) faults.per_day = "Per day or in all needs a cap";
  return { body, faults };
}

export const buyerCommand = (name: string, account: string, body: ReturnType<typeof toBuyer>["body"]): string =>
  [
    `windrow backend allow ${operand(name)} ${operand(account || "PROJECT")}`,
    ...(["per_day", "in_all"] as const).flatMap((cap) => (body[cap] ? [`${flagOf(cap)} ${body[cap]}`] : [])),
  ].join(" ");

/** How far an adapter was tried, in words of a list. */
const LEVELS: Readonly<Record<CloudBackend["level"], string>> = {
  live: "tried for real",
  emulator: "emulator only",
  protocol: "our stub only",
  spec: "by description",
  fixtures: "by samples",
  none: "never tried",
};
export const levelWord = (level: CloudBackend["level"]): string => LEVELS[level];

/** Good, not checked, or what is wrong. */
export function healthOf({ checked_at, findings }: Pick<CloudBackend, "checked_at" | "findings">) {
  const wrong = findings.filter((one) => !one.good);
  if (checked_at === null) return { state: "not checked", tone: "warn" as Tone, reason: "Check it before you buy." };
  if (wrong.length === 0) return { state: "good", tone: "ok" as Tone, reason: null };
  return { state: `wrong: ${wrong.map((one) => one.what).join(", ")}`, tone: "bad" as Tone, reason: reasonOf(wrong) };
}

const reasonOf = (findings: readonly CloudFinding[]): string =>
  findings.map((one) => plain([one.said, one.way_out].filter(Boolean).join(" "))).join(" ");

/** Of a cap that is used; null: there is none. */
export const capRatio = (used: string | number, cap: string | number | null): number | null =>
  cap === null ? null : Number(cap) > 0 ? Number(used) / Number(cap) : 1;

export const ofCap = (used: string, cap: string | null, currency: string): string =>
  `${amount(used, 2)}${cap === null ? "" : ` of ${amount(cap, 2)}`} ${plain(currency)}`;

/** What is owed in each currency; a currency in which nothing is owed is left out. */
export function owedNow(backends: readonly CloudBackend[]) {
  const sums = new Map<string, { perHour: number; today: number; inAll: number; living: number }>();
  for (const { caps, owed } of backends) {
    const sum = sums.get(caps.currency) ?? { perHour: 0, today: 0, inAll: 0, living: 0 };
    sums.set(caps.currency, {
      perHour: sum.perHour + Number(owed.per_hour),
      today: sum.today + Number(owed.today),
      inAll: sum.inAll + Number(owed.in_all),
      living: sum.living + owed.living,
    });
  }
  const all = [...sums];
  const used = all.filter(([, { inAll, living }]) => inAll > 0 || living > 0);
  return used.length > 0 ? used : all.slice(0, 1);
}

const TONES: Readonly<Record<CloudPurchase["state"], Tone>> = {
  wanted: "busy",
  asking: "busy",
  doubtful: "warn",
  booting: "busy",
  joined: "ok",
  serving: "ok",
  idle: "warn",
  draining: "warn",
  ending: "busy",
  gone: "off",
  refused: "bad",
  never_made: "off",
};
export const purchaseTone = (state: CloudPurchase["state"]): Tone => TONES[state];

const SAYS: Partial<Record<CloudPurchase["state"], string>> = {
  wanted: "Its cost is reserved; the provider is asked next.",
  asking: "The provider is being asked.",
  doubtful: "The provider's answer was lost: its lists will tell whether there is a machine.",
  booting: "The machine exists and is paid for; it has not joined yet.",
  joined: "Its host is there and has had no work yet.",
  idle: "It has no work. It is ended soon, or at the end of what is paid for.",
  draining: "It takes no more work and is ended when the last has left.",
  ending: "Its end was asked for; it is paid for until the provider says that it is gone.",
  never_made: "The provider never made it.",
};
export const purchaseReason = ({ state, reason }: Pick<CloudPurchase, "state" | "reason">): string | null =>
  [SAYS[state], reason && plain(reason)].filter(Boolean).join(" ") || null;

/** Within this part of its forecast a cost was forecast well. */
const NEAR = 0.15;

/** Cost divided by forecast of each ended purchase that has both, the oldest first. */
export function againstForecast(rows: readonly CloudPurchase[]) {
  const points = rows
    .filter((one) => one.state === "gone" && one.paid !== null && Number(one.forecast) > 0)
    .map((one) => ({ id: one.id, ratio: Number(one.spent) / Number(one.forecast) }))
    .reverse();
  const mean = points.reduce((sum, { ratio }) => sum + ratio, 0) / points.length;
  return { points, mean, near: points.filter(({ ratio }) => Math.abs(ratio - 1) <= NEAR).length };
}

type Sized = Pick<CloudOffer, "gpu" | "gpu_count" | "cpus" | "memory_bytes" | "kind">;
export const machineOf = ({ gpu, gpu_count, cpus }: Sized): string =>
  gpu_count > 0 ? `${gpu_count} × ${plain(gpu)}` : `${count(cpus)} vCPUs`;

/** In a list to choose from: what fits a narrow field. */
export const offerText = (offer: CloudOffer): string =>
  [
    `${amount(offer.price_per_hour)} ${plain(offer.currency)}/h`,
    machineOf(offer),
    offer.kind,
    plain(offer.zone ?? offer.region),
  ].join(" · ");

/** The rest of an offer. */
export const offerNote = ({ offer, cpus, memory_bytes, priced_on }: CloudOffer): string =>
  `${plain(offer)}: ${count(cpus)} vCPUs, ${bytes(memory_bytes)}. Price of ${priced_on}.`;

export interface PurchaseDraft {
  backend: string;
  offer: string;
  account: string;
  hours: string;
}

export function toPurchase(draft: PurchaseDraft, offer: CloudOffer | undefined) {
  const hours = Number(draft.hours);
  const faults: Partial<Record<keyof PurchaseDraft, string>> = {};
  if (!draft.backend) faults.backend = "Choose a backend";
  if (!offer) faults.offer = "Choose an offer";
  if (!(hours > 0 && hours <= HOURS_MOST)) faults.hours = `Hours, up to ${HOURS_MOST}`;
  const body: CloudPurchaseRequest = {
    backend: draft.backend,
    offer: draft.offer,
    ...(draft.account ? { account: draft.account } : {}),
    hours,
  };
  const most = offer && !faults.hours ? (Number(offer.price_per_hour) * hours).toFixed(4) : null;
  return { body, faults, most: most === null ? DASH : `${amount(most, 2)} ${plain(offer?.currency)}` };
}

export const purchaseCommand = ({ backend, offer, account, hours }: CloudPurchaseRequest): string =>
  [
    `windrow purchase new ${operand(backend || "BACKEND")} ${quoted(offer || "OFFER")} --hours ${hours || "HOURS"}h`,
    ...(account ? [`--project ${quoted(account)}`] : []),
    "--yes",
  ].join(" ");
