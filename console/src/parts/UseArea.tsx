// GPUs by state over time: areas on top of each other with the fills of the bars, and the same as a table.
import { type PointerEvent, useMemo, useRef, useState } from "react";
import type { UsePoint } from "../api/types.ts";
import { CsvButton } from "../tables/Csv.tsx";
import { FILLS, USES, UseKey } from "./Bars.tsx";
import { axisTime, count, DAY_S, exact } from "./format.ts";
import { useWidth } from "./width.ts";

const HIGH_PX = 190;
const FOOT_PX = 20;
const LEFT_PX = 40;
const TICK_PX = 110;
const TABLE_ROWS = 12;

interface UseAreaProps {
  points: readonly UsePoint[];
  stepS: number;
  spanS: number;
  untilMs: number;
}

const at = (point: UsePoint): number => Date.parse(point.at);
const totalOf = (point: UsePoint): number => USES.reduce((sum, [use]) => sum + point[use], 0);
const spoken = (point: UsePoint): string =>
  USES.filter(([use]) => point[use] > 0)
    .map(([use, name]) => `${count(point[use])} ${name.toLowerCase()}`)
    .join(", ");

/** Stretches without a gap: where no Master looked, nothing is drawn. */
export function stretches(points: readonly UsePoint[], stepS: number): UsePoint[][] {
  const found: UsePoint[][] = [];
  for (const point of points) {
    const last = found.at(-1);
    if (last && at(point) - at(last.at(-1)!) <= 2.5 * stepS * 1000) last.push(point);
    else found.push([point]);
  }
  return found;
}

export function UseArea({ points, stepS, spanS, untilMs }: UseAreaProps) {
  const ref = useRef<HTMLDivElement>(null);
  const width = useWidth(ref);
  const [looked, look] = useState<UsePoint | null>(null);
  const top = Math.max(1, ...points.map(totalOf));
  const wide = Math.max(0, width - LEFT_PX);
  const x = (ms: number) => LEFT_PX + wide * Math.max(0, 1 - (untilMs - ms) / (spanS * 1000));
  const y = (value: number) => HIGH_PX - (HIGH_PX - 8) * (value / top);
  const parts = useMemo(() => stretches(points, stepS), [points, stepS]);
  const moved = (event: PointerEvent<SVGSVGElement>) => {
    const here = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const near = points.reduce<UsePoint | null>(
      (best, one) => (best && Math.abs(x(at(best)) - here) <= Math.abs(x(at(one)) - here) ? best : one),
      null,
    );
    look(near);
  };
  const last = points.at(-1);
  const shown = looked ?? last;
  return (
    <figure className="wr-area" style={{ margin: 0 }}>
      <div className="wr-area-keys">
        {USES.map(([use, name]) => (
          <span key={use}>
            <UseKey use={use} /> {name} <strong>{shown ? count(shown[use]) : ""}</strong>
          </span>
        ))}
        <span className="wr-quiet">{looked ? exact(looked.at) : "now"}</span>
      </div>
      <div ref={ref}>
        {width > 0 && (
          <svg
            width={width}
            height={HIGH_PX + FOOT_PX}
            role="img"
            aria-label={`GPUs by state. Now: ${last ? spoken(last) : "not known"}. Most: ${count(top)}`}
            onPointerMove={moved}
            onPointerLeave={() => look(null)}
          >
            <Axes width={width} wide={wide} top={top} spanS={spanS} untilMs={untilMs} />
            {parts.map((part) => (
              <Areas key={part[0]!.at} part={part} x={x} y={y} stepMs={stepS * 1000} untilMs={untilMs} />
            ))}
            {looked && (
              <line x1={x(at(looked))} x2={x(at(looked))} y1="4" y2={HIGH_PX} stroke="var(--mantine-color-text)" />
            )}
          </svg>
        )}
      </div>
      <AsTable points={points} />
    </figure>
  );
}

function Axes({
  width,
  wide,
  top,
  spanS,
  untilMs,
}: Omit<UseAreaProps, "points" | "stepS"> & Record<"width" | "wide" | "top", number>) {
  const ticks = Math.max(1, Math.floor(wide / TICK_PX));
  return (
    <>
      {[0, top / 2, top].map((value) => (
        <g key={value}>
          <line
            x1={LEFT_PX}
            x2={width}
            y1={HIGH_PX - (HIGH_PX - 8) * (value / top)}
            y2={HIGH_PX - (HIGH_PX - 8) * (value / top)}
            stroke="var(--wr-line)"
          />
          {Number.isInteger(value) && (
            <text
              x={LEFT_PX - 6}
              y={HIGH_PX - (HIGH_PX - 8) * (value / top) + 4}
              className="wr-bar-text"
              textAnchor="end"
            >
              {count(value)}
            </text>
          )}
        </g>
      ))}
      {Array.from({ length: ticks }, (_, index) => (
        <text key={index} x={LEFT_PX + (wide * index) / ticks} y={HIGH_PX + 15} className="wr-bar-text">
          {axisTime(untilMs - spanS * 1000 * (1 - index / ticks), Math.max(spanS, 301))}
        </text>
      ))}
    </>
  );
}

interface AreasProps {
  part: readonly UsePoint[];
  x: (ms: number) => number;
  y: (value: number) => number;
  stepMs: number;
  untilMs: number;
}

function Areas({ part, x, y, stepMs, untilMs }: AreasProps) {
  const end = Math.min(untilMs, at(part.at(-1)!) + stepMs); // a mean holds for its whole span
  const times = [...part.map(at), end];
  const below = times.map(() => 0);
  return (
    <>
      {USES.map(([use]) => {
        const lower = [...below];
        for (const [index] of times.entries()) below[index]! += part[Math.min(index, part.length - 1)]![use];
        if (below.every((value, index) => value === lower[index])) return null;
        const upper = times.map((ms, index) => `${x(ms)},${y(below[index]!)}`);
        const back = times.map((ms, index) => `${x(ms)},${y(lower[index]!)}`).reverse();
        return (
          <polygon
            key={use}
            points={[...upper, ...back].join(" ")}
            fill={FILLS[use]}
            stroke="var(--wr-surface)"
            strokeWidth=".6"
          />
        );
      })}
    </>
  );
}

function AsTable({ points }: { points: readonly UsePoint[] }) {
  return (
    <details className="wr-details">
      <summary>As a table</summary>
      <div className="wr-scroll">
        <table className="wr-table" aria-label="GPUs by state, the latest">
          <thead>
            <tr>
              <th scope="col">Time</th>
              {USES.map(([use, name]) => (
                <th key={use} scope="col" className="num">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {points
              .slice(-TABLE_ROWS)
              .reverse()
              .map((point) => (
                <tr key={point.at}>
                  <td>{exact(point.at)}</td>
                  {USES.map(([use]) => (
                    <td key={use} className="num">
                      {count(point[use])}
                    </td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      <CsvButton
        of="GPUs by state"
        name="windrow-gpus-by-state"
        columns={[
          { name: "at", value: (row: UsePoint) => row.at },
          ...USES.map(([use]) => ({ name: use, value: (row: UsePoint) => row[use] })),
        ]}
        rows={() => points}
      />
    </details>
  );
}

/** Of a chart that reaches back so far. */
export const AREA_SPANS = [
  { name: "24 h", span: "day", seconds: DAY_S },
  { name: "7 d", span: "week", seconds: 7 * DAY_S },
  { name: "30 d", span: "month", seconds: 30 * DAY_S },
] as const;
