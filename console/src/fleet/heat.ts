// The heat map of the fleet: colours, labels, positions, movement by arrow keys. Pure.

import { bytes, celsius, compareTexts, DASH, percent, plain, words } from "../parts/format.ts";
import { toneOf } from "../parts/states.ts";
import type { FleetRow } from "./rows.ts";
import { memoryRatio } from "./rows.ts";

export const MEASURES = ["use", "temperature", "memory", "tier", "health"] as const;
export type Measure = (typeof MEASURES)[number];
export const MEASURE_NAMES: Record<Measure, string> = {
  use: "Utilisation",
  temperature: "Temperature",
  memory: "Memory used",
  tier: "Tier",
  health: "Health",
};

/** Cells of one line; a host with more goes on in the next. */
export const LINE_CELLS = 16;

export interface Step {
  /** Of the stylesheet: s0 (least) to s4 (most), a tone of states, or `none` where nothing is known. */
  look: string;
  /** In the cell. */
  mark: string;
}

/** The steps are of the display, five of equal width; they are no limits of any card. */
const FIFTHS = ["below 20%", "20 to 39%", "40 to 59%", "60 to 79%", "80% and more"];
const DEGREES = ["below 30 °C", "30 to 44 °C", "45 to 59 °C", "60 to 74 °C", "75 °C and more"];
const TIER_STEPS: Record<string, number> = { A: 4, B: 2, C: 0 };
const HEALTH: Record<string, readonly [mark: string, label: string]> = {
  ok: ["●", "Idle"],
  busy: ["◐", "Rented"],
  warn: ["▲", "Paused"],
  bad: ["✕", "Faulty or offline"],
};
const NONE: Step = { look: "none", mark: DASH };

const fifth = (ratio: number) => Math.min(4, Math.max(0, Math.floor(Math.round(ratio * 100) / 20)));
const gradeOf = (tier: string) => tier.slice(tier.lastIndexOf("/") + 1);

/** A state that is not known here is no health. */
function healthOf(row: FleetRow): string | null {
  const tone = row.state === null ? null : toneOf(row.state);
  return tone === "off" ? "warn" : tone;
}

export function stepOf(row: FleetRow, measure: Measure): Step {
  switch (measure) {
    case "use":
      return row.use === null ? NONE : { look: `s${fifth(row.use)}`, mark: String(Math.round(row.use * 100)) };
    case "temperature": {
      if (row.temperature === null) return NONE;
      const shown = Math.round(row.temperature);
      return { look: `s${Math.min(4, Math.max(0, Math.floor(shown / 15) - 1))}`, mark: String(shown) };
    }
    case "memory": {
      const ratio = memoryRatio(row);
      return ratio === null ? NONE : { look: `s${fifth(ratio)}`, mark: String(Math.round(ratio * 100)) };
    }
    case "tier": {
      if (row.tier === null) return NONE;
      const grade = gradeOf(row.tier);
      return { look: `s${TIER_STEPS[grade] ?? 0}`, mark: plain(grade).slice(0, 3) };
    }
    case "health": {
      const look = healthOf(row);
      return look === null ? NONE : { look, mark: HEALTH[look]![0] };
    }
  }
}

export function readingOf(row: FleetRow, measure: Measure): string {
  switch (measure) {
    case "use":
      return percent(row.use);
    case "temperature":
      return celsius(row.temperature);
    case "memory":
      return row.memoryUsedBytes === null ? DASH : `${bytes(row.memoryUsedBytes)} of ${bytes(row.memoryBytes)}`;
    case "tier":
      return plain(row.tier);
    case "health":
      return words(row.stateText) + (row.why === null ? "" : `: ${plain(row.why)}`);
  }
}

/** The whole of a cell in words, as a pointer shows it and a reader says it. */
export function labelOf(row: FleetRow, measure: Measure): string {
  return (
    `${plain(row.host)}${row.simulated ? " (simulated)" : ""}, ${plain(row.model)}: ` +
    `${MEASURE_NAMES[measure]} ${readingOf(row, measure)}`
  );
}

export interface LegendEntry extends Step {
  label: string;
  cells: number;
}

