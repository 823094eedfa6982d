// Where hosts of a cluster or a job have to be, and how good: the fields of a form, its request, its command. Pure.
import type { ClusterRequest } from "../api/types.ts";
import { quoted } from "../parts/shell.ts";

const LABEL = "[A-Za-z0-9][A-Za-z0-9._/-]{0,62}(=[A-Za-z0-9._/-]{1,63})?";

/** Each field as a text: its option, its form, and what is said of a text that has not that form. */
const TEXTS = {
  region: ["--region", /^.{1,64}$/, "At most 64 characters"],
  near: ["--near", /^[^\s:]{1,64}(:(1000|\d{1,3}))?$/, "A region such as eu-1, or eu-1:20 for 20 ms"],
  country: ["--country", /^[A-Z]{2}$/, "Two capital letters such as DE"],
  provider_id: ["--provider", /^.{1,128}$/, "At most 128 characters"],
  labels: ["--label", new RegExp(`^${LABEL}([\\s,]+${LABEL})*$`), "Words, or KEY=VALUE"],
  min_bandwidth_mbps: ["--min-bandwidth", /^([1-9]\d{0,5}|1000000)$/, "A whole number from 1 to 1000000"],
  min_reliability_percent: ["--min-reliability", /^([1-9]\d?|100)$/, "A whole number from 1 to 100"],
} as const;

export type PlaceText = keyof typeof TEXTS;
type Placed = Pick<ClusterRequest, PlaceText | "verified">;
export type PlaceDraft = Record<PlaceText, string> & { verified: boolean };

const NAMES = Object.keys(TEXTS) as PlaceText[];
const text = (value: unknown) => [value ?? ""].flat().join(" ");

/** The fields of a form for this request. */
export const toPlace = (request: { [name in keyof Placed]?: unknown }): PlaceDraft => ({
  ...(Object.fromEntries(NAMES.map((name) => [name, text(request[name])])) as Record<PlaceText, string>),
  verified: request.verified === true,
});

export const BLANK_PLACE = toPlace({});

type Faults = Partial<Record<PlaceText, string>>;

export function readPlace(draft: PlaceDraft, request: Placed, faults: Faults): void {
  for (const name of NAMES) {
    const [, form, fault] = TEXTS[name];
    const said = draft[name].trim();
    const value = name === "labels" ? said.split(/[\s,]+/) : name.startsWith("min_") ? Number(said) : said;
    if (said && form.test(said)) Object.assign(request, { [name]: value });
    else if (said) faults[name] = fault;
  }
  if (draft.verified) request.verified = true;
}

/** The same as options of the `windrow` command. */
export const placeWords = (request: Placed): string[] => [
  ...NAMES.flatMap((name) => [request[name] ?? []].flat().flatMap((value) => [TEXTS[name][0], quoted(String(value))])),
  ...(request.verified ? ["--verified"] : []),
];

/** The fields of a form that follow from a change of a request. */
export const PLACE_CHANGES: Record<string, (value: unknown) => Partial<PlaceDraft>> = {
  ...Object.fromEntries(NAMES.map((name) => [name, (value: unknown) => ({ [name]: text(value) })])),
  verified: (value) => ({ verified: value === true }),
};
