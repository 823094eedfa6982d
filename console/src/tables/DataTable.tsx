// Every list of the console: search, facets, order, chosen columns, CSV; cards on a phone, a virtual grid for
// thousands.
import { Badge, Button, Group, Menu, NativeSelect, Text } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { count, words } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { Empty, ProblemNote, Waiting } from "../parts/page.tsx";
import { readColumns, type SearchWords } from "./address.ts";
import { CsvButton } from "./Csv.tsx";
import { Head, shown, sortOf } from "./columns.tsx";
import { FilterBox } from "./FilterBox.tsx";
import { Grid } from "./Grid.tsx";
import type { Older } from "./older.ts";
import {
  type Column,
  EVERYTHING,
  facetName,
  isVaried,
  matcher,
  ordered,
  pressed,
  type Search,
  searchFrom,
  tally,
  toggled,
  withSearch,
} from "./table.ts";

interface DataTableProps<Row> {
  /** The word for a row, and for all of them: "cluster", "clusters". */
  of: readonly [one: string, many: string];
  columns: readonly Column<Row>[];
  id: (row: Row) => string;
  /** Undefined: they were not read yet. */
  rows: readonly Row[] | undefined;
  /** The query of the rows: its failure is shown while there are none. */
  query?: { error: unknown; refetch: () => unknown };
  /** In place of the table while there are no rows. */
  empty: ReactNode;
  /** The search is kept in the address: for the list that its page is about. */
  address?: boolean;
  /** Reads the text in a way of its own; `help` says how. */
  match?: (text: string) => (row: Row) => boolean;
  help?: string;
  placeholder?: string;
  older?: Omit<Older<Row>, "rows">;
  /** A few rows beside other things: no search, no menus. */
  bare?: boolean;
  /** For thousands of rows: only those in sight exist, each on one line, and a press on one opens it. */
  open?: (row: Row) => void;
  /** After the kind of rows in the name of a CSV file. */
  file?: string | undefined;
  /** Before the menus, told the rows that are found. */
  tools?: ((found: readonly Row[]) => ReactNode) | undefined;
  /** All that a row stands for, each a line of a CSV file. */
  each?: (row: Row) => readonly Row[];
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { rows, query, older, empty } = props;
  if (rows === undefined)
    return query?.error ? (
      <ProblemNote error={query.error} retry={() => void query.refetch()} />
    ) : (
      <Waiting lines={props.open ? 10 : 6} />
    );
  if (rows.length === 0 && !older?.more) return props.open ? <div className="wr-grid">{empty}</div> : empty;
  return props.address ? <InAddress {...props} rows={rows} /> : <ByItself {...props} rows={rows} />;
}

interface ReadProps<Row> extends DataTableProps<Row> {
  rows: readonly Row[];
}

function ByItself<Row>(props: ReadProps<Row>) {
  const [search, change] = useState(EVERYTHING);
  return <Found {...props} search={search} change={change} />;
}

function InAddress<Row>(props: ReadProps<Row>) {
  const { columns } = props;
  const given: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  const search = useMemo(() => searchFrom(given, columns), [given, columns]);
  const change = (next: Search) =>
    void navigate({
      to: ".",
      search: (now: SearchWords) => withSearch(now, next, columns),
      replace: true,
      resetScroll: false,
    });
  return <Found {...props} search={search} change={change} />;
}

interface FoundProps<Row> extends ReadProps<Row> {
  search: Search;
  change: (search: Search) => void;
}