/** The legend: each colour with its meaning and count; "not known" only where there are such cells. */
export function legend(rows: readonly FleetRow[], measure: Measure): LegendEntry[] {
  const counts = new Map<string, number>();
  const marks = new Map<string, Step>();
  for (const row of rows) {
    const step = stepOf(row, measure);
    const key = measure === "tier" ? step.mark : step.look;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    marks.set(key, step);
  }
  const entry = (key: string, step: Step, label: string): LegendEntry => ({
    ...step,
    label,
    cells: counts.get(key) ?? 0,
  });
  const none = counts.has(measure === "tier" ? DASH : "none")
    ? [entry(measure === "tier" ? DASH : "none", NONE, "not known")]
    : [];
  if (measure === "tier")
    return [
      ...[...marks.keys()]
        .filter((key) => key !== DASH)
        .sort()
        .map((key) => entry(key, marks.get(key)!, `grade ${key}`)),
      ...none,
    ];
  if (measure === "health")
    return [...Object.entries(HEALTH).map(([look, [mark, label]]) => entry(look, { look, mark }, label)), ...none];
  return [
    ...(measure === "temperature" ? DEGREES : FIFTHS).map((label, step) =>
      entry(`s${step}`, { look: `s${step}`, mark: "" }, label),
    ),
    ...none,
  ];
}

export type Line =
  | { kind: "region"; region: string | null; hosts: number; cells: number }
  | { kind: "host"; host: FleetRow; cells: readonly FleetRow[] };

/**
 * Regions by name, those not known last; in each its hosts by name, real before simulated; a host's cards in their
 * order.
 */
export function lay(rows: readonly FleetRow[]): Line[] {
  const regions = new Map<string | null, Map<string, FleetRow[]>>();
  for (const row of rows) {
    const hosts = regions.get(row.region) ?? new Map<string, FleetRow[]>();
    regions.set(row.region, hosts);
    const cells = hosts.get(row.hostId);
    if (cells) cells.push(row);
    else hosts.set(row.hostId, [row]);
  }
  const ordered = [...regions].sort(
    ([a], [b]) => Number(a === null) - Number(b === null) || compareTexts(a ?? "", b ?? ""),
  );
  return ordered.flatMap(([region, hosts]) => {
    const inside = [...hosts.values()].sort(
      ([a], [b]) =>
        Number(a!.simulated) - Number(b!.simulated) ||
        compareTexts(a!.host, b!.host) ||
        (a!.hostId < b!.hostId ? -1 : 1),
    );
    const lines: Line[] = [
      { kind: "region", region, hosts: inside.length, cells: inside.reduce((sum, cells) => sum + cells.length, 0) },
    ];
    for (const cells of inside)
      for (let at = 0; at < cells.length; at += LINE_CELLS)
        lines.push({ kind: "host", host: cells[0]!, cells: cells.slice(at, at + LINE_CELLS) });
    return lines;
  });
}

export interface Place {
  line: number;
  cell: number;
}

/** The target of an arrow key, over headings; null: another key, or nothing further. */
export function moved(lines: readonly Line[], from: Place, key: string): Place | null {
  const cells = (line: number) => {
    const one = lines[line];
    return one?.kind === "host" ? one.cells.length : 0;
  };
  const next = (step: number): number | null => {
    for (let line = from.line + step; line >= 0 && line < lines.length; line += step) if (cells(line)) return line;
    return null;
  };
  switch (key) {
    case "ArrowRight":
      return from.cell + 1 < cells(from.line) ? { ...from, cell: from.cell + 1 } : null;
    case "ArrowLeft":
      return from.cell > 0 ? { ...from, cell: from.cell - 1 } : null;
    case "Home":
      return { ...from, cell: 0 };
    case "End":
      return { ...from, cell: Math.max(0, cells(from.line) - 1) };
    case "ArrowDown":
    case "ArrowUp": {
      const line = next(key === "ArrowDown" ? 1 : -1);
      return line === null ? null : { line, cell: Math.min(from.cell, cells(line) - 1) };
    }
    default:
      return null;
  }
}

/** The position of a GPU; the first cell where it is gone. */
export function placeOf(lines: readonly Line[], key: string | null): Place | null {
  let first: Place | null = null;
  for (const [line, one] of lines.entries()) {
    if (one.kind !== "host") continue;
    first ??= { line, cell: 0 };
    if (key === null) break;
    const cell = one.cells.findIndex((row) => row.key === key);
    if (cell >= 0) return { line, cell };
  }
  return first;
}

export function measureFrom(text: string | undefined): Measure {
  return MEASURES.find((one) => one === text) ?? "use";
}
