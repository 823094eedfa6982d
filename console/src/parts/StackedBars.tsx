// Sums of days, stacked by what they are for; the running sum of a month against its limit; a calendar of ratios.
import { CHART_COLOURS } from "../app/theme.ts";
import { type Day, DayColumns } from "./Bars.tsx";
import { amount, percent, plain, weekday } from "./format.ts";

/** More parts cannot be told apart; the others are one part. */
export const PARTS_MOST = 6;
const LINE_PX = 110;
const HEAD_PX = 16;
const OTHERS = "var(--wr-off)";

export interface Part {
  name: string;
  /** Decimal texts, one for each day; only heights are floats. */
  days: readonly string[];
}

/** The greatest parts, and all others as one. Rows come with the greatest first. */
export function parted(rows: readonly Part[]): { name: string; days: number[] }[] {
  const drawn = rows.slice(0, rows.length > PARTS_MOST ? PARTS_MOST - 1 : PARTS_MOST);
  const found = drawn.map((row) => ({ name: plain(row.name), days: row.days.map(Number) }));
  const rest = rows.slice(drawn.length);
  if (rest.length === 0) return found;
  const sums = rest[0]!.days.map((_, day) => rest.reduce((sum, row) => sum + Number(row.days[day]), 0));
  return [...found, { name: `${rest.length} others`, days: sums }];
}

interface BarsProps {
  label: string;
  unit: string;
  days: readonly Day[];
  rows: readonly Part[];
}

export function StackedBars({ label, unit, days, rows }: BarsProps) {
  const parts = parted(rows);
  const colour = (index: number) =>
    index === PARTS_MOST - 1 && rows.length > PARTS_MOST ? OTHERS : CHART_COLOURS[index % CHART_COLOURS.length];
  return (
    <>
      <div className="wr-chart-keys" style={{ justifyContent: "flex-start", marginBottom: 8 }}>
        {parts.map((part, index) => (
          <span key={part.name + index}>
            <i style={{ background: colour(index), height: 10 }} />
            {part.name}
          </span>
        ))}
      </div>
      <DayColumns
        label={label}
        unit={unit}
        days={days}
        height={132}
        parts={(at) =>
          parts.map((part, index) => ({ name: part.name, value: part.days[at] ?? 0, fill: colour(index) }))
        }
        under={(at) => (at % 5 === 0 || days.length <= 7 ? String(Number(days[at]!.day.slice(8))) : "")}
      />
    </>
  );
}

interface RunningSumProps {
  days: readonly Day[];
  daysOfMonth: number;
  forecast: string | null;
  limit: string | null;
  unit: string;
}

/** The sum since the month began, where it leads by the forecast, and the limit. */
export function RunningSum({ days, daysOfMonth, forecast, limit, unit }: RunningSumProps) {
  let sum = 0;
  const sums = days.map((day) => {
    sum += Number(day.amount);
    return sum;
  });
  const top = Math.max(sum, Number(forecast ?? 0), Number(limit ?? 0)) || 1;
  const x = (day: number) => (100 * day) / daysOfMonth;
  const y = (value: number) => LINE_PX - (value / top) * (LINE_PX - HEAD_PX);
  const path = [[0, 0] as const, ...sums.map((value, day) => [day + 1, value] as const)]
    .map(([day, value]) => `${x(day)},${y(value)}`)
    .join(" ");
  const said = [
    `${amount(String(sum.toFixed(8)), 2, 2)} so far`,
    ...(forecast ? [`forecast ${amount(forecast, 2, 2)}`] : []),
    ...(limit ? [`limit ${amount(limit, 2, 2)}`] : []),
  ].join(", ");
  return (
    <figure style={{ margin: 0 }} className="wr-running-sum">
      <svg
        width="100%"
        height={LINE_PX + 2}
        viewBox={`0 0 100 ${LINE_PX + 2}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Sum since the month began: ${said} ${unit}`}
        style={{ display: "block" }}
      >
        <polyline points={path} fill="none" stroke="var(--wr-meter-fill)" strokeWidth="2" />
        {forecast !== null && (
          <line
            x1={x(days.length)}
            y1={y(sum)}
            x2="100"
            y2={y(Number(forecast))}
            stroke="var(--wr-meter-fill)"
            strokeWidth="2"
            strokeDasharray="4 4"
          />
        )}
        {limit !== null && (
          <line x1="0" x2="100" y1={y(Number(limit))} y2={y(Number(limit))} stroke="var(--wr-bad)" strokeWidth="1.5" />
        )}
        <line x1="0" x2="100" y1={LINE_PX + 1} y2={LINE_PX + 1} stroke="var(--wr-line-strong)" />
      </svg>
      <figcaption className="wr-chart-keys" style={{ justifyContent: "flex-start", marginTop: 6 }}>
        <span>
          <i style={{ background: "var(--wr-meter-fill)" }} />
          so far{forecast !== null && ", dashed: forecast"}
        </span>
        {limit !== null && (
          <span>
            <i style={{ background: "var(--wr-bad)" }} />
            limit {amount(limit, 2, 2)}
          </span>
        )}
      </figcaption>
    </figure>
  );
}

const filled = (ratio: number) =>
  `color-mix(in srgb, var(--wr-meter-fill) ${Math.round(ratio * 100)}%, var(--wr-meter))`;

/** A month as a calendar, Monday first: each day's ratio as a number and a fill. */
export function RatioCalendar({
  days,
  label,
}: {
  days: readonly { day: string; ratio: number | null }[];
  label: string;
}) {
  const first = new Date(`${days[0]!.day}T12:00:00Z`).getUTCDay();
  return (
    <ol className="wr-calendar" aria-label={label}>
      {days.map(({ day, ratio }, index) => (
        <li
          key={day}
          style={{
            gridColumnStart: index === 0 ? ((first + 6) % 7) + 1 : undefined,
            borderBottomColor: filled(ratio ?? 0),
          }}
          title={`${weekday(day)} ${day}: ${percent(ratio)}`}
        >
          <span className="wr-quiet">{Number(day.slice(8))}</span>
          <span>{ratio === null ? "" : percent(ratio)}</span>
        </li>
      ))}
    </ol>
  );
}
