// A table of thousands of rows: draws only those in sight, and a row again only when it changed.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useRef } from "react";
import { Head, shown, sortOf } from "./columns.tsx";
import type { Column, Order } from "./table.ts";

const ROW_PX = 32;
/** Of each column: on a narrower screen the grid scrolls sideways. */
const COLUMN_PX_MIN = 92;
const OVERSCAN = 6;
/** More rows than any screen shows at once, overscan included. */
const POOL = 256;

interface GridProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  id: (row: Row) => string;
  order: Order | null;
  press: (column: Column<Row>) => void;
  open: (row: Row) => void;
}

export function Grid<Row>({ label, columns, rows, id, order, press, open }: GridProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    useFlushSync: false, // rows of a long scroll may come a moment late; a frame may not
    getItemKey: (index) => {
      const row = rows[index];
      return row ? id(row) : index;
    },
  });
  const template = columns.map((column) => column.width ?? "1fr").join(" ");
  const minWidth = columns.length * COLUMN_PX_MIN;
  return (
    <div
      ref={scroller}
      className="wr-grid"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      onKeyDown={(event) => moveFocus(event, scroller.current)}
    >
      <div className="wr-grid-head" role="rowgroup">
        <div className="wr-grid-row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, minWidth }}>
          {columns.map((column) => (
            <div
              key={column.id}
              role="columnheader"
              className={column.number ? "num" : undefined}
              aria-sort={sortOf(column, order)}
            >
              <Head column={column} order={order} press={press} />
            </div>
          ))}
        </div>
      </div>
      <div className="wr-grid-body" role="rowgroup" style={{ height: virtual.getTotalSize(), minWidth }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          // Keyed by place and not by row: a long scroll then fills the same elements anew instead of making others.
          return row ? (
            <Line
              key={item.index % POOL}
              row={row}
              index={item.index}
              top={item.start}
              columns={columns as readonly Column<unknown>[]}
              template={template}
              open={open as (row: unknown) => void}
            />
          ) : null;
        })}
      </div>
    </div>
  );
}

interface LineProps {
  row: unknown;
  index: number;
  top: number;
  columns: readonly Column<unknown>[];
  template: string;
  open: (row: unknown) => void;
}

const Line = memo(
  function Line({ row, index, top, columns, template, open }: LineProps) {
    return (
      <div
        className="wr-grid-row"
        role="row"
        aria-rowindex={index + 2}
        tabIndex={0}
        data-row={index}
        style={{ gridTemplateColumns: template, transform: `translateY(${top}px)` }}
        onClick={() => open(row)}
        onKeyDown={(event) => event.key === "Enter" && open(row)}
      >
        {columns.map((column) => (
          <div key={column.id} role="cell" className={column.number ? "num" : undefined}>
            {shown(column, row)}
          </div>
        ))}
      </div>
    );
  },
  // `open` always does the same thing; only what is shown and where counts.
  (before, after) =>
    before.row === after.row &&
    before.top === after.top &&
    before.index === after.index &&
    before.columns === after.columns,
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
