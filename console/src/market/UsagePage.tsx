// Usage & billing: what a month cost so far, where that leads, what runs now, and what it was for.
import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { spending } from "../api/queries.ts";
import type { Spending } from "../api/types.ts";
import { PageButton, useMayOpen } from "../app/PageButton.tsx";
import { amount, count, decimal, perHour, plain } from "../parts/format.ts";
import { Empty, Figure, Panel } from "../parts/page.tsx";
import { RunningSum } from "../parts/StackedBars.tsx";
import { When } from "../parts/state.tsx";
import { figure, identity } from "../tables/columns.tsx";
import type { Column } from "../tables/table.ts";
import { type Choices, type Chosen, Daily, daysOf, MonthPage, monthName, Sums } from "./Month.tsx";

type Row = Spending["rows"][number];

const OWN: Choices = { machine: "Machine", job: "Job", gpu: "GPU model", person: "Person" };
const ALL: Choices = { project: "Project", gpu: "GPU model" };

export const UsagePage = () => (
  <MonthPage title="Usage & billing" own={OWN} all={ALL} query={spending}>
    {(found, chosen) => <Shown found={found} chosen={chosen} />}
  </MonthPage>
);

function Shown({ found, chosen }: { found: Spending; chosen: Chosen }) {
  const isAll = found.scope === "all";
  const isNow = found.forecast !== null;
  return (
    <div className="wr-stack">
      <Panel label="Money now">
        <Figures found={found} isNow={isNow} />
      </Panel>
      {found.rows.length === 0 ? (
        <Panel label="Usage">
          <Nothing month={found.month} isNow={isNow} />
        </Panel>
      ) : (
        <>
          <Daily
            title="By day"
            currency={plain(found.currency)}
            month={found.month}
            days={found.days}
            rows={found.rows}
            chosen={chosen}
            choices={isAll ? ALL : OWN}
            file="windrow-usage"
          />
          <Panel title={found.limit === null ? "Month to date" : "Month to date against the limit"}>
            <RunningSum
              days={found.days}
              daysOfMonth={daysOf(found.month)}
              forecast={found.forecast}
              limit={found.limit}
              unit={plain(found.currency)}
            />
          </Panel>
          <Sums found={found} choices={isAll ? ALL : OWN} columns={columnsOf(found)} id={(row) => row.id ?? row.name} />
        </>
      )}
      <Text size="xs" className="wr-quiet">
        Months and days are in UTC; a run over midnight counts for both days by its billed time.{" "}
        {isNow && `Forecast: ${found.forecast_method.toLowerCase()}. `}
        {!isAll && (
          <Link className="wr-link" to="/receipts">
            All receipts
          </Link>
        )}
      </Text>
    </div>
  );
}

function Figures({ found, isNow }: { found: Spending; isNow: boolean }) {
  const currency = plain(found.currency);
  const maySetLimit = useMayOpen("/members");
  const short = (text: string) => amount(text);
  const passes = found.limit !== null && Number(found.forecast ?? 0) > Number(found.limit);
  return (
    <>
      <div className="wr-figures">
        <div data-testid="spent">
          <Figure
            label={isNow ? `spent in ${monthName(found.month)} so far` : `spent in ${monthName(found.month)}`}
            value={short(found.spent)}
            note={isNow ? `today ${short(found.today)}` : currency}
          />
        </div>
        {found.forecast !== null && (
          <Figure label="forecast to the month's end" value={short(found.forecast)} note={currency} />
        )}
        {(found.limit !== null || maySetLimit) && (
          <Figure
            label="limit a month"
            value={found.limit === null ? "none" : short(found.limit)}
            note={
              maySetLimit ? (
                <Link className="wr-link wr-underlined" to="/members">
                  {found.limit === null ? "Set one" : "Change it"}
                </Link>
              ) : (
                currency
              )
            }
          />
        )}
        <Figure label="now" value={perHour(found.per_hour)} note={`${count(found.running)} running`} />
        <Figure label="reserved now" value={short(found.held)} note={currency} />
        {found.balance !== null && (
          <Figure
            label="balance"
            value={short(found.balance)}
            note={
              found.empty_at ? (
                <>
                  empty <When at={found.empty_at} />
                </>
              ) : (
                "nothing runs"
              )
            }
          />
        )}
      </div>
      {passes && (
        <div className="wr-note wr-note-bad" role="status" style={{ marginTop: 12 }}>
          By the forecast the month's limit of {short(found.limit!)} {currency} is passed: what runs then is ended.
        </div>
      )}
    </>
  );
}

function Nothing({ month, isNow }: { month: string; isNow: boolean }) {
  if (!isNow) return <Empty title={`Nothing was charged in ${monthName(month)}`}>Choose another month above.</Empty>;
  return (
    <Empty
      title="Nothing was charged this month"
      command="windrow run --gpus 1 -- nvidia-smi"
      action={<PageButton to="/new">New machine</PageButton>}
    >
      Costs show here seconds after something runs: by day, and by machine, job, GPU model and person.
    </Empty>
  );
}

function columnsOf(found: Spending): readonly Column<Row>[] {
  return [
    {
      id: "name",
      name: (found.scope === "all" ? ALL : OWN)[found.by] ?? "Name",
      value: (row) => row.name,
      cell: named(found),
    },
    figure(
      "amount",
      "Amount",
      (row) => row.amount,
      (text) => amount(text),
    ),
    figure(
      "running_hours",
      "Hours",
      (row) => row.running_hours,
      (hours) => decimal(hours, 1),
    ),
    ...(found.by === "gpu" ? [] : [identity<Row>((row) => row.id, { optional: true })]),
  ];
}

const named = (found: Spending) => (row: Row) => {
  if (row.id?.startsWith("cluster_"))
    return (
      <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: row.id }}>
        {plain(row.name)}
      </Link>
    );
  if (found.by === "job" && row.id?.startsWith("job_"))
    return (
      <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: row.id }}>
        {plain(row.name)}
      </Link>
    );
  return plain(row.name);
};
