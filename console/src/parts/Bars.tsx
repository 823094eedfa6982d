// Small SVG charts of counts and sums: told apart by pattern as well as colour, and described in words.

import type { UseCounts } from "../api/types.ts";
import { amount, count, weekday } from "./format.ts";

export type Use = Exclude<keyof UseCounts, "total">;

/** The states of GPUs and hosts as the Master says them, in the order in which they are drawn and read. */
export const USES: readonly (readonly [Use, string, string])[] = [
  ["rented", "Rented", "Somebody holds it, or a part of it."],
  ["idle", "Idle", "Can be rented now."],
  ["paused", "Paused", "Cannot be rented now: its host drains, it is too hot, or something else uses it."],
  ["faulty", "Faulty", "It is broken, or its host is in quarantine."],
  ["offline", "Offline", "Its host does not answer."],
];

/** Once on a page that has such bars: what fills each group. */
export function UsePatterns() {
  return (
    <svg width="0" height="0" aria-hidden="true" style={{ position: "absolute" }}>
      <defs>
        <pattern id="wr-use-paused" width="4" height="4" patternUnits="userSpaceOnUse">
          <rect width="4" height="4" fill="var(--wr-surface)" />
          <path d="M0 2h4" stroke="var(--wr-off)" strokeWidth="1.4" />
        </pattern>
        <pattern id="wr-use-faulty" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="5" height="5" fill="var(--wr-surface)" />
          <rect width="3" height="5" fill="var(--wr-bad)" />
        </pattern>
        <pattern id="wr-use-offline" width="5" height="5" patternUnits="userSpaceOnUse">
          <rect width="5" height="5" fill="var(--wr-surface)" />
          <circle cx="2.5" cy="2.5" r="1.2" fill="var(--wr-off)" />
        </pattern>
      </defs>
    </svg>
  );
}

export const FILLS: Record<Use, string> = {
  rented: "var(--wr-meter-fill)",
  idle: "var(--wr-meter)",
  paused: "url(#wr-use-paused)",
  faulty: "url(#wr-use-faulty)",
  offline: "url(#wr-use-offline)",
};

export function UseKey({ use }: { use: Use }) {
  return (
    <svg width="14" height="10" aria-hidden="true" style={{ flex: "none" }}>
      <rect x=".5" y=".5" width="13" height="9" rx="1.5" fill={FILLS[use]} stroke="var(--wr-line-strong)" />
    </svg>
  );
}

const says = (counts: UseCounts): string =>
  USES.filter(([use]) => counts[use] > 0)
    .map(([use, name]) => `${count(counts[use])} ${name.toLowerCase()}`)
    .join(", ") || "none";

/** One bar whose parts are the groups; a group that has any is never too thin to be seen. */
export function UseBar({ counts, label, height = 14 }: { counts: UseCounts; label: string; height?: number }) {
  const parts = USES.filter(([use]) => counts[use] > 0).map(([use]) => ({
    use,
    weight: Math.max(counts[use] / counts.total, 0.012),
  }));
  const whole = parts.reduce((sum, part) => sum + part.weight, 0);
  let left = 0;
  return (
    <svg
      width="100%"
      height={height}
      role="img"
      aria-label={`${label}: ${says(counts)}`}
      style={{ display: "block", minWidth: 60 }}
    >
      <rect width="100%" height={height} rx="2" fill="var(--wr-sunken)" />
      {parts.map(({ use, weight }) => {
        const x = (100 * left) / whole;
        left += weight;
        return (
          <rect
            key={use}
            x={`${x}%`}
            width={`${(100 * weight) / whole}%`}
            height={height}
            fill={FILLS[use]}
            stroke="var(--wr-surface)"
            strokeWidth="1"
          >
            <title>{says(counts)}</title>
          </rect>
        );
      })}
      <rect
        x=".5"
        y=".5"
        width="100%"
        height={height - 1}
        rx="2"
        fill="none"
        stroke="var(--wr-line-strong)"
        style={{ width: "calc(100% - 1px)" }}
      />
    </svg>
  );
}

const LABEL_PX = 18;
const HEAD_PX = 16;
const BAR_SHARE = 0.65;
/** With more days than this a weekday says little, and there is no room for all: every fifth day has its number. */
const WEEKDAYS_MOST = 10;

export interface Day {
  day: string;
  /** A decimal text; only heights are floats. */
  amount: string;
}

