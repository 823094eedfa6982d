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
type Elsewhere = Pick<ClusterRequest, "backend" | "optimize" | "spot">;
type Placed = Pick<ClusterRequest, PlaceText | "verified"> & Elsewhere;
export interface PlaceDraft extends Record<PlaceText, string> {
  verified: boolean;
  /** A backend's name, or `any`, where a machine may be bought as well; empty: this market alone. */
  backend: string;
  /** Empty: the places of this market first. */
  optimize: "" | "cost" | "speed";
  spot: boolean;
}

/** In the place of a backend's name: each that the project may use. */
export const ANY_BACKEND = "any";

/** What no bought machine has for sure (master: spec.py). */
const ONLY_HERE = {
  host_id: "a host",
  provider_id: "a provider",
  region: "a region",
  near: "a region",
  labels: "labels",
  slice: "a slice",
  simulated: "simulated hosts",
  min_bandwidth_mbps: "a bandwidth",
  min_reliability_percent: "a reliability",
} as const;
type Here = { [name in keyof typeof ONLY_HERE]?: unknown } & { hosts?: number };

const NAMES = Object.keys(TEXTS) as PlaceText[];
const text = (value: unknown) => [value ?? ""].flat().join(" ");

/** The fields of a form for this request. */
export const toPlace = (request: { [name in keyof Placed]?: unknown }): PlaceDraft => ({
  ...(Object.fromEntries(NAMES.map((name) => [name, text(request[name])])) as Record<PlaceText, string>),
  verified: request.verified === true,
  backend: text(request.backend),
  optimize: (request.optimize ?? "") as PlaceDraft["optimize"],
  spot: request.spot === true,
});

export const BLANK_PLACE = toPlace({});

export type PlaceFaults = Partial<Record<PlaceText | "backend", string>>;

/** After all that says where it may run. */
export function readPlace(draft: PlaceDraft, request: Placed & Here, faults: PlaceFaults): void {
  for (const name of NAMES) {
    const [, form, fault] = TEXTS[name];
    const said = draft[name].trim();
    const value = name === "labels" ? said.split(/[\s,]+/) : name.startsWith("min_") ? Number(said) : said;
    if (said && form.test(said)) Object.assign(request, { [name]: value });
    else if (said) faults[name] = fault;
  }
  if (draft.verified) request.verified = true;
  if (draft.backend) readElsewhere(draft, request, faults);
}

function readElsewhere(draft: PlaceDraft, request: Placed & Here, faults: PlaceFaults): void {
  request.backend = draft.backend;
  if (draft.optimize) request.optimize = draft.optimize;
  if (draft.spot) request.spot = true;
  const named = (Object.keys(ONLY_HERE) as (keyof typeof ONLY_HERE)[]).find((name) => request[name]);
  if (named) faults.backend = `A bought machine is not possible together with ${ONLY_HERE[named]}`;
  else if ((request.hosts ?? 1) > 1) faults.backend = "A bought machine is not possible together with several hosts";
}

/** The same as options of the `windrow` command. */
export const placeWords = (request: Omit<Placed, "optimize"> & { optimize?: string | null }): string[] => [
  ...NAMES.flatMap((name) => [request[name] ?? []].flat().flatMap((value) => [TEXTS[name][0], quoted(String(value))])),
  ...(request.verified ? ["--verified"] : []),
  ...(request.backend ? ["--backend", quoted(request.backend)] : []),
  ...(request.spot ? ["--spot"] : []),
  ...(request.optimize ? ["--optimize", request.optimize] : []),
];

/** The fields of a form that follow from a change of a request. */
export const PLACE_CHANGES: Record<string, (value: unknown) => Partial<PlaceDraft>> = {
  ...Object.fromEntries(NAMES.map((name) => [name, (value: unknown) => ({ [name]: text(value) })])),
  verified: (value) => ({ verified: value === true }),
};
