// What can be rented, a card for each model, from the offers of each grade. Pure.
import type { Offer } from "../api/types.ts";

export interface Place {
  /** "h100", or "h100:1g.10gb" of a slice; with a word where it is simulated. */
  id: string;
  name: string;
  isGpu: boolean;
  isSimulated: boolean;
  /** A class takes every grade of it. */
  tier: string;
  slice: string;
  memoryBytes: number | null;
  free: number;
  total: number;
  /** Of the cheapest grade, for a GPU or a processor. */
  price: string;
  currency: string;
  hasContainers: boolean;
  /** Real hosts that run no containers: what they run, they run only for their owner. */
  isOwnersOnly: boolean;
}

/** Those that start now first, real before simulated, GPUs before processors, cheap before dear. */
export function placesOf(offers: readonly Offer[]): Place[] {
  const classes = new Map<string, Offer[]>();
  for (const offer of offers) {
    const id = placeId(offer.tier, offer.simulated);
    classes.set(id, [...(classes.get(id) ?? []), offer]);
  }
  const order = (place: Place) => [place.isSimulated, place.free === 0, !place.isGpu, Number(place.price)].map(Number);
  return [...classes].map(([id, of]) => placeOf(id, of)).sort((one, other) => compare(order(one), order(other)));
}

export const placeId = (tier: string, isSimulated: boolean) => `${classOf(tier)}${isSimulated ? " simulated" : ""}`;

const classOf = (tier: string) => tier.split("/")[0]!;

function placeOf(id: string, of: readonly Offer[]): Place {
  const first = of[0]!;
  const tier = classOf(first.tier);
  const [model = tier, slice = ""] = tier.split(":");
  const dear = (offer: Offer) => Number(offer.price_per_hour);
  const memories = of.flatMap((offer) => offer.min_memory_bytes ?? []);
  const isGpu = first.unit !== "processor";
  const hasContainers = of.some((offer) => offer.runtimes.includes("docker"));
  return {
    id,
    name: isGpu ? `${model.toUpperCase()} ${slice}`.trim() : "No GPU",
    isGpu,
    isSimulated: first.simulated,
    tier,
    slice,
    memoryBytes: isGpu && memories.length ? Math.min(...memories) : null,
    free: of.reduce((sum, offer) => sum + offer.free, 0),
    total: of.reduce((sum, offer) => sum + offer.total, 0),
    price: of.reduce((least, offer) => (dear(offer) < dear(least) ? offer : least)).price_per_hour,
    currency: first.currency,
    hasContainers,
    isOwnersOnly: !first.simulated && !hasContainers,
  };
}

function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((value, index) => value !== other[index]);
  return at < 0 ? 0 : one[at]! - other[at]!;
}

/**
 * The one that is chosen where nobody chose: free and real with containers, a GPU before a host without one; else what
 * is free; else what is there. needsGpu: what runs there does nothing without one.
 */
export function firstPlace(places: readonly Place[], needsGpu: boolean): Place | null {
  const fits = places.filter((place) => place.isGpu || !needsGpu);
  const free = fits.filter((place) => place.free > 0);
  return free.find((place) => place.hasContainers && !place.isSimulated) ?? free[0] ?? fits[0] ?? null;
}
