// Places elsewhere in words: of the tries to find one, and of an attempt. Pure.
import type { AttemptPlace, Try } from "../api/types.ts";
import { amount, plain } from "../parts/format.ts";
import type { Tone } from "../parts/states.ts";

const TONES: Readonly<Record<Try["state"], Tone>> = {
  asking: "busy",
  booting: "busy",
  ready: "ok",
  used: "ok",
  failed: "bad",
  dropped: "off",
};
export const tryTone = (state: Try["state"]): Tone => TONES[state];

const SAYS: Readonly<Partial<Record<Try["state"], string>>> = {
  asking: "Its provider is asked.",
  booting: "It starts and has not joined yet.",
  ready: "It has joined: the work starts there next.",
};
/** Why a try is as it is. */
export const trySays = ({ state, said }: Pick<Try, "state" | "said">): string => plain(said ?? SAYS[state] ?? "");

type Bought = Pick<Try, "machine" | "spot" | "service">;
export const boughtText = ({ machine, spot, service }: Bought): string =>
  `${spot ? "spot " : ""}${plain(machine)}${service ? ", a run at a service" : ""}`;

export const tryPrice = ({ price_per_hour, currency }: Pick<Try, "price_per_hour" | "currency">): string =>
  `${amount(price_per_hour)} ${plain(currency)}`;

/** A word in a list; null: in this market. */
export const placeWord = (place: AttemptPlace | null | undefined): string | null =>
  place ? `${plain(place.backend)} ${plain(place.zone ?? place.region)}${place.spot ? ", spot" : ""}` : null;