function Found<Row>(props: FoundProps<Row>) {
  const { of, columns, rows, search, change, match, open, older } = props;
  const [chosen, choose] = useChosen(of[1]);
  const visible = useMemo(() => columns.filter((column) => chosen[column.id] ?? !column.optional), [columns, chosen]);
  const found = useMemo(
    () => ordered(rows.filter(matcher(search, columns, match)), columns, search.order),
    [rows, search, columns, match],
  );
  const order = (column: Column<Row>) => change({ ...search, order: pressed(search.order, column) });
  const all = { ...EVERYTHING, order: search.order };
  return (
    <>
      {!props.bare && <Tools {...props} found={found} visible={visible} choose={choose} all={all} />}
      {found.length === 0 ? (
        <Empty
          title={`No ${of[0]} matches`}
          action={
            <Button variant="default" onClick={() => change(all)}>
              Show all {count(rows.length)}
            </Button>
          }
        >
          {props.help ?? "Every word must be in some column of a row."}
          {older?.more && ` ${words(older.word ?? "older")} ones are searched once they were read.`}
        </Empty>
      ) : open ? (
        <Grid
          label={of[1]}
          columns={visible}
          rows={found}
          id={props.id}
          order={search.order}
          press={order}
          open={open}
        />
      ) : (
        <Plain {...props} columns={visible} rows={found} press={order} />
      )}
      {older && <OlderRows older={older} />}
    </>
  );
}

type Chosen = Readonly<Record<string, boolean>>;

/** The columns that a person chose for this kind of rows, kept in this browser. */
function useChosen(many: string): [Chosen, (chosen: Chosen) => void] {
  const [chosen, choose] = useLocalStorage<Chosen>({
    key: `windrow.columns.${many}`,
    defaultValue: {},
    getInitialValueInEffect: false,
    deserialize: readColumns,
  });
  return [chosen, choose];
}

interface ToolsProps<Row> extends FoundProps<Row> {
  found: readonly Row[];
  visible: readonly Column<Row>[];
  choose: (chosen: Chosen) => void;
  all: Search;
}

function Tools<Row>({ found, visible, choose, all, ...props }: ToolsProps<Row>) {
  const { of, columns, rows, search, change, older } = props;
  const narrowed = search.text !== "" || Object.values(search.facets).some((values) => values.length > 0);
  const facets = useMemo(
    () => columns.filter((one) => one.facet && (search.facets[one.id]?.length || isVaried(rows, one))),
    [columns, rows, search.facets],
  );
  const csv = columns.flatMap(({ id, csv, value }) => (value ? [{ name: csv ?? id, value }] : []));
  return (
    <Group gap={6} className="wr-tools wr-no-print">
      <FilterBox
        label={props.address ? "Filter" : `Filter ${of[1]}`}
        value={search.text}
        onChange={(text) => change({ ...search, text })}
        placeholder={props.placeholder ?? `Filter the ${of[1]}`}
        help={props.help}
        width={220}
        restMs={60}
      />
      {facets.map((column) => (
        <FacetMenu key={column.id} column={column} rows={rows} search={search} change={change} />
      ))}
      <OrderSelect columns={visible} search={search} change={change} />
      <Text size="xs" className="wr-quiet" role={narrowed ? "status" : undefined} data-testid="shown">
        {narrowed ? `${count(found.length)} of ${count(rows.length)} shown` : `${count(rows.length)} shown`}
        {older?.more && `; ${older.word ?? "older"} ones are not loaded`}
      </Text>
      {narrowed && (
        <Button variant="subtle" color="gray" onClick={() => change(all)}>
          Clear
        </Button>
      )}
      {props.tools?.(found)}
      <Group gap={6} ml="auto">
        <ColumnsMenu columns={columns} visible={visible} choose={choose} />
        <CsvButton
          of={`the ${of[1]}`}
          name={["windrow", of[1], props.file].filter(Boolean).join("-")}
          columns={csv}
          rows={() => (props.each ? found.flatMap(props.each) : found)}
          disabled={found.length === 0}
        />
      </Group>
    </Group>
  );
}

interface SearchProps<Row> {
  search: Search;
  change: (search: Search) => void;
  rows: readonly Row[];
}

