// What the pages of spending and earnings share: which month, of whom, by what; the bars of its days; its sums; CSV.
import { Group, NativeSelect, SegmentedControl } from "@mantine/core";
import { type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { me as meQuery } from "../api/queries.ts";
import { Loaded, PageHead, Panel } from "../parts/page.tsx";
import { type Part, StackedBars } from "../parts/StackedBars.tsx";
import { TestMoney } from "../parts/state.tsx";
import type { SearchWords } from "../tables/address.ts";
import { CsvButton } from "../tables/Csv.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

const monthFormat = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });

/** "November 2026" of 2026-11. */
export const monthName = (month: string): string => monthFormat.format(Date.parse(`${month}-15T12:00:00Z`));

export const daysOf = (month: string): number => {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year!, number!, 0)).getUTCDate();
};

/** "By machine", "By GPU model". */
const byName = (choices: Choices, by: string): string => {
  const name = choices[by] ?? by;
  return `By ${name.startsWith("GPU") ? name : name.toLowerCase()}`;
};

export type Choices = Readonly<Record<string, string>>;

export interface Chosen {
  /** Undefined: the present one. */
  month: string | undefined;
  all: boolean;
  by: string;
  chooseMonth: (month: string | undefined) => void;
  chooseAll: (all: boolean) => void;
  chooseBy: (by: string) => void;
  /** May see the sums of all projects. */
  oversees: boolean;
}

/** own, all: what sums can be of, by the API's word; the first one is the default. */
function useMonth(own: Choices, all: Choices): Chosen {
  const roles = useQuery(meQuery).data?.roles ?? [];
  const oversees = roles.some((role) => role === "operator" || role === "auditor");
  // In the address, so that a link and a reload show the same month, and one that there is not is refused in words.
  const { month }: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  const chooseMonth = (chosen: string | undefined) =>
    void navigate({ to: ".", search: (now: SearchWords) => ({ ...now, month: chosen }), replace: true } as never);
  const [isAll, chooseAll] = useState(false);
  const [by, chooseBy] = useState("");
  const choices = Object.keys(isAll ? all : own);
  const chosen = choices.includes(by) ? by : choices[0]!;
  return { month, all: isAll, by: chosen, chooseMonth, chooseAll, chooseBy, oversees };
}

interface PageProps<Found> {
  title: string;
  own: Choices;
  all: Choices;
  query: (by: string, month: string | undefined, all: boolean) => UseQueryOptions<Found>;
  children: (found: Found, chosen: Chosen) => ReactNode;
}

/** A page about one month: its head with what is chosen, and what was found of it. */
export function MonthPage<Found extends { months: readonly string[] }>(props: PageProps<Found>) {
  const chosen = useMonth(props.own, props.all);
  const query = useQuery(props.query(chosen.by, chosen.month, chosen.all));
  return (
    <div className="wr-page">
      <PageHead
        title={props.title}
        beside={<TestMoney />}
        actions={<MonthControls chosen={chosen} months={query.data?.months} />}
      />
      <Loaded query={query} lines={12}>
        {(found) => props.children(found, chosen)}
      </Loaded>
    </div>
  );
}

interface SumsProps<Row> {
  found: { by: string; month: string; rows: readonly Row[] };
  choices: Choices;
  columns: readonly Column<Row>[];
  id: (row: Row) => string | null;
}

/** The sums of the month by what is chosen. */
export function Sums<Row>({ found, choices, columns, id }: SumsProps<Row>) {
  return (
    <Panel title={byName(choices, found.by)} bare>
      <DataTable
        of={["row", "rows"]}
        columns={columns}
        id={(row) => `${found.by} ${id(row)}`}
        rows={found.rows}
        file={found.month}
        empty={null}
      />
    </Panel>
  );
}

function MonthControls({ chosen, months }: { chosen: Chosen; months: readonly string[] | undefined }) {
  return (
    <>
      {chosen.oversees && (
        <SegmentedControl
          size="xs"
          aria-label="Of"
          value={chosen.all ? "all" : "own"}
          onChange={(value) => chosen.chooseAll(value === "all")}
          data={[
            { value: "own", label: "This project" },
            { value: "all", label: "All projects" },
          ]}
        />
      )}
      <NativeSelect
        size="xs"
        aria-label="Month"
        value={chosen.month ?? months?.[0] ?? ""}
        onChange={(event) => chosen.chooseMonth(event.currentTarget.value)}
        data={(months ?? []).map((month) => ({ value: month, label: monthName(month) }))}
      />
    </>
  );
}

interface DailyProps {
  title: string;
  currency: string;
  month: string;
  days: readonly { day: string; amount: string }[];
  rows: readonly Part[];
  chosen: Chosen;
  choices: Choices;
  file: string;
}

/** The days as bars stacked by what is chosen, and the same as CSV. */
export function Daily({ title, currency, month, days, rows, chosen, choices, file }: DailyProps) {
  const columns = [
    { name: "day", value: (at: number) => days[at]!.day },
    { name: `amount_${currency}`, value: (at: number) => days[at]!.amount },
    ...rows.map((row) => ({ name: row.name, value: (at: number) => row.days[at] })),
  ];
  return (
    <Panel
      title={title}
      actions={
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label="By"
            value={chosen.by}
            onChange={chosen.chooseBy}
            data={Object.entries(choices).map(([value, label]) => ({ value, label }))}
          />
          <CsvButton
            of="the days"
            name={`${file}-${month}-days`}
            columns={columns}
            rows={() => days.map((_, at) => at)}
          />
        </Group>
      }
    >
      <StackedBars label={title} unit={currency} days={days} rows={rows} />
    </Panel>
  );
}