interface DayColumnsProps {
  days: readonly Day[];
  unit: string;
  label: string;
  height: number;
  /** The parts of a day's column, from the bottom up. */
  parts: (at: number) => readonly { name: string; value: number; fill: string | undefined }[];
  /** The text below a day. */
  under: (at: number) => string;
}

/** A column for each day, the amount above the highest and the last, and the same as a table. */
export function DayColumns({ days, unit, label, height, parts, under }: DayColumnsProps) {
  const heights = days.map((day) => Number(day.amount));
  const top = Math.max(...heights, 0);
  const [last, highest] = [days.length - 1, heights.lastIndexOf(top)];
  // Its text is wider than a narrow column, and would lie on higher ones beside it.
  const isClear = days.length <= WEEKDAYS_MOST || heights.slice(-4).every((one) => one <= heights[last]!);
  const isTold = (at: number) => at === highest || (at === last && isClear);
  const step = 100 / days.length;
  const high = (value: number) => (top > 0 ? (value / top) * (height - HEAD_PX) : 0);
  const spoken = days.filter((day) => Number(day.amount) > 0).map((day) => `${day.day} ${amount(day.amount)}`);
  return (
    <figure style={{ margin: 0 }}>
      <svg
        width="100%"
        height={height + LABEL_PX}
        role="img"
        aria-label={`${label}: ${spoken.join(", ") || "nothing"} ${unit}`}
        style={{ display: "block" }}
      >
        {days.map((day, at) => {
          let below = 0;
          return (
            <g key={day.day}>
              {parts(at).map(({ name, value, fill }, index) => {
                const tall = value > 0 ? Math.max(high(value), 1) : 0;
                below += tall;
                return (
                  <rect
                    key={name + index}
                    x={`${at * step + (step * (1 - BAR_SHARE)) / 2}%`}
                    width={`${step * BAR_SHARE}%`}
                    y={height - below}
                    height={tall}
                    fill={fill}
                    stroke="var(--wr-surface)"
                    strokeWidth=".75"
                  >
                    <title>
                      {`${[day.day, name].filter(Boolean).join(", ")}: ${amount(value.toFixed(8))} ${unit}`}
                    </title>
                  </rect>
                );
              })}
              {heights[at]! > 0 && isTold(at) && (
                <text {...textAt(at, days.length)} y={height - below - 4} className="wr-bar-text">
                  {amount(day.amount)}
                </text>
              )}
              <text {...textAt(at, days.length)} y={height + 14} className="wr-bar-text">
                {under(at)}
              </text>
            </g>
          );
        })}
        <line x1="0" x2="100%" y1={height + 0.5} y2={height + 0.5} stroke="var(--wr-line-strong)" />
      </svg>
      <DayTable label={label} unit={unit} days={days} />
    </figure>
  );
}

/** Beside its column; the text of a narrow column at an edge would stand out of the picture. */
function textAt(at: number, of: number) {
  if (of > WEEKDAYS_MOST && at === 0) return { x: "0", textAnchor: "start" } as const;
  if (of > WEEKDAYS_MOST && at === of - 1) return { x: "100%", textAnchor: "end" } as const;
  return { x: `${(100 * (at + 0.5)) / of}%`, textAnchor: "middle" } as const;
}

function DayTable({ label, unit, days }: Pick<DayColumnsProps, "label" | "unit" | "days">) {
  return (
    <details className="wr-details">
      <summary>As a table</summary>
      <table className="wr-table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Day (UTC)</th>
            <th scope="col" className="num">
              {unit}
            </th>
          </tr>
        </thead>
        <tbody>
          {[...days].reverse().map((day) => (
            <tr key={day.day}>
              <td>{day.day}</td>
              <td className="num">{amount(day.amount)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** Days until today. */
export function DayBars({ days, unit, label }: Pick<DayColumnsProps, "days" | "unit" | "label">) {
  const last = days.length - 1;
  return (
    <DayColumns
      days={days}
      unit={unit}
      label={label}
      height={96}
      parts={(at) => [
        {
          name: "",
          value: Number(days[at]!.amount),
          fill: at === last ? "var(--wr-meter-fill)" : "var(--wr-meter-strong)",
        },
      ]}
      under={(at) => {
        const { day } = days[at]!;
        if (at === last) return "today";
        if (days.length <= WEEKDAYS_MOST) return weekday(day);
        return (last - at) % 5 === 0 ? String(Number(day.slice(8))) : "";
      }}
    />
  );
}
