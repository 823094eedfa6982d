// The fleet as a virtual grid: only the rows in sight exist, and a row is drawn again only when it changed.

import { useNavigate } from "@tanstack/react-router";
import {
  createColumnHelper,
  createSortedRowModel,
  rowSortingFeature,
  type SortingState,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, memo, type ReactNode, useMemo, useRef } from "react";
import { words as asWords, bytes, celsius, compareTexts, DASH, percent, perHour, plain, watts } from "../format.ts";
import { Simulated, When } from "../parts/state.tsx";
import { toneOf } from "../states.ts";
import type { FleetFilter } from "./filter.ts";
import type { FleetRow } from "./rows.ts";
import { memoryRatio } from "./rows.ts";

const ROW_PX = 32;
const OVERSCAN = 6;
/** More rows than any screen shows at once, overscan included. */
const POOL = 256;

interface Shown {
  id: string;
  name: string;
  width: string;
  number?: boolean;
  value: (row: FleetRow) => string | number | undefined;
  cell: (row: FleetRow) => ReactNode;
}

const or = <T,>(value: T | null): T | undefined => value ?? undefined;

const COLUMNS: readonly Shown[] = [
  {
    id: "host",
    name: "Host",
    width: "minmax(206px, 1.4fr)",
    value: (row) => row.host,
    cell: (row) => (
      <span className="wr-cut" style={{ display: "flex", gap: 8, alignItems: "center" }}>
        <span className="wr-cut" title={plain(row.host)}>
          {plain(row.host)}
        </span>
        {row.simulated && <Simulated />}
      </span>
    ),
  },
  {
    id: "model",
    name: "Hardware",
    width: "minmax(122px, 1.2fr)",
    value: (row) => row.model,
    cell: (row) => (
      <span className="wr-cut" title={plain(row.model)}>
        {plain(row.model.replace(/^NVIDIA /, ""))}
      </span>
    ),
  },
  { id: "tier", name: "Tier", width: "90px", value: (row) => or(row.tier), cell: (row) => plain(row.tier) },
  {
    id: "link",
    name: "Host link",
    width: "84px",
    value: (row) => row.link,
    cell: (row) => <CellState state={row.link} />,
  },
  {
    id: "slot",
    name: "Slot",
    width: "78px",
    value: (row) => or(row.slot),
    cell: (row) => (row.slot ? <CellState state={row.slot} /> : DASH),
  },
  {
    id: "use",
    name: "Use",
    width: "96px",
    number: true,
    value: (row) => or(row.use),
    cell: (row) => <CellMeter ratio={row.use} text={percent(row.use)} />,
  },
  {
    id: "memory",
    name: "Memory",
    width: "104px",
    number: true,
    value: (row) => or(row.memoryUsedBytes),
    cell: (row) => <MemoryCell row={row} />,
  },
  {
    id: "temperature",
    name: "Temp",
    width: "56px",
    number: true,
    value: (row) => or(row.temperature),
    cell: (row) => celsius(row.temperature),
  },
  {
    id: "power",
    name: "Power",
    width: "58px",
    number: true,
    value: (row) => or(row.power),
    cell: (row) => watts(row.power),
  },
  {
    id: "price",
    name: "Price",
    width: "74px",
    number: true,
    value: (row) => (row.price === null ? undefined : Number(row.price)),
    cell: (row) => perHour(row.price),
  },
  {
    id: "region",
    name: "Region",
    width: "minmax(62px, .4fr)",
    value: (row) => or(row.region),
    cell: (row) => <span className="wr-cut">{plain(row.region)}</span>,
  },
  {
    id: "at",
    name: "Seen",
    width: "70px",
    number: true,
    value: (row) => (row.at ? Date.parse(row.at) : undefined),
    cell: (row) => (
      <span className="wr-quiet">
        <When at={row.at} />
      </span>
    ),
  },
];

const TEMPLATE = COLUMNS.map((column) => column.width).join(" ");

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });
const helper = createColumnHelper<typeof features, FleetRow>();

const columns = helper.columns(
  COLUMNS.map((column) =>
    helper.accessor(column.value, {
      id: column.id,
      header: column.name,
      sortDescFirst: column.number ?? false,
      sortUndefined: "last", // absent is not small: it comes after everything, either way round
      sortFn: (a, b, id) => compare(a.getValue(id), b.getValue(id)),
    }),
  ),
);

function compare(a: string | number, b: string | number): number {
  return typeof a === "string" ? compareTexts(a, String(b)) : a - Number(b);
}

// One element per cell, its shape and bar drawn by style alone: hundreds of these are laid out again at each long
// scroll.