function FacetMenu<Row>({ column, rows, search, change }: SearchProps<Row> & { column: Column<Row> }) {
  const [opened, setOpened] = useState(false);
  const chosen = search.facets[column.id] ?? [];
  const options = useMemo(() => (opened ? tally(rows, column) : []), [opened, rows, column]);
  return (
    <Menu opened={opened} onChange={setOpened} closeOnItemClick={false} position="bottom-start">
      <Menu.Target>
        <Button variant={chosen.length ? "light" : "default"} rightSection={<ChevronIcon size={12} />}>
          {column.name}
          {chosen.length > 0 && (
            <Badge size="sm" ml={6} variant="filled">
              {chosen.length === 1 ? facetName(column, chosen[0] ?? "") : chosen.length}
            </Badge>
          )}
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={360} style={{ overflowY: "auto" }}>
        {options.map(([value, rowsOfIt]) => (
          <Menu.CheckboxItem
            key={value}
            checked={chosen.includes(value)}
            onChange={() => change(toggled(search, column.id, value))}
            rightSection={<span className="wr-quiet">{count(rowsOfIt)}</span>}
          >
            {facetName(column, value)}
          </Menu.CheckboxItem>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** On a phone, where cards have no heads to press. */
function OrderSelect<Row>({
  columns,
  search,
  change,
}: Omit<SearchProps<Row>, "rows"> & { columns: readonly Column<Row>[] }) {
  const by = columns.find((column) => column.id === search.order?.column);
  return (
    <NativeSelect
      className="wr-phone"
      size="xs"
      aria-label="Order"
      value={by?.id ?? ""}
      onChange={(event) => {
        const column = columns.find((one) => one.id === event.currentTarget.value);
        change({ ...search, order: column ? pressed(null, column) : null });
      }}
      data={[
        { value: "", label: "Default order" },
        ...columns.flatMap(({ id, name, value }) => (value ? [{ value: id, label: `By ${name.toLowerCase()}` }] : [])),
      ]}
    />
  );
}

function ColumnsMenu<Row>({
  columns,
  visible,
  choose,
}: {
  columns: readonly Column<Row>[];
  visible: readonly Column<Row>[];
  choose: (chosen: Chosen) => void;
}) {
  const isShown = (column: Column<Row>) => visible.includes(column);
  const toggle = (changed: Column<Row>) => {
    const next = columns.map((one) => [one, one === changed ? !isShown(one) : isShown(one)] as const);
    choose(Object.fromEntries(next.flatMap(([one, shown]) => (shown === !one.optional ? [] : [[one.id, shown]]))));
  };
  return (
    <Menu closeOnItemClick={false} position="bottom-end">
      <Menu.Target>
        <Button variant="default" rightSection={<ChevronIcon size={12} />}>
          Columns
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={420} style={{ overflowY: "auto" }}>
        {columns
          .filter((column) => !column.unseen)
          .map((column) => (
            <Menu.CheckboxItem
              key={column.id}
              checked={isShown(column)}
              disabled={visible.length === 1 && isShown(column)}
              onChange={() => toggle(column)}
            >
              {column.name}
            </Menu.CheckboxItem>
          ))}
        <Menu.Divider />
        <Menu.Item onClick={() => choose({})}>As at first</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function OlderRows({ older }: { older: Omit<Older<unknown>, "rows"> }) {
  if (!older.more && !older.error) return null;
  return (
    <>
      {older.error ? <ProblemNote error={older.error} retry={older.load} /> : null}
      {older.more && (
        <Group justify="flex-end" px={12} py={8} className="wr-no-print">
          <Button variant="default" loading={older.loading} onClick={older.load}>
            {words(older.word ?? "older")}
          </Button>
        </Group>
      )}
    </>
  );
}

interface PlainProps<Row> extends FoundProps<Row> {
  press: (column: Column<Row>) => void;
}

function Plain<Row>({ of, columns, rows, id, search, press }: PlainProps<Row>) {
  return (
    <div className="wr-scroll" tabIndex={0} role="region" aria-label={`Table of ${of[1]}`}>
      <table className="wr-table wr-cards">
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                className={column.number ? "num" : undefined}
                style={column.width === undefined ? undefined : { width: column.width }}
                aria-sort={sortOf(column, search.order)}
              >
                <Head column={column} order={search.order} press={press} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {columns.map((column) => (
                <td
                  key={column.id}
                  className={column.number ? "num" : undefined}
                  data-label={column.unseen ? undefined : column.name}
                >
                  <div>{shown(column, row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
