// The layout of the map. Coordinates are not known: Accesses stand by region and id, agents around theirs, a shorter
// round trip nearer to it; an agent that stays keeps its place. Pure.
import { compareTexts } from "../parts/format.ts";

export type Link = "online" | "suspect" | "lost";

export interface Agent {
  id: string;
  name: string;
  access: string;
  link: Link;
  rttMs: number | null;
  simulated: boolean;
}

export interface Place {
  id: string;
  region: string | null;
}

/** An agent's place: which one of the places around which Access. */
export interface Seat {
  access: string;
  slot: number;
}

export type Seats = ReadonlyMap<string, Seat>;

export interface Point {
  x: number;
  y: number;
}

export interface Cell extends Point {
  place: Place;
  /** The largest distance of a dot from the middle, in pixels. */
  radius: number;
}

/** Beyond this many dots nobody sees one: circles with counts say more. */
export const DOTS_MOST = 2_000;
const SLOTS_LEAST = 32;
const CELL_LEAST_PX = 230;
const CELL_MOST_PX = 360;
/** Above a cell's circle: region, id, figures. */
export const HEAD_PX = 58;
const EDGE_PX = 14;
/** As in the stylesheet: on either side of the map, and its last line with the padding above and below. */
const MAP_PADDING_PX = 12;
const MAP_FOOT_PX = 56;
/** Kept free for the Access itself. */
export const CORE_PX = 22;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/**
 * Bands of the round trip in milliseconds (below, share of the places from, to): within a city, a continent,
 * beyond.
 */
const BANDS: readonly (readonly [belowMs: number, from: number, to: number])[] = [
  [10, 0, 0.4],
  [60, 0.4, 0.75],
  [Infinity, 0.75, 1],
];
const UNKNOWN_MS = 20;

/** Any Access may have to take all agents: there are twice as many places as agents, and never fewer than before. */
export function capacityFor(agents: number, before = 0): number {
  let slots = Math.max(SLOTS_LEAST, before);
  while (slots < 2 * agents) slots *= 2;
  return slots;
}

/** FNV-1a, 32 bits: the same host asks for the same place in every browser. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

/** An agent that stays at an Access keeps its place; a new one gets the place of its id, or the next free one. */
export function seat(before: Seats, agents: readonly Agent[], capacity: number): Seats {
  const after = new Map<string, Seat>();
  const taken = new Map<string, Set<number>>();
  const takenAt = (access: string): Set<number> => {
    const found = taken.get(access) ?? new Set<number>();
    taken.set(access, found);
    return found;
  };
  const coming: Agent[] = [];
  for (const agent of agents) {
    const held = before.get(agent.id);
    if (held?.access !== agent.access) {
      coming.push(agent);
      continue;
    }
    after.set(agent.id, held);
    takenAt(agent.access).add(held.slot);
  }
  coming.sort((one, other) => (one.id < other.id ? -1 : 1));
  for (const agent of coming) {
    const held = takenAt(agent.access);
    let slot = wanted(agent, capacity);
    while (held.has(slot)) slot = (slot + 1) % capacity;
    held.add(slot);
    after.set(agent.id, { access: agent.access, slot });
  }
  return after;
}

function wanted(agent: Agent, capacity: number): number {
  const rtt = agent.rttMs ?? UNKNOWN_MS;
  const [, from, to] = BANDS.find(([below]) => rtt < below) ?? BANDS[BANDS.length - 1]!;
  const first = Math.floor(from * capacity);
  return first + (hash(agent.id) % Math.max(1, Math.floor((to - from) * capacity)));
}

/** The place of a slot around the middle: a sunflower's seeds, of equal area each. */
export function around(slot: number, capacity: number, radius: number): Point {
  const inner = CORE_PX * CORE_PX;
  const far = Math.sqrt(inner + (radius * radius - inner) * ((slot + 0.5) / capacity));
  const angle = slot * GOLDEN_ANGLE;
  return { x: far * Math.cos(angle), y: far * Math.sin(angle) };
}

/** Small enough to lie side by side, large enough to be seen. */
export function dotRadius(capacity: number, radius: number): number {
  return Math.max(1.6, Math.min(5, 0.62 * radius * Math.sqrt(1 / capacity)));
}

/** Regions by name, those that nobody knows last; in each the Accesses by id. */
export function inOrder<T extends Place>(places: readonly T[]): T[] {
  return [...places].sort((one, other) => {
    if (one.region !== other.region)
      return one.region === null ? 1 : other.region === null ? -1 : compareTexts(one.region, other.region);
    return one.id < other.id ? -1 : 1;
  });
}

/** Side by side, as many as fit into this width, then the next row. */
export function lay(places: readonly Place[], width: number): { cells: Cell[]; height: number } {
  const perRow = Math.max(1, Math.min(places.length, Math.floor(width / CELL_LEAST_PX)));
  const size = Math.min(CELL_MOST_PX, Math.floor(width / perRow));
  const share = width / perRow;
  const cells = inOrder(places).map((place, index) => ({
    place,
    x: share * (index % perRow) + share / 2,
    y: (size + HEAD_PX) * Math.floor(index / perRow) + HEAD_PX + size / 2,
    radius: size / 2 - EDGE_PX,
  }));
  return { cells, height: Math.ceil(places.length / perRow) * (size + HEAD_PX) };
}

/** Of the whole map in a panel of this width: the pictures, the padding around them and the line below. */
export function mapHeight(places: readonly Place[], width: number): number {
  return lay(places, width - 2 * MAP_PADDING_PX).height + MAP_FOOT_PX;
}

/** An Access's agents, counted by state. */
export type Counts = Record<Link, number>;

export function countsOf(agents: readonly Agent[]): Map<string, Counts> {
  const found = new Map<string, Counts>();
  for (const agent of agents) {
    const counts = found.get(agent.access) ?? { online: 0, suspect: 0, lost: 0 };
    counts[agent.link] += 1;
    found.set(agent.access, counts);
  }
  return found;
}

/** The radius of a circle for so many of all: its surface is their share of the cell's. */
export function bubbleRadius(count: number, all: number, radius: number): number {
  return count === 0 || all === 0 ? 0 : Math.max(4, (radius - 4) * Math.sqrt(count / all));
}

/** Counts the moves between two looks by origin and destination; new and departed agents did not move. */
export function moves(
  before: ReadonlyMap<string, string>,
  agents: readonly Agent[],
): { from: string; to: string; count: number }[] {
  const found = new Map<string, { from: string; to: string; count: number }>();
  for (const agent of agents) {
    const from = before.get(agent.id);
    if (from === undefined || from === agent.access) continue;
    const key = `${from}\n${agent.access}`;
    const one = found.get(key) ?? { from, to: agent.access, count: 0 };
    one.count += 1;
    found.set(key, one);
  }
  return [...found.values()];
}