function CellState({ state }: { state: string }) {
  return <span className={`wr-cell-state wr-cell-${toneOf(state)}`}>{asWords(state)}</span>;
}

function CellMeter({ ratio, text, title }: { ratio: number | null; text: string; title?: string }) {
  return (
    <span
      className={title ? "wr-cell-meter wr-cell-meter-wide" : "wr-cell-meter"}
      style={{ "--ratio": `${Math.round(100 * Math.min(1, Math.max(0, ratio ?? 0)))}%` } as CSSProperties}
      title={title}
    >
      {text}
    </span>
  );
}

function MemoryCell({ row }: { row: FleetRow }) {
  return (
    <CellMeter
      ratio={memoryRatio(row)}
      text={bytes(row.memoryBytes)}
      title={`${bytes(row.memoryUsedBytes)} of ${bytes(row.memoryBytes)}`}
    />
  );
}

export function FleetTable({
  rows,
  sort,
  onSort,
  empty,
}: {
  rows: readonly FleetRow[];
  sort: FleetFilter["sort"];
  onSort: (sort: FleetFilter["sort"]) => void;
  empty: ReactNode;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const sorting = useMemo<SortingState>(() => (sort ? [{ id: sort.column, desc: sort.descending }] : []), [sort]);
  const table = useTable({
    features,
    columns,
    data: rows,
    getRowId: (row) => row.key,
    state: { sorting },
    onSortingChange: (change) => {
      const first = (typeof change === "function" ? change(sorting) : change)[0];
      onSort(first ? { column: first.id, descending: first.desc } : null);
    },
  });
  const sorted = table.getRowModel().rows;
  const virtual = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    useFlushSync: false, // rows of a long scroll may come a moment late; a frame may not
    getItemKey: (index) => sorted[index]?.id ?? index,
  });
  const open = (row: FleetRow) => void navigate({ to: "/hosts/$hostId", params: { hostId: row.hostId } });
  const moved = (event: KeyboardEvent<HTMLDivElement>) => moveFocus(event, scroller.current);

  if (sorted.length === 0) return <div className="wr-grid">{empty}</div>;
  return (
    <div
      ref={scroller}
      className="wr-grid"
      role="table"
      aria-label="Fleet"
      aria-rowcount={sorted.length + 1}
      onKeyDown={moved}
    >
      <div className="wr-grid-head" role="rowgroup">
        <div className="wr-grid-row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: TEMPLATE }}>
          {table.getHeaderGroups()[0]?.headers.map((header) => {
            const direction = header.column.getIsSorted();
            const shown = COLUMNS.find((column) => column.id === header.column.id);
            return (
              <div
                key={header.id}
                role="columnheader"
                className={shown?.number ? "num" : undefined}
                aria-sort={direction === "asc" ? "ascending" : direction === "desc" ? "descending" : "none"}
              >
                <button type="button" onClick={header.column.getToggleSortingHandler()}>
                  {shown?.name}
                  {direction && <span aria-hidden="true">{direction === "asc" ? "↑" : "↓"}</span>}
                </button>
              </div>
            );
          })}
        </div>
      </div>
      <div className="wr-grid-body" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = sorted[item.index];
          // Keyed by place and not by card: a long scroll then fills the same elements anew instead of making others.
          return row ? (
            <Row key={item.index % POOL} row={row.original} index={item.index} top={item.start} open={open} />
          ) : null;
        })}
      </div>
    </div>
  );
}

interface RowProps {
  row: FleetRow;
  index: number;
  top: number;
  open: (row: FleetRow) => void;
}

const Row = memo(
  function Row({ row, index, top, open }: RowProps) {
    return (
      <div
        className="wr-grid-row"
        role="row"
        aria-rowindex={index + 2}
        tabIndex={0}
        data-row={index}
        style={{ gridTemplateColumns: TEMPLATE, transform: `translateY(${top}px)` }}
        onClick={() => open(row)}
        onKeyDown={(event) => event.key === "Enter" && open(row)}
      >
        {COLUMNS.map((column) => (
          <div key={column.id} role="cell" className={column.number ? "num" : undefined}>
            {column.cell(row)}
          </div>
        ))}
      </div>
    );
  },
  // `open` always does the same thing; only what is shown and where counts.
  (before, after) => before.row === after.row && before.top === after.top && before.index === after.index,
);

function moveFocus(event: KeyboardEvent<HTMLDivElement>, within: HTMLDivElement | null): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const at = (document.activeElement as HTMLElement | null)?.dataset.row;
  if (!step || at === undefined) return;
  const next = within?.querySelector<HTMLElement>(`[data-row="${Number(at) + step}"]`);
  if (!next) return;
  event.preventDefault();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}
