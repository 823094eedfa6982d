// The fleet as a map: region, host, GPU, one cell each, coloured by a chosen measure; live from the fleet's feed.

import { NativeSelect } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { PageButton } from "../app/PageButton.tsx";
import { count, plain } from "../parts/format.ts";
import { Empty, PageHead, ProblemNote, Waiting } from "../parts/page.tsx";
import { Simulated, State } from "../parts/state.tsx";
import { useFleet } from "./feed.ts";
import {
  type Line,
  labelOf,
  lay,
  legend,
  MEASURE_NAMES,
  MEASURES,
  type Measure,
  measureFrom,
  moved,
  placeOf,
  stepOf,
} from "./heat.ts";
import type { FleetRow } from "./rows.ts";

const LINE_PX = 34;

export function HeatPage() {
  const { fleet, loading, error, live, again } = useFleet();
  const search = useSearch({ from: "/fleet/map" });
  const navigate = useNavigate({ from: "/fleet/map" });
  const measure = measureFrom(search.by);
  const rows = useDeferredValue(fleet.rows);
  const lines = useMemo(() => lay(rows), [rows]);
  const entries = useMemo(() => legend(rows, measure), [rows, measure]);
  return (
    <div className="wr-page-full">
      <PageHead
        title="Fleet map"
        above={
          <Link className="wr-link" to="/fleet">
            Fleet
          </Link>
        }
        beside={!loading && <State state={live ? "Live" : "Not live"} tone={live ? "ok" : "warn"} />}
        actions={
          <NativeSelect
            aria-label="Coloured by"
            value={measure}
            onChange={(event) =>
              void navigate({ to: "/fleet/map", search: { by: event.currentTarget.value }, replace: true })
            }
            data={MEASURES.map((value) => ({ value, label: MEASURE_NAMES[value] }))}
          />
        }
      />
      {error && rows.length === 0 ? (
        <ProblemNote error={error} retry={again} />
      ) : loading ? (
        <Waiting lines={10} />
      ) : rows.length === 0 ? (
        <Empty
          title="No hosts yet"
          command="windrow token add --join"
          action={<PageButton to="/join">Add a host by one line</PageButton>}
        >
          A host appears here seconds after its agent joins.
        </Empty>
      ) : (
        <>
          <ul className="wr-heat-legend" aria-label={`${MEASURE_NAMES[measure]}: colours and numbers of cells`}>
            {entries.map((one) => (
              <li key={one.label}>
                <i className={`wr-heat-cell wr-heat-${one.look}`} aria-hidden="true">
                  {one.mark}
                </i>
                {one.label}: {count(one.cells)}
              </li>
            ))}
          </ul>
          <Heat lines={lines} measure={measure} />
        </>
      )}
    </div>
  );
}

function Heat({ lines, measure }: { lines: readonly Line[]; measure: Measure }) {
  const scroller = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const [chosen, choose] = useState<string | null>(null);
  const [going, go] = useState(false);
  const at = useMemo(() => placeOf(lines, chosen), [lines, chosen]);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 6,
    // The line with the keyboard's cell is always there, so that focus outlives scrolling.
    rangeExtractor: (range) =>
      [...new Set([...(at ? [at.line] : []), ...defaultRangeExtractor(range)])].sort((a, b) => a - b),
  });
  useEffect(() => {
    if (!going || !at) return;
    go(false);
    virtual.scrollToIndex(at.line);
    scroller.current?.querySelector<HTMLElement>('[role="gridcell"][tabindex="0"]')?.focus({ preventScroll: true });
  }, [going, at, virtual]);

  const open = (row: FleetRow) =>
    void (row.kind === "gpu"
      ? navigate({ to: "/gpus/$gpuId", params: { gpuId: row.key } })
      : navigate({ to: "/hosts/$hostId", params: { hostId: row.hostId } }));
  const rowOf = (target: EventTarget) => {
    const key = (target as HTMLElement).closest<HTMLElement>("[data-cell]")?.dataset.cell;
    const place = key === undefined ? null : placeOf(lines, key);
    const line = place && lines[place.line];
    return line?.kind === "host" ? { place: place!, row: line.cells[place!.cell]! } : null;
  };
  const pressed = (event: KeyboardEvent) => {
    const here = rowOf(event.target);
    if (!here) return;
    if (event.key === "Enter") return open(here.row);
    const to = moved(lines, here.place, event.key);
    const line = to && lines[to.line];
    if (line?.kind !== "host") return;
    event.preventDefault();
    choose(line.cells[to!.cell]!.key);
    go(true);
  };
  return (
    <div
      ref={scroller}
      className="wr-grid"
      role="grid"
      aria-label={`Fleet by ${MEASURE_NAMES[measure].toLowerCase()}`}
      aria-rowcount={lines.length}
      onKeyDown={pressed}
      onFocus={(event) => choose(rowOf(event.target)?.row.key ?? chosen)}
      onClick={(event) => {
        const here = rowOf(event.target);
        if (here) open(here.row);
      }}
    >
      <div role="rowgroup" style={{ position: "relative", height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index]!;
          return (
            <div
              key={item.key}
              className="wr-heat-line"
              role="row"
              aria-rowindex={item.index + 1}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {line.kind === "region" ? (
                <div role="rowheader">
                  <strong>{line.region === null ? "Region not known" : plain(line.region)}</strong>{" "}
                  <span className="wr-quiet">
                    {count(line.hosts)} hosts, {count(line.cells)} cells
                  </span>
                </div>
              ) : (
                <>
                  <div role="rowheader" className="wr-heat-host">
                    <span className="wr-cut" title={plain(line.host.host)}>
                      {plain(line.host.host)}
                    </span>
                    {line.host.simulated && <Simulated />}
                  </div>
                  {line.cells.map((row, index) => (
                    <Cell
                      key={row.key}
                      row={row}
                      measure={measure}
                      tab={at?.line === item.index && at.cell === index}
                    />
                  ))}
                </>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const Cell = memo(function Cell({ row, measure, tab }: { row: FleetRow; measure: Measure; tab: boolean }) {
  const { look, mark } = stepOf(row, measure);
  const label = labelOf(row, measure);
  return (
    <div
      role="gridcell"
      data-cell={row.key}
      tabIndex={tab ? 0 : -1}
      className={`wr-heat-cell wr-heat-${look}`}
      title={label}
      aria-label={label}
    >
      {mark}
    </div>
  );
});
