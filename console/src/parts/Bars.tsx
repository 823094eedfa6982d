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

const CHART_PX = 96;
const LABEL_PX = 18;
const BAR_SHARE = 0.62;
/** With more days than this a weekday says little, and there is no room for all: every fifth day has its number. */
const WEEKDAYS_MOST = 10;

function dayLabel(day: string, index: number, of: number): string {
  if (index === of - 1) return "today";
  if (of <= WEEKDAYS_MOST) return weekday(day);
  return (of - 1 - index) % 5 === 0 ? String(Number(day.slice(8))) : "";
}

/** One column for each day; the sums are decimal texts and only their heights are floats. */
export function DayBars({
  days,
  unit,
  label,
}: {
  days: readonly { day: string; amount: string }[];
  unit: string;
  label: string;
}) {
  const heights = days.map((day) => Number(day.amount));
  const top = Math.max(...heights, 0);
  const step = 100 / days.length;
  const said = days.length > WEEKDAYS_MOST ? (day: string) => day : weekday;
  const spoken = days.map((day) => `${said(day.day)} ${amount(day.amount, 2, 4)}`).join(", ");
  return (
    <figure style={{ margin: 0 }}>
      <svg
        width="100%"
        height={CHART_PX + LABEL_PX}
        role="img"
        aria-label={`${label}: ${spoken} ${unit}`}
        style={{ display: "block" }}
      >
        {days.map((day, index) => {
          const high = top > 0 ? Math.max((heights[index]! / top) * (CHART_PX - 16), heights[index]! > 0 ? 2 : 0) : 0;
          const x = index * step + (step * (1 - BAR_SHARE)) / 2;
          const last = index === days.length - 1;
          const under =
            last && days.length > WEEKDAYS_MOST // a narrow column: its text would stand out at the right
              ? ({ x: "100%", textAnchor: "end" } as const)
              : ({ x: `${index * step + step / 2}%`, textAnchor: "middle" } as const);
          return (
            <g key={day.day}>
              <rect
                x={`${x}%`}
                width={`${step * BAR_SHARE}%`}
                y={CHART_PX - high}
                height={high}
                rx="2"
                fill={last ? "var(--wr-meter-fill)" : "var(--wr-meter-strong)"}
              >
                <title>{`${day.day}: ${amount(day.amount, 2, 6)} ${unit}`}</title>
              </rect>
              {heights[index]! > 0 && (last || heights[index] === top) && (
                <text {...under} y={CHART_PX - high - 4} className="wr-bar-text">
                  {amount(day.amount, 2, 2)}
                </text>
              )}
              <text {...under} y={CHART_PX + 14} className="wr-bar-text">
                {dayLabel(day.day, index, days.length)}
              </text>
            </g>
          );
        })}
        <line x1="0" x2="100%" y1={CHART_PX + 0.5} y2={CHART_PX + 0.5} stroke="var(--wr-line-strong)" />
      </svg>
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
            {days
              .map((day) => (
                <tr key={day.day}>
                  <td>{day.day}</td>
                  <td className="num">{amount(day.amount, 2, 8)}</td>
                </tr>
              ))
              .reverse()}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
