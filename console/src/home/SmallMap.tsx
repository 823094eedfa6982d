// All GPUs as small cells by region, coloured and marked by their state.
import { useComputedColorScheme } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";
import { useFleet } from "../fleet/feed.ts";
import type { FleetRow } from "../fleet/rows.ts";
import { USES, type Use } from "../parts/Bars.tsx";
import { compareTexts, count, plain } from "../parts/format.ts";
import { Panel, Waiting } from "../parts/page.tsx";
import { useWidth } from "../parts/width.ts";

/** More are read on the map's own page alone. */
export const MAP_MOST = 2_000;
const STEP_PX = 11;
const CELL_PX = 9;
const COLOURS: Record<Use, string> = {
  rented: "--wr-meter-fill",
  idle: "--wr-meter",
  paused: "--wr-off",
  faulty: "--wr-bad",
  offline: "--wr-off",
};

export function SmallMap() {
  const { fleet, loading } = useFleet();
  const regions = useMemo(() => byRegion(fleet.rows), [fleet.rows]);
  return (
    <Panel
      title="Fleet map"
      actions={
        <Link className="wr-link" to="/fleet/map" search={{ by: "health" }}>
          Open the map
        </Link>
      }
    >
      {loading ? (
        <Waiting lines={5} />
      ) : (
        regions.map(([region, rows]) => (
          <div key={region} className="wr-small-map">
            <div>
              <strong>{plain(region)}</strong>{" "}
              <span className="wr-quiet">
                {count(new Set(rows.map((row) => row.hostId)).size)} hosts · {count(rows.length)} GPUs
              </span>
            </div>
            <Cells region={region} rows={rows} />
          </div>
        ))
      )}
    </Panel>
  );
}

function byRegion(rows: readonly FleetRow[]): [string, FleetRow[]][] {
  const found = new Map<string, FleetRow[]>();
  for (const row of rows) {
    if (row.kind !== "gpu") continue;
    const region = row.region ?? "Region not known";
    const known = found.get(region);
    if (known) known.push(row);
    else found.set(region, [row]);
  }
  return [...found].sort(([a], [b]) => compareTexts(a, b));
}

function Cells({ region, rows }: { region: string; rows: readonly FleetRow[] }) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(holder);
  const scheme = useComputedColorScheme("light");
  const across = Math.max(1, Math.floor(width / STEP_PX));
  const high = Math.ceil(rows.length / across) * STEP_PX;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are other ones in the other scheme
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, rows, across, width, high);
  }, [rows, across, width, high, scheme]);
  const said = USES.map(([use, name]) => [name.toLowerCase(), rows.filter((row) => row.state === use).length] as const)
    .filter(([, number]) => number > 0)
    .map(([name, number]) => `${count(number)} ${name}`)
    .join(", ");
  return (
    <div ref={holder}>
      <canvas
        ref={canvas}
        style={{ width, height: high, display: "block" }}
        role="img"
        aria-label={`${region}: ${said}`}
      />
    </div>
  );
}

function draw(canvas: HTMLCanvasElement, rows: readonly FleetRow[], across: number, width: number, high: number) {
  const sharp = window.devicePixelRatio || 1;
  canvas.width = width * sharp;
  canvas.height = high * sharp;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(sharp, sharp);
  const style = getComputedStyle(canvas);
  for (const [index, row] of rows.entries())
    cell(pen, (index % across) * STEP_PX, Math.floor(index / across) * STEP_PX, row.state as Use, (name) =>
      style.getPropertyValue(name),
    );
}

/** A shape beside the colour: faulty is a cross, paused a half, offline a frame. */
function cell(pen: CanvasRenderingContext2D, x: number, y: number, state: Use, colour: (name: string) => string) {
  pen.fillStyle = pen.strokeStyle = colour(COLOURS[state] ?? "--wr-line-strong");
  pen.lineWidth = state === "faulty" ? 2.2 : 1;
  if (state === "faulty") {
    pen.beginPath();
    for (const [from, to] of [
      [1, CELL_PX - 1],
      [CELL_PX - 1, 1],
    ] as const) {
      pen.moveTo(x + from, y + 1);
      pen.lineTo(x + to, y + CELL_PX - 1);
    }
    pen.stroke();
    return;
  }
  if (state === "offline" || state === "paused") pen.strokeRect(x + 0.5, y + 0.5, CELL_PX - 1, CELL_PX - 1);
  if (state === "paused") pen.fillRect(x, y + CELL_PX / 2, CELL_PX, CELL_PX / 2);
  if (state === "rented" || state === "idle") pen.fillRect(x, y, CELL_PX, CELL_PX);
}
