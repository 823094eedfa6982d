// One small chart of lines over time, with its legend, and the same as a table.

import { useComputedColorScheme } from "@mantine/core";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import { CHART_COLOURS, CHART_INK } from "../app/theme.ts";
import "uplot/dist/uPlot.min.css";
import { CsvButton } from "../tables/Csv.tsx";
import type { CsvColumn } from "../tables/csv.ts";
import { axisTime, clock, count, inUnit, plain } from "./format.ts";
import { align, type Line, type Mark, summarise } from "./series.ts";
import { useWidth } from "./width.ts";

const HEIGHT_PX = 168;
/** All charts of a page point at the same moment. */
const CURSOR = "windrow";
const SMALL_PX = 104;
const TABLE_ROWS = 12;
const DAY_S = 86_400;
/** Sizes are read in powers of two: their axis steps by them as well. */
const BINARY_STEPS = Array.from({ length: 52 }, (_, power) => 2 ** power);

/** From this value upwards. */
export interface Band {
  value: number;
  label: string;
}

interface Limits {
  most: number | null;
  spanS: number;
  untilMs: number | null;
  marks: readonly Mark[];
  band: Band | null;
}

const NO_MARKS: readonly Mark[] = [];

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
  marks?: readonly Mark[];
  /** A part of the scale that is no good place to be. */
  band?: Band | null;
  /** A small chart beside others of its kind. */
  small?: boolean;
  /** Below the table: how else to keep what is drawn. */
  kept?: ReactNode;
}

export function Chart(props: ChartProps) {
  const { title, lines, unit, most = null, spanS, untilMs = null, marks = NO_MARKS, band = null, kept } = props;
  const ref = useRef<HTMLDivElement>(null);
  const width = useWidth(ref);
  const scheme = useComputedColorScheme("light");
  const plot = useRef<uPlot | null>(null);
  const limits = useRef<Limits>({ most, spanS, untilMs, marks, band });
  limits.current = { most, spanS, untilMs, marks, band };
  const data = useMemo(() => align(lines), [lines]);
  const shown = useRef(data);
  shown.current = data;
  const names = lines.map((line) => line.label).join("\n");
  const high = props.small ? SMALL_PX : HEIGHT_PX;
  const [looked, look] = useState<number | null>(null);

  useEffect(() => {
    const holder = ref.current;
    if (!holder || width === 0) return;
    const size = { width, height: high };
    const made = new uPlot(options(size, names.split("\n"), unit, scheme, limits, look), shown.current, holder);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, high, names, unit, scheme]);
  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => {
    if (marks.length || band) plot.current?.redraw();
  }, [marks, band]);
  const at = looked === null ? undefined : data[0][looked];
  const seen = marks.filter((mark) => mark.atMs >= (untilMs ?? Date.now()) - spanS * 1000);

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
          {at !== undefined && <span>{clock(at * 1000)}</span>}
          {band && (
            <span className="wr-tone-warn">
              {band.label} at {inUnit(band.value, unit)}
            </span>
          )}
          {sums.map(({ line, last }, index) => (
            <span key={line.key}>
              <i style={{ background: CHART_COLOURS[index % CHART_COLOURS.length] }} />
              {lines.length > 1 && `${line.label} `}
              <span style={{ color: "var(--mantine-color-text)" }}>
                {inUnit(looked === null ? last : data[index + 1]?.[looked], unit)}
              </span>
            </span>
          ))}
        </span>
      </div>
      <div ref={ref} role="img" aria-label={`${title}. ${spoken}`} style={{ height: high }} />
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
      {seen.length > 0 && (
        <details>
          <summary>{seen.length === 1 ? "1 event" : `${count(seen.length)} events`} in this span</summary>
          <ul className="wr-chart-marks">
            {seen.map((mark) => (
              <li key={`${mark.atMs} ${mark.label}`} className="wr-break">
                {clock(mark.atMs)}: {plain(mark.label)}
              </li>
            ))}
          </ul>
        </details>
      )}
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
  size: { width: number; height: number },
  names: readonly string[],
  unit: string,
  scheme: string,
  limits: { current: Limits },
  look: (index: number | null) => void,
): uPlot.Options {
  const { ink, line } = CHART_INK[scheme === "dark" ? "dark" : "light"];
  const axis: uPlot.Axis = {
    stroke: ink,
    font: "11px system-ui, sans-serif",
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  };
  return {
    ...size,
    padding: [8, 8, 0, 0],
    cursor: {
      y: false,
      points: { size: 5 },
      drag: { x: false, y: false },
      sync: { key: CURSOR, scales: ["x", null] },
    },
    hooks: {
      drawClear: [(plot) => drawBand(plot, limits.current.band)],
      draw: [(plot) => drawMarks(plot, limits.current.marks, ink)],
      setCursor: [(plot) => look(plot.cursor.idx ?? null)],
    },
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

const TONE_VARIABLE = { bad: "--wr-bad", warn: "--wr-warn", off: "--wr-off" } as const;
const colour = (variable: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

function drawBand(plot: uPlot, band: Band | null) {
  if (!band) return;
  const { left, top, width, height } = plot.bbox;
  const from = Math.min(plot.valToPos(band.value, "y", true), top + height);
  if (from <= top) return;
  plot.ctx.save();
  plot.ctx.globalAlpha = 0.14;
  plot.ctx.fillStyle = colour("--wr-warn");
  plot.ctx.fillRect(left, top, width, from - top);
  plot.ctx.restore();
}

function drawMarks(plot: uPlot, marks: readonly Mark[], ink: string) {
  const { left, top, width, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.setLineDash([4, 4]);
  for (const mark of marks) {
    const x = plot.valToPos(mark.atMs / 1000, "x", true);
    if (x < left || x > left + width) continue;
    plot.ctx.strokeStyle = colour(TONE_VARIABLE[mark.tone]) || ink;
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
  }
  plot.ctx.restore();
}

/** Beyond a day the hour says little: the day does. */
function scaleOf(least: number | null, top: number | null, most: number | null): [number, number] {
  if (most !== null && most > 0) return [0, Math.max(most, top ?? 0)];
  const high = top === null || top <= 0 ? 1 : top * 1.15;
  return [Math.min(0, least ?? 0), high];
}
