// What hosts have earned: today, in the month, and by day.
import { Text } from "@mantine/core";
import type { Overview } from "../api/types.ts";
import { DayBars } from "../parts/Bars.tsx";
import { amount, plain } from "../parts/format.ts";
import { Amount, Figure, Panel } from "../parts/page.tsx";
import { TestMoney } from "../parts/state.tsx";
import { CsvButton } from "../tables/Csv.tsx";

interface EarnedProps {
  title: string;
  revenue: NonNullable<Overview["revenue"]>;
  rate: Overview["per_hour"];
}

export function Earned({ title, revenue, rate }: EarnedProps) {
  const unit = plain(revenue.currency);
  return (
    <Panel
      title={title}
      actions={
        <>
          {revenue.test_money && <TestMoney />}
          <CsvButton
            of="revenue"
            name="windrow-revenue"
            columns={[
              { name: "day", value: (row) => row.day },
              { name: `amount_${revenue.currency}`, value: (row) => row.amount },
            ]}
            rows={() => revenue.days}
          />
        </>
      }
    >
      <div className="wr-figures" style={{ marginBottom: 10 }}>
        <div data-testid="revenue-today">
          <Figure label="today (UTC)" value={<Amount text={revenue.today} />} note={unit} />
        </div>
        <div data-testid="revenue-week">
          <Figure label="7 days" value={<Amount text={revenue.last_7_days} />} note={unit} />
        </div>
        <div data-testid="revenue-month">
          <Figure label="30 days" value={<Amount text={revenue.last_30_days} />} note={unit} />
        </div>
        <Figure label="earning per hour" value={amount(rate.rented)} />
        <Figure label="idle GPUs, per hour" value={amount(rate.idle)} />
      </div>
      <DayBars days={revenue.days} unit={unit} label="Earned by day" />
      <Text size="xs" className="wr-quiet" mt={8}>
        Paid to {revenue.scope === "all" ? "providers and the platform" : "you"}, also by the Master for its own tests
        of hosts, and for rentals of simulated hosts. Hourly figures leave simulated hosts out.
      </Text>
    </Panel>
  );
}
