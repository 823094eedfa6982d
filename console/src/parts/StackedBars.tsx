// Sums of days, stacked by what they are for; the running sum of a month against its limit; a calendar of ratios.
import { CHART_COLOURS } from "../app/theme.ts";
import { amount, percent, plain, weekday } from "./format.ts";

/** More parts cannot be told apart; the others are one part. */
export const PARTS_MOST = 6;
const CHART_PX = 132;
const LABEL_PX = 18;
const HEAD_PX = 16;
const BAR_SHARE = 0.7;
const LINE_PX = 110;
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
  days: readonly { day: string; amount: string }[];
  rows: readonly Part[];
}

export function StackedBars({ label, unit, days, rows }: BarsProps) {
  const parts = parted(rows);
  const colour = (index: number) =>
    index === PARTS_MOST - 1 && rows.length > PARTS_MOST ? OTHERS : CHART_COLOURS[index % CHART_COLOURS.length];
  const top = Math.max(...days.map((day) => Number(day.amount)), 0);
  const step = 100 / days.length;
  const highest = days.findIndex((day) => Number(day.amount) === top);
  const high = (value: number) => (top > 0 ? (value / top) * (CHART_PX - HEAD_PX) : 0);
  const spoken = days.filter((day) => Number(day.amount) > 0).map((day) => `${day.day} ${amount(day.amount, 2, 4)}`);
  return (
    <figure style={{ margin: 0 }}>
      <div className="wr-chart-keys" style={{ justifyContent: "flex-start", marginBottom: 8 }}>
        {parts.map((part, index) => (
          <span key={part.name + index}>
            <i style={{ background: colour(index), height: 10 }} />
            {part.name}
          </span>
        ))}
      </div>
      <svg
        width="100%"
        height={CHART_PX + LABEL_PX}
        role="img"
        aria-label={`${label}: ${spoken.join(", ") || "nothing"} ${unit}`}
        style={{ display: "block" }}
      >
        {days.map((day, at) => {
          let below = 0;
          const middle = `${at * step + step / 2}%`;
          return (
            <g key={day.day}>
              {parts.map((part, index) => {
                const height = high(part.days[at] ?? 0);
                below += height;
                if (height <= 0) return null;
                return (
                  <rect
                    key={part.name + index}
                    x={`${at * step + (step * (1 - BAR_SHARE)) / 2}%`}
                    width={`${step * BAR_SHARE}%`}
                    y={CHART_PX - below}
                    height={Math.max(height, 1)}
                    fill={colour(index)}
                    stroke="var(--wr-surface)"
                    strokeWidth=".75"
                  >
                    <title>{`${day.day}, ${part.name}: ${part.days[at]!.toFixed(4)} ${unit}`}</title>
                  </rect>
                );
              })}
              {below > 0 && at === highest && (
                <text x={middle} y={CHART_PX - below - 4} className="wr-bar-text" textAnchor="middle">
                  {amount(day.amount, 2, 2)}
                </text>
              )}
              {(at % 5 === 0 || days.length <= 7) && (
                <text x={middle} y={CHART_PX + 14} className="wr-bar-text" textAnchor="middle">
                  {Number(day.day.slice(8))}
                </text>
              )}
            </g>
          );
        })}
        <line x1="0" x2="100%" y1={CHART_PX + 0.5} y2={CHART_PX + 0.5} stroke="var(--wr-line-strong)" />
      </svg>
      <DayTable label={label} unit={unit} days={days} />
    </figure>
  );
}

function DayTable({ label, unit, days }: Omit<BarsProps, "rows">) {
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
              <td className="num">{amount(day.amount, 2, 8)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

interface RunningSumProps {
  days: readonly { day: string; amount: string }[];
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
