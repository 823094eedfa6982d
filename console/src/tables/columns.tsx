// Columns that many lists share: times, figures, states, ids, links to events; and the head and cells of every
// table.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { count, DASH, plain } from "../parts/format.ts";
import { Id } from "../parts/page.tsx";
import { Simulated, State, When } from "../parts/state.tsx";
import type { Cell } from "./csv.ts";
import type { Column, Order } from "./table.ts";

/** Characters of a text that may be broken anywhere: a shorter one keeps its column wide enough for it. */
const LONG = 24;

type Maybe<T> = T | null | undefined;
type Rest<Row> = Partial<Column<Row>>;

export const moment = <Row,>(
  id: string,
  name: string,
  at: (row: Row) => Maybe<string>,
  absent: string = DASH,
): Column<Row> => ({ id, name, value: at, cell: (row) => (at(row) ? <When at={at(row)} /> : absent) });

export const figure = <Row, Value extends Cell>(
  id: string,
  name: string,
  value: (row: Row) => Value,
  text: (value: Value) => string,
  rest: Rest<Row> = {},
): Column<Row> => ({ id, name, number: true, value, cell: (row) => text(value(row)), ...rest });

export const state = <Row,>(
  name: string,
  value: (row: Row) => Maybe<string>,
  reason?: (row: Row) => Maybe<string>,
  rest: Rest<Row> = {},
): Column<Row> => ({
  id: "state",
  name,
  value,
  facet: true,
  cell: (row) => <State state={value(row)} reason={reason?.(row) ?? null} />,
  ...rest,
});

export const identity = <Row,>(value: (row: Row) => Maybe<string>, rest: Rest<Row> = {}): Column<Row> => ({
  id: "id",
  name: "Id",
  value,
  cell: (row) => <Id id={value(row)} />,
  ...rest,
});

/** Real or simulated: the first column says it as well, so that this one need not be shown. */
export const simulated = <Row,>(value: (row: Row) => boolean): Column<Row> => ({
  id: "simulated",
  name: "Real or simulated",
  value,
  facet: (row) => (value(row) ? "simulated" : "real"),
  cell: (row) => (value(row) ? "Simulated" : "Real"),
  optional: true,
});

/** A name, and a mark where the thing is simulated. */
export function Named({ children, isSimulated }: { children: ReactNode; isSimulated: boolean }) {
  return (
    <>
      {children}
      {isSimulated && (
        <>
          {" "}
          <Simulated />
        </>
      )}
    </>
  );
}

/** label: what the events are of, for those who hear the link alone: "token laptop". */
export const events = <Row,>(label: (row: Row) => string, subject: (row: Row) => string): Column<Row> => ({
  id: "events",
  name: "Events",
  cell: (row) => (
    <Link className="wr-link" to="/events" search={{ subject: subject(row) }} aria-label={`Events of ${label(row)}`}>
      Events
    </Link>
  ),
});

/** Buttons that change the row. */
export const actions = <Row,>(cell: (row: Row) => ReactNode): Column<Row> => ({
  id: "do",
  name: "Do",
  unseen: true,
  number: true,
  cell,
});

/** The content of a cell: by its column, else its value as text. */
export function shown<Row>(column: Column<Row>, row: Row): ReactNode {
  if (column.cell) return column.cell(row);
  const value = column.value?.(row);
  if (typeof value === "number") return count(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value && value.length > LONG ? <span className="wr-break">{plain(value)}</span> : plain(value);
}

export function sortOf<Row>(column: Column<Row>, order: Order | null) {
  if (!column.value) return undefined;
  return order?.column !== column.id ? "none" : order.descending ? "descending" : "ascending";
}

interface HeadProps<Row> {
  column: Column<Row>;
  order: Order | null;
  press: (column: Column<Row>) => void;
}

export function Head<Row>({ column, order, press }: HeadProps<Row>) {
  if (column.unseen) return <span className="wr-unseen">{column.name}</span>;
  const sort = sortOf(column, order);
  if (!sort) return column.name;
  return (
    <button type="button" className="wr-sort" onClick={() => press(column)}>
      {column.name}
      {sort !== "none" && <span aria-hidden="true">{sort === "ascending" ? "↑" : "↓"}</span>}
    </button>
  );
}
