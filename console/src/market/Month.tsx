// What the pages of spending and earnings share: which month, of whom, by what; the bars of its days; CSV.
import { Group, NativeSelect, SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { me as meQuery } from "../api/queries.ts";
import { Panel } from "../parts/page.tsx";
import { type Part, StackedBars } from "../parts/StackedBars.tsx";
import { CsvButton } from "../tables/Csv.tsx";

const monthFormat = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });

/** "November 2026" of 2026-11. */
export const monthName = (month: string): string => monthFormat.format(Date.parse(`${month}-15T12:00:00Z`));

export const daysOf = (month: string): number => {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year!, number!, 0)).getUTCDate();
};

/** "By machine", "By GPU model". */
export const byName = (choices: Choices, by: string): string => {
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
export function useMonth(own: Choices, all: Choices): Chosen {
  const roles = useQuery(meQuery).data?.roles ?? [];
  const oversees = roles.some((role) => role === "operator" || role === "auditor");
  const [month, chooseMonth] = useState<string>();
  const [isAll, chooseAll] = useState(false);
  const [by, chooseBy] = useState("");
  const choices = Object.keys(isAll ? all : own);
  const chosen = choices.includes(by) ? by : choices[0]!;
  return { month, all: isAll, by: chosen, chooseMonth, chooseAll, chooseBy, oversees };
}

export function MonthControls({ chosen, months }: { chosen: Chosen; months: readonly string[] | undefined }) {
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
