// Reports: one measure of a period by one or two dimensions, as bars and a table, down to the rows it is the sum of.
import { Button, Group, NativeSelect, SegmentedControl, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { send } from "../api/client.ts";
import { me as meQuery, report as reportQuery, reportRows } from "../api/queries.ts";
import type { Report, ReportRow } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { count, percent, plain } from "../parts/format.ts";
import { DownloadIcon } from "../parts/icons.tsx";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { StackedBars } from "../parts/StackedBars.tsx";
import { Subject } from "../parts/Subject.tsx";
import { Meter, TestMoney } from "../parts/state.tsx";
import type { SearchWords } from "../tables/address.ts";
import { keep } from "../tables/Csv.tsx";
import { figure, moment } from "../tables/columns.tsx";
import { fileName } from "../tables/csv.ts";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import {
  bars,
  dimensionsOf,
  measuresOf,
  nameOf,
  PERIODS,
  shownValue,
  viewsOf,
  type Wanted,
  wantedFrom,
} from "./reports.ts";
import { Schedules } from "./Schedules.tsx";

type Cell = Report["cells"][number];
const inWords = (word: string): string => (word === "model" ? nameOf(word) : word);
type Change = (words: SearchWords) => void;

const VIEWS = { all: "Everything", project: "Spending", hosts: "My hosts" } as const;
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function ReportsPage() {
  const roles = useQuery(meQuery).data?.roles ?? [];
  const given: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  const change: Change = (words) =>
    void navigate({ to: ".", search: (now: SearchWords) => ({ ...now, ...words }), replace: true, resetScroll: false });
  const views = viewsOf(roles);
  const wanted = wantedFrom(given, views);
  const query = useQuery(reportQuery(wanted.words));
  return (
    <div className="wr-page">
      <PageHead title="Reports" beside={<TestMoney />} actions={<Actions wanted={wanted} />} />
      <div className="wr-stack">
        <Panel label="What is reported">
          <Controls wanted={wanted} given={given} views={views} change={change} />
        </Panel>
        <Loaded query={query} lines={10}>
          {(found) => <Shown found={found} wanted={wanted} change={change} />}
        </Loaded>
        {wanted.rows && <Rows wanted={wanted} close={() => change({ rows: undefined })} />}
      </div>
    </div>
  );
}

interface ControlsProps {
  wanted: Wanted;
  given: SearchWords;
  views: readonly (keyof typeof VIEWS)[];
  change: Change;
}

function Controls({ wanted, given, views, change }: ControlsProps) {
  const options = (choices: readonly (readonly [string, string])[]) =>
    choices.map(([value, label]) => ({ value, label }));
  const dimensions = options(dimensionsOf(wanted.view, wanted.measure));
  const [first, second] = [wanted.by[0] ?? "", wanted.by[1] ?? ""];
  const divide = (one: string, other: string) =>
    change({ by: [one, other].filter(Boolean).join(","), rows: undefined });
  const period = given.from || given.to ? "" : (given.period ?? "this-month");
  const others = dimensions.filter(({ value }) => value !== first);
  return (
    <Group gap="sm" align="end">
      {views.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label="View"
          value={wanted.view}
          onChange={(view) => change({ view, measure: undefined, by: undefined, rows: undefined })}
          data={views.map((value) => ({ value, label: VIEWS[value] }))}
        />
      )}
      <NativeSelect
        label="Measure"
        value={wanted.measure}
        onChange={(event) => change({ measure: event.currentTarget.value })}
        data={options(measuresOf(wanted.view))}
      />
      <NativeSelect
        label="By"
        value={first}
        onChange={(event) => divide(event.currentTarget.value, second === event.currentTarget.value ? "" : second)}
        data={[{ value: "", label: "Nothing" }, ...dimensions]}
      />
      <NativeSelect
        label="And by"
        value={second}
        disabled={!first}
        onChange={(event) => divide(first, event.currentTarget.value)}
        data={[{ value: "", label: "Nothing" }, ...others]}
      />
      <NativeSelect
        label="Period"
        value={period}
        onChange={(event) => change({ period: event.currentTarget.value, from: undefined, to: undefined })}
        data={[
          ...(period ? [] : [{ value: "", label: `${given.from ?? ""} to ${given.to ?? "today"}` }]),
          ...options(PERIODS),
        ]}
      />
      <NativeSelect
        label="Days in"
        value={given.time_zone ?? "UTC"}
        onChange={(event) => change({ time_zone: event.currentTarget.value })}
        data={[...new Set(["UTC", ZONE, given.time_zone ?? "UTC"])]}
      />
      {Object.entries(wanted.filters).map(([word, value]) => (
        <Button key={word} variant="light" onClick={() => change({ [word]: undefined })}>
          {`${nameOf(word)}: ${plain(value)} ✕`}
        </Button>
      ))}
    </Group>
  );
}

function Actions({ wanted }: { wanted: Wanted }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Download label="CSV" path="/reports" words={{ ...wanted.words, format: "csv" }} ending="csv" />
      <Download label="Page to print" path="/reports" words={{ ...wanted.words, format: "html" }} ending="html" />
      <Download label="Statement" path="/reports/statement" words={statementWords(wanted.words)} ending="html" />
      <Button variant="default" onClick={() => setOpen(true)}>
        By mail
      </Button>
      {open && <Schedules wanted={wanted} close={() => setOpen(false)} />}
    </>
  );
}

const statementWords = ({ view, period, from, to, time_zone }: Readonly<Record<string, string>>) => ({
  ...{ view, period, from, to, time_zone, format: "html" },
});

interface DownloadProps {
  label: string;
  path: string;
  words: Record<string, string | undefined>;
  ending: string;
}

