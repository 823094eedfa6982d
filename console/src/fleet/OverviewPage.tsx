// The first page: hosts and GPUs by use, revenue, tiers, the latest events. Live.
import { Group, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { overview as overviewQuery } from "../api/queries.ts";
import { openStream } from "../api/streams.ts";
import type { Overview, TierCounts, UseCounts } from "../api/types.ts";
import { GettingStarted } from "../app/GettingStarted.tsx";
import { PageButton, useMayOpen } from "../app/PageButton.tsx";
import { DayBars, USES, type Use, UseBar, UseKey, UsePatterns } from "../parts/Bars.tsx";
import { amount, count, plain, words } from "../parts/format.ts";
import { JoinIcon, PlusIcon } from "../parts/icons.tsx";
import { Empty, Figure, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Simulated, TestMoney } from "../parts/state.tsx";
import { EVENT_COLUMNS } from "../records/EventList.tsx";
import { CsvButton } from "../tables/Csv.tsx";
import { figure, Named, simulated } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

/** Events come in bursts; counting again for each of them would be waste. */
const SETTLE_MS = 400;

export function OverviewPage() {
  const query = useQuery(overviewQuery);
  const client = useQueryClient();
  const hears = useMayOpen("/events");
  useEffect(() => {
    if (!hears) return;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const again = () => {
      timer ??= setTimeout(() => {
        timer = null;
        void client.invalidateQueries({ queryKey: ["overview"] });
      }, SETTLE_MS);
    };
    const close = openStream("/events/stream", { on: { event: again }, opened: again });
    return () => {
      close();
      if (timer) clearTimeout(timer);
    };
  }, [client, hears]);
  return (
    <div className="wr-page">
      <PageHead
        title="Overview"
        actions={
          <>
            <PageButton to="/clusters/new" icon={<PlusIcon />}>
              New cluster
            </PageButton>
            <PageButton to="/jobs/new" icon={<PlusIcon />} isQuiet>
              New job
            </PageButton>
            <PageButton to="/join" icon={<JoinIcon />} isQuiet>
              Join a host
            </PageButton>
          </>
        }
      />
      <Loaded query={query} lines={12}>
        {(data) => (
          <div className="wr-stack">
            <GettingStarted overview={data} />
            <Shown data={data} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

function Shown({ data }: { data: Overview }) {
  const mayJoin = useMayOpen("/join");
  const hearsAll = useMayOpen("/events");
  if (data.hosts.total === 0 && !mayJoin) {
    return (
      <Panel label="Hosts">
        <Empty title="No hosts yet" command="windrow offer ls">
          Nothing can be rented until a provider or an operator adds a host.
        </Empty>
      </Panel>
    );
  }
  if (data.hosts.total === 0) {
    return (
      <div className="wr-stack">
        <Panel label="Hosts">
          <Empty
            title="No hosts yet"
            command="windrow token add --join"
            action={<PageButton to="/join">Join a host by one line</PageButton>}
          >
            The first numbers come with the first host. <code>windrow up</code> joins the machine it runs on; another
            one joins with a line that you make here or with:
          </Empty>
        </Panel>
        {data.accesses === 0 && <NoRelay />}
      </div>
    );
  }
  return (
    <div className="wr-stack">
      <UsePatterns />
      {data.accesses === 0 && <NoRelay />}
      <div className="wr-pair">
        <Counted title="Hosts" counts={data.hosts} simulated={data.simulated_hosts} of="host" />
        <Counted title="GPUs" counts={data.gpus} simulated={data.simulated_gpus} of="GPU" />
      </div>
      <div className={data.revenue ? "wr-columns wr-columns-even" : undefined}>
        <div className="wr-stack">
          <Tiers tiers={data.tiers} />
          <Panel
            title="Recent events"
            actions={
              hearsAll && (
                <Link className="wr-link" to="/events">
                  All events
                </Link>
              )
            }
            bare
          >
            {data.events.length ? (
              <DataTable
                of={["event", "events"]}
                columns={EVENT_COLUMNS}
                id={(event) => event.id}
                rows={data.events}
                bare
                empty={null}
              />
            ) : (
              <Empty title="No events to show">The events of a host are on its page.</Empty>
            )}
          </Panel>
        </div>
        {data.revenue && <Earned revenue={data.revenue} rate={data.per_hour} />}
      </div>
    </div>
  );
}

function NoRelay() {
  const seesHealth = useMayOpen("/health");
  return (
    <div className="wr-note wr-note-bad" role="status">
      <strong>No Access is connected</strong>
      <span>
        Hosts reach the Master only through an Access. Until one is back, no host is heard. Start one with{" "}
        <code>windrow-access run</code>
        {seesHealth && (
          <>
            , and see{" "}
            <Link className="wr-link" to="/health">
              Health
            </Link>
          </>
        )}
        .
      </span>
    </div>
  );
}

function Counted({
  title,
  counts,
  simulated,
  of,
}: {
  title: string;
  counts: UseCounts;
  simulated: number;
  of: string;
}) {
  return (
    <Panel
      title={title}
      actions={
        <Text size="xs" className="wr-quiet">
          {count(counts.total)} in all
          {simulated > 0 && (
            <>
              , {count(simulated)} of them <Simulated />
            </>
          )}
        </Text>
      }
    >
      {counts.total === 0 ? (
        <Text size="sm" className="wr-quiet">
          No {of} here: hosts without one offer their processors.
        </Text>
      ) : (
        <>
          <UseBar counts={counts} label={title} height={18} />
          <dl className="wr-uses" data-testid={`uses-${of.toLowerCase()}`}>
            {USES.map(([use, name, says]) => (
              <div key={use} title={says}>
                <dt>
                  <UseKey use={use} />
                  {name}
                </dt>
                <dd>{of === "GPU" ? <Listed use={use}>{count(counts[use])}</Listed> : count(counts[use])}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </Panel>
  );
}

/** A count, as a link to the GPUs that it counts. */
function Listed({ use, children }: { use: Use; children: ReactNode }) {
  return (
    <Link className="wr-link" to="/fleet" search={{ kind: "gpu", state: use }}>
      {children}
    </Link>
  );
}

/** A tier's bar and figures are of its GPUs where it has any, else of its hosts. */
const countsOf = (tier: TierCounts) => (tier.gpus.total ? tier.gpus : tier.hosts);

const TIER_COLUMNS: readonly Column<TierCounts>[] = [
  {
    id: "tier",
    name: "Tier",
    value: (row) => row.tier,
    cell: (row) => (
      <Named isSimulated={row.simulated}>
        <Link className="wr-link wr-underlined" to="/fleet" search={{ tier: row.tier }}>
          {plain(row.tier)}
        </Link>
      </Named>
    ),
  },
  {
    id: "now",
    name: "Now",
    width: "34%",
    cell: (row) => <UseBar counts={countsOf(row)} label={`${plain(row.tier)}${row.simulated ? ", simulated" : ""}`} />,
  },
  ...(["rented", "idle", "faulty", "offline"] as const).map((use) =>
    figure<TierCounts, number>(use, words(use), (row) => countsOf(row)[use], count),
  ),
  figure("hosts", "Hosts", (row) => row.hosts.total, count),
  simulated((row) => row.simulated),
  ...(["hosts", "gpus"] as const).flatMap((kind) =>
    (["total", "rented", "idle", "paused", "faulty", "offline"] as const).map((use) =>
      figure<TierCounts, number>(
        `${kind}_${use}`,
        `${kind === "gpus" ? "GPUs" : "Hosts"} ${use === "total" ? "in all" : use}`,
        (row) => row[kind][use],
        count,
        { optional: true },
      ),
    ),
  ),
];

function Tiers({ tiers }: { tiers: readonly TierCounts[] }) {
  return (
    <Panel title="By tier" bare>
      <DataTable
        of={["tier", "tiers"]}
        columns={TIER_COLUMNS}
        id={(row) => `${row.tier} ${row.simulated}`}
        rows={tiers}
        empty={
          <Empty title="No tier yet" command="windrow host ls">
            A host's tier follows from its inventory, seconds after it joined.
          </Empty>
        }
      />
    </Panel>
  );
}

function Earned({ revenue, rate }: { revenue: NonNullable<Overview["revenue"]>; rate: Overview["per_hour"] }) {
  return (
    <Panel
      title={revenue.scope === "all" ? "Revenue" : "My revenue"}
      actions={
        <>
          <TestMoney />
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
      <Group gap="xl" mb={10}>
        <div data-testid="revenue-today">
          <Figure label="today (UTC)" value={amount(revenue.today, 2, 4)} note={plain(revenue.currency)} />
        </div>
        <div data-testid="revenue-week">
          <Figure label="7 days" value={amount(revenue.last_7_days, 2, 4)} note={plain(revenue.currency)} />
        </div>
        <Figure label="income per hour now" value={amount(rate.rented, 2, 4)} />
        <Figure label="idle, per hour" value={amount(rate.idle, 2, 4)} />
      </Group>
      <DayBars days={revenue.days} unit={plain(revenue.currency)} label="Revenue by day" />
      <Text size="xs" className="wr-quiet" mt={8}>
        Paid to providers and the platform. Hourly figures leave simulated hosts out.
      </Text>
    </Panel>
  );
}
