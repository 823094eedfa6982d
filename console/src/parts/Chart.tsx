// One small chart of lines over time, with its legend, and the same as a table.

import { useComputedColorScheme } from "@mantine/core";
import { type ReactNode, useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import { CHART_COLOURS, CHART_INK } from "../app/theme.ts";
import "uplot/dist/uPlot.min.css";
import { CsvButton } from "../tables/Csv.tsx";
import type { CsvColumn } from "../tables/csv.ts";
import { axisTime, clock, inUnit } from "./format.ts";
import { align, type Line, summarise } from "./series.ts";
import { useWidth } from "./width.ts";

const HEIGHT_PX = 132;
const TABLE_ROWS = 12;
const DAY_S = 86_400;
/** Told apart in both schemes and by most kinds of colour vision; the keys and the table name them as well. */

/** Sizes are read in powers of two: their axis steps by them as well. */
const BINARY_STEPS = Array.from({ length: 52 }, (_, power) => 2 ** power);

interface ChartProps {
  title: string;
  lines: readonly Line[];
  /** A unit of the catalogue, or `ratio`. */
  unit: string;
  /** The top of the scale where there is one: 1 for ratios, a capacity for memory. */
  most?: number | null;
  spanS: number;
  /** The right end in milliseconds; none: now. */
  untilMs?: number | null;
  /** Below the table: how else to keep what is drawn. */
  kept?: ReactNode;
}

export function Chart({ title, lines, unit, most = null, spanS, untilMs = null, kept }: ChartProps) {
  const ref = useRef<HTMLDivElement>(null);
  const width = useWidth(ref);
  const scheme = useComputedColorScheme("light");
  const plot = useRef<uPlot | null>(null);
  const limits = useRef({ most, spanS, untilMs });
  limits.current = { most, spanS, untilMs };
  const data = useMemo(() => align(lines), [lines]);
  const shown = useRef(data);
  shown.current = data;
  const names = lines.map((line) => line.label).join("\n");

  useEffect(() => {
    const holder = ref.current;
    if (!holder || width === 0) return;
    const made = new uPlot(options(width, names.split("\n"), unit, scheme, limits), shown.current, holder);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, names, unit, scheme]);
  useEffect(() => plot.current?.setData(data), [data]);

  const sums = lines.map((line) => ({ line, ...summarise(line.points) }));
  const spoken = sums
    .map(
      ({ line, last, least, most: top }) =>
        `${line.label}: now ${inUnit(last, unit)}, between ${inUnit(least, unit)} and ${inUnit(top, unit)}`,
    )
    .join("; ");
  return (
    <figure className="wr-chart" style={{ margin: 0 }}>
      <div className="wr-chart-head">
        <strong>{title}</strong>
        <span className="wr-chart-keys">
          {sums.map(({ line, last }, index) => (
            <span key={line.key}>
              <i style={{ background: CHART_COLOURS[index % CHART_COLOURS.length] }} />
              {lines.length > 1 && `${line.label} `}
              <span style={{ color: "var(--mantine-color-text)" }}>{inUnit(last, unit)}</span>
            </span>
          ))}
        </span>
      </div>
      <div ref={ref} role="img" aria-label={`${title}. ${spoken}`} style={{ height: HEIGHT_PX }} />
      {sums.every(({ most: top }) => top === null) && (
        <p className="wr-chart-none">Not reported by this hardware, or not yet.</p>
      )}
      <details>
        <summary>As a table</summary>
        <ReadingsTable lines={lines} unit={unit} title={title} spanS={spanS} />
        <CsvButton
          of={`the readings of ${title}`}
          name={`windrow-${title}`}
          columns={csvColumns(lines)}
          rows={() => csvRows(lines)}
        />
        {kept}
      </details>
    </figure>
  );
}

function ReadingsTable({
  lines,
  unit,
  title,
  spanS,
}: {
  lines: readonly Line[];
  unit: string;
  title: string;
  spanS: number;
}) {
  const [times, ...columns] = useMemo(() => align(lines), [lines]);
  const first = Math.max(0, times.length - TABLE_ROWS);
  return (
    <div className="wr-scroll">
      <table className="wr-table" aria-label={`${title}, latest readings`}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map((line) => (
              <th key={line.key} scope="col" className="num">
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times
            .slice(first)
            .map((at, index) => (
              <tr key={at}>
                <td>
                  {spanS > DAY_S && `${axisTime(at * 1000, spanS)} `}
                  {clock(at * 1000)}
                </td>
                {columns.map((column, line) => (
                  <td key={lines[line]?.key} className="num">
                    {inUnit(column[first + index], unit)}
                  </td>
                ))}
              </tr>
            ))
            .reverse()}
        </tbody>
      </table>
    </div>
  );
}

type Reading = readonly (number | null | undefined)[];

/** All that is drawn, not only what the table shows: a time, then a column for each line in the unit of its metric. */
function csvColumns(lines: readonly Line[]): CsvColumn<Reading>[] {
  return [
    { name: "at", value: (row) => new Date((row[0] ?? 0) * 1000).toISOString() },
    ...lines.map((line, index): CsvColumn<Reading> => ({ name: line.label, value: (row) => row[index + 1] })),
  ];
}

function csvRows(lines: readonly Line[]): Reading[] {
  const [times, ...columns] = align(lines);
  return times.map((at, index) => [at, ...columns.map((column) => column[index])]);
}

function options(
  width: number,
  names: readonly string[],
  unit: string,
  scheme: string,
  limits: { current: { most: number | null; spanS: number; untilMs: number | null } },
): uPlot.Options {
  const { ink, line } = CHART_INK[scheme === "dark" ? "dark" : "light"];
  const axis: uPlot.Axis = {
    stroke: ink,
    font: "11px system-ui, sans-serif",
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT_PX,
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 5 }, drag: { x: false, y: false } },
    legend: { show: false },
    scales: {
      x: {
        time: true,
        range: () => {
          const until = (limits.current.untilMs ?? Date.now()) / 1000;
          return [until - limits.current.spanS, until];
        },
      },
      y: { range: (_, least, top) => scaleOf(least, top, limits.current.most) },
    },
    axes: [
      {
        ...axis,
        space: 70,
        size: 22,
        values: (_, ticks) => ticks.map((at) => axisTime(at * 1000, limits.current.spanS)),
      },
      {
        ...axis,
        ...(unit.startsWith("By") ? { incrs: BINARY_STEPS } : {}),
        space: 34,
        size: 62,
        gap: 4,
        values: (_, ticks) => ticks.map((value) => inUnit(value, unit)),
      },
    ],
    series: [
      {},
      ...names.map((label, index) => ({
        label,
        stroke: CHART_COLOURS[index % CHART_COLOURS.length]!,
        width: 1.5,
        points: { show: false },
        spanGaps: false,
        ...(names.length === 1 ? { fill: `${CHART_COLOURS[0]}1c` } : {}),
      })),
    ],
  };
}

/** Beyond a day the hour says little: the day does. */
function scaleOf(least: number | null, top: number | null, most: number | null): [number, number] {
  if (most !== null && most > 0) return [0, Math.max(most, top ?? 0)];
  const high = top === null || top <= 0 ? 1 : top * 1.15;
  return [Math.min(0, least ?? 0), high];
}
