// Earnings: what a month brought by host and GPU, how much of their time was rented, and what the rest was.
import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { earnings } from "../api/queries.ts";
import type { Earnings, GpuTimes } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { USES, UseBar, UseKey, UsePatterns } from "../parts/Bars.tsx";
import { amount, DASH, decimal, percent, perHour, plain } from "../parts/format.ts";
import { Empty, Figure, Panel } from "../parts/page.tsx";
import { RatioCalendar } from "../parts/StackedBars.tsx";
import { figure, identity, Named, simulated } from "../tables/columns.tsx";
import type { Column } from "../tables/table.ts";
import { type Choices, type Chosen, Daily, MonthPage, monthName, Sums } from "./Month.tsx";

type Row = Earnings["rows"][number];

const OWN: Choices = { host: "Host", gpu: "GPU" };
const ALL: Choices = { project: "Project", model: "GPU model" };
const LOST = ["idle", "paused", "faulty", "offline"] as const;

export const EarningsPage = () => (
  <MonthPage title="Earnings" own={OWN} all={ALL} query={earnings}>
    {(found, chosen) => <Shown found={found} chosen={chosen} />}
  </MonthPage>
);

function Shown({ found, chosen }: { found: Earnings; chosen: Chosen }) {
  if (found.rows.length === 0)
    return (
      <Panel label="Earnings">
        <Empty
          title={`Nothing was earned in ${monthName(found.month)}`}
          command="windrow token add --join"
          action={<PageButton to="/join">Join a host</PageButton>}
        >
          A host earns while somebody rents it. Its earnings show here by day, host and GPU.
        </Empty>
      </Panel>
    );
  const choices = found.scope === "all" ? ALL : OWN;
  const hasTime = found.times.occupancy_ratio !== null;
  return (
    <div className="wr-stack">
      <UsePatterns />
      <Panel label="Earnings now">
        <Figures found={found} />
      </Panel>
      <Daily
        title="By day"
        currency={plain(found.currency)}
        month={found.month}
        days={found.days}
        rows={found.rows.filter((row) => Number(row.amount) > 0)}
        chosen={chosen}
        choices={choices}
        file="windrow-earnings"
      />
      {hasTime && (
        <div className="wr-columns wr-columns-even">
          <Hours times={found.times} currency={plain(found.currency)} />
          <Panel title="Rented, by day">
            <RatioCalendar
              label="Part of the time that was rented, by day"
              days={found.days.map(({ day, occupancy_ratio }) => ({ day, ratio: occupancy_ratio }))}
            />
          </Panel>
        </div>
      )}
      <Sums found={found} choices={choices} columns={columnsOf(found)} id={(row) => row.id} />
      <Text size="xs" className="wr-quiet">
        Months and days are in UTC. Amounts are what the ledger paid, without the platform's share. Rented hours are
        billed ones; idle, paused, faulty and offline hours are estimated from recorded changes of hosts and GPUs, and
        what they would have brought from the present prices.
      </Text>
    </div>
  );
}

function Figures({ found }: { found: Earnings }) {
  const short = (text: string) => amount(text, 2, 2);
  return (
    <div className="wr-figures">
      <div data-testid="earned">
        <Figure
          label={`earned in ${monthName(found.month)}`}
          value={short(found.earned)}
          note={plain(found.currency)}
        />
      </div>
      <Figure label="today" value={short(found.today)} note={plain(found.currency)} />
      <Figure label="earning now" value={perHour(found.per_hour)} />
      {found.scope === "all" && <Figure label="fees" value={short(found.fees)} note={plain(found.currency)} />}
      {found.times.occupancy_ratio !== null && (
        <Figure label="of the time rented" value={percent(found.times.occupancy_ratio)} />
      )}
    </div>
  );
}

/** The hours of the GPUs by state, and the earnings that were missed. */
function Hours({ times, currency }: { times: GpuTimes; currency: string }) {
  const hours = Object.fromEntries(USES.map(([use]) => [use, times[`${use}_hours`]])) as Record<
    (typeof USES)[number][0],
    number
  >;
  const total = Object.values(hours).reduce((sum, one) => sum + one, 0);
  const counts = { ...hours, total };
  return (
    <Panel title="GPU hours">
      <UseBar counts={counts} label="GPU hours" height={18} />
      <dl className="wr-uses" data-testid="hours">
        {USES.map(([use, name, says]) => (
          <div key={use} title={says}>
            <dt>
              <UseKey use={use} />
              {name}
            </dt>
            <dd>{decimal(hours[use], 1)} h</dd>
            {use !== "rented" && (
              <dd className="wr-lost">
                lost {amount(times.lost[use], 2, 2)} {currency}
              </dd>
            )}
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function columnsOf(found: Earnings): readonly Column<Row>[] {
  return [
    {
      id: "name",
      name: (found.scope === "all" ? ALL : OWN)[found.by] ?? "Name",
      value: (row) => row.name,
      cell: (row) => (
        <Named isSimulated={row.simulated}>
          {row.host_id === null ? (
            plain(row.name)
          ) : (
            <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: row.host_id }}>
              {plain(row.name)}
            </Link>
          )}
        </Named>
      ),
    },
    figure(
      "amount",
      "Earned",
      (row) => row.amount,
      (text) => amount(text, 2, 4),
    ),
    ...(found.scope === "all"
      ? [
          figure<Row, string>(
            "fees",
            "Fees",
            (row) => row.fees,
            (text) => amount(text, 2, 4),
          ),
        ]
      : []),
    figure("occupancy", "Rented", (row) => row.times?.occupancy_ratio, percent),
    ...LOST.map((state) =>
      figure<Row, string | undefined>(
        `lost_${state}`,
        `Lost: ${state}`,
        (row) => row.times?.lost[state],
        (text) => (text === undefined ? DASH : amount(text, 2, 2)),
        { optional: state === "paused" || state === "offline" },
      ),
    ),
    simulated((row) => row.simulated),
    identity((row) => row.id, { optional: true }),
  ];
}