function Download({ label, path, words, ending }: DownloadProps) {
  const name = fileName(`windrow-${label}-${words.period ?? words.from ?? ""}`, ending);
  const act = useChange(async () => keep(await (await send("GET", path, { query: words })).blob(), name), {
    lists: [],
    said: `${name} was saved`,
  });
  return (
    <Button
      variant="default"
      leftSection={<DownloadIcon size={14} />}
      loading={act.isPending}
      onClick={() => act.mutate()}
      {...(act.error ? { color: "red", title: String(act.error) } : {})}
    >
      {label}
    </Button>
  );
}

function Shown({ found, wanted, change }: { found: Report; wanted: Wanted; change: Change }) {
  const drawn = bars(found);
  const measure = found.measures[0]!;
  const unit = found.units[measure] === "money" ? plain(found.currency) : (found.units[measure] ?? "");
  const total = shownValue(measure, found.units, found.totals[measure] ?? null);
  if (found.cells.length === 0)
    return (
      <Panel label="Report">
        <Empty title={`Nothing from ${found.first_day} to ${found.last_day}`}>
          Choose another period or measure, or take a filter away.
        </Empty>
      </Panel>
    );
  const title = [nameOf(measure), ...found.by.map((word, at) => `${at ? "and" : "by"} ${inWords(word)}`)].join(" ");
  return (
    <>
      {drawn && (
        <Panel title={title}>
          <StackedBars label={title} unit={unit} days={drawn.days} rows={drawn.parts} />
        </Panel>
      )}
      <Panel
        title={`${title}: ${total}${found.units[measure] === "ratio" ? "" : ` ${unit}`} in all`}
        actions={
          <Button variant="subtle" onClick={() => change({ rows: "1" })}>
            All rows
          </Button>
        }
        bare
      >
        <DataTable
          of={["sum", "sums"]}
          columns={columnsOf(found, change)}
          id={(cell) => cell.rows}
          rows={found.cells}
          file={wanted.words.period ?? wanted.words.from}
          empty={null}
        />
      </Panel>
      <Text size="xs" className="wr-quiet">
        Running time counts on the day it was used; its charge is posted some seconds later. Days in{" "}
        {plain(found.time_zone)}.
      </Text>
    </>
  );
}

function columnsOf(found: Report, change: Change): Column<Cell>[] {
  const measure = found.measures[0]!;
  const top = Math.max(...found.cells.map(({ values }) => Number(values[measure] ?? 0)), 0);
  return [
    ...found.by.map(
      (word, at): Column<Cell> => ({
        id: word,
        name: nameOf(word),
        value: ({ keys }) => keys[at]!.name || "none",
      }),
    ),
    ...found.measures.map((one) =>
      figure<Cell, string | null>(
        one,
        nameOf(one),
        ({ values }) => values[one] ?? null,
        (value) => shownValue(one, found.units, value),
      ),
    ),
    {
      id: "bar",
      name: "Relative to the largest",
      cell: ({ values }) => <Share value={Number(values[measure] ?? 0)} top={top} label={nameOf(measure)} />,
    },
    {
      id: "rows",
      name: "Rows",
      unseen: true,
      cell: ({ keys }) => (
        <Button
          variant="subtle"
          onClick={() =>
            change({ ...Object.fromEntries(found.by.map((word, at) => [word, keys[at]!.id ?? "none"])), rows: "1" })
          }
          aria-label={`Rows of ${keys.map(({ name }) => plain(name)).join(", ") || "all"}`}
        >
          Rows
        </Button>
      ),
    },
  ];
}

const Share = ({ value, top, label }: { value: number; top: number; label: string }) => {
  const ratio = top ? value / top : 0;
  return <Meter ratio={ratio} text={percent(ratio)} label={label} />;
};

/** The rows below the figures: what one host ran of a rental, the time of a GPU, or an incident. */
function Rows({ wanted, close }: { wanted: Wanted; close: () => void }) {
  const query = useQuery(reportRows(wanted.words));
  return (
    <Panel
      title={query.data ? `${count(query.data.count)} rows` : "Rows"}
      actions={
        <Button variant="subtle" onClick={close}>
          Close
        </Button>
      }
      bare
    >
      <DataTable
        of={["row", "rows"]}
        columns={ROW_COLUMNS}
        id={(row) => `${row.id} ${row.workload_id} ${row.at}`}
        rows={query.data?.items}
        query={query}
        empty={<Empty title="No rows">Nothing is behind these figures.</Empty>}
      />
    </Panel>
  );
}

const ROW_COLUMNS: readonly Column<ReportRow>[] = [
  { id: "source", name: "Of", value: (row) => row.source, facet: true },
  {
    id: "name",
    name: "Name",
    value: (row) => row.name,
    cell: (row) => (row.receipt ? <ReceiptLink row={row} /> : row.workload_id ? plain(row.name) : <Thing row={row} />),
  },
  moment("at", "Since", (row) => row.at),
  {
    id: "values",
    name: "Figures",
    value: (row) =>
      Object.entries(row.values)
        .map((one) => one.join(" "))
        .join(", "),
  },
  { id: "host", name: "Host", value: (row) => row.keys.host ?? "", optional: true },
  { id: "tier", name: "Tier", value: (row) => row.keys.tier ?? "" },
];

/** The host, GPU or slot that was there, or had the incident: its page has the events and alerts. */
const Thing = ({ row }: { row: ReportRow }) => <Subject id={row.id} name={row.name} />;

const ReceiptLink = ({ row }: { row: ReportRow }) => (
  <Link className="wr-link" to="/receipts/$receiptId" params={{ receiptId: row.receipt!.split("/").at(-1)! }}>
    {plain(row.name)}
  </Link>
);
