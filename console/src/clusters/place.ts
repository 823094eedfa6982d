// Where hosts of a cluster or a job have to be, and how good: the fields of a form, its request, its command. Pure.
import type { ClusterRequest } from "../api/types.ts";
import { quoted } from "../parts/shell.ts";

export interface PlaceDraft {
  region: string;
  /** REGION or REGION:MS. */
  near: string;
  country: string;
  provider: string;
  /** WORD or KEY=VALUE, blanks or commas between them. */
  labels: string;
  minBandwidth: string;
  minReliability: string;
  verified: boolean;
}

export const BLANK_PLACE: PlaceDraft = {
  region: "",
  near: "",
  country: "",
  provider: "",
  labels: "",
  minBandwidth: "",
  minReliability: "",
  verified: false,
};

type Placed = Pick<
  ClusterRequest,
  | "region"
  | "near"
  | "country"
  | "provider"
  | "labels"
  | "min_bandwidth_mbps"
  | "min_reliability_percent"
  | "verified"
>;

const NEAR = /^[^\s:]{1,64}(:(1000|\d{1,3}))?$/;
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}(=[A-Za-z0-9._/-]{1,63})?$/;

export function readPlace(
  draft: PlaceDraft,
  request: Placed,
  faults: Partial<Record<keyof PlaceDraft, string>>,
): void {
  const [region, near, provider] = [draft.region.trim(), draft.near.trim(), draft.provider.trim()];
  if (region) request.region = region;
  if (near && !NEAR.test(near)) faults.near = "A region such as eu-1, or eu-1:20 for 20 ms";
  else if (near) request.near = near;
  const country = draft.country.trim().toUpperCase();
  if (country && !/^[A-Z]{2}$/.test(country)) faults.country = "Two letters such as DE";
  else if (country) request.country = country;
  if (provider) request.provider = provider;
  const labels = draft.labels.split(/[\s,]+/).filter(Boolean);
  if (!labels.every((label) => LABEL.test(label))) faults.labels = "Words, or KEY=VALUE";
  else if (labels.length) request.labels = labels;
  readWhole(draft, "minBandwidth", 1_000_000, faults, (least) => (request.min_bandwidth_mbps = least));
  readWhole(draft, "minReliability", 100, faults, (least) => (request.min_reliability_percent = least));
  if (draft.verified) request.verified = true;
}

function readWhole<F extends "minBandwidth" | "minReliability">(
  draft: PlaceDraft,
  field: F,
  most: number,
  faults: Partial<Record<F, string>>,
  put: (least: number) => void,
): void {
  const text = draft[field].trim();
  if (!text) return;
  if (/^\d{1,7}$/.test(text) && Number(text) >= 1 && Number(text) <= most) put(Number(text));
  else faults[field] = `A whole number from 1 to ${most}`;
}

/** The fields of a form for this request. */
export const toPlace = (request: { [name in keyof Placed]?: Placed[name] | null }): PlaceDraft => ({
  region: request.region ?? "",
  near: request.near ?? "",
  country: request.country ?? "",
  provider: request.provider ?? "",
  labels: (request.labels ?? []).join(" "),
  minBandwidth: String(request.min_bandwidth_mbps ?? ""),
  minReliability: String(request.min_reliability_percent ?? ""),
  verified: request.verified ?? false,
});

/** The same as options of the `windrow` command. */
export function placeWords(request: Placed): string[] {
  const flags = [
    ["--region", request.region],
    ["--near", request.near],
    ["--country", request.country],
    ["--provider", request.provider],
    ...(request.labels ?? []).map((label) => ["--label", label]),
    ["--min-bandwidth", request.min_bandwidth_mbps],
    ["--min-reliability", request.min_reliability_percent],
  ] as const;
  const said = flags.flatMap(([name, value]) => (value ? [String(name), quoted(String(value))] : []));
  return request.verified ? [...said, "--verified"] : said;
}

const text = (value: unknown) => (value === null ? "" : String(value));

/** The fields of a form that follow from a change of a request. */
export const PLACE_CHANGES: Record<string, (value: unknown) => Partial<PlaceDraft>> = {
  region: (value) => ({ region: text(value) }),
  near: (value) => ({ near: text(value) }),
  country: (value) => ({ country: text(value) }),
  provider: (value) => ({ provider: text(value) }),
  labels: (value) => ({ labels: (value as readonly string[]).join(" ") }),
  min_bandwidth_mbps: (value) => ({ minBandwidth: text(value) }),
  min_reliability_percent: (value) => ({ minReliability: text(value) }),
  verified: (value) => ({ verified: Boolean(value) }),
};
