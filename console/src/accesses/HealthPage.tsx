// The health page: the state of the Master, what needs attention as on the home, and each relay.
import { useQuery } from "@tanstack/react-query";
import { health as healthQuery } from "../api/queries.ts";
import type { Health } from "../api/types.ts";
import { Needs } from "../home/Needs.tsx";
import { bytes, count, duration, measured, percent, plain } from "../parts/format.ts";
import { Empty, Facts, Loaded, PageHead, Panel, Reasons } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import type { Tone } from "../parts/states.ts";
import { events, figure, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

/** History lags the log by seconds when all is well; beyond this somebody should look. */
const LAG_WARN_S = 60;

const COLUMNS: readonly Column<Health["accesses"][number]>[] = [
  {
    id: "name",
    name: "Relay",
    value: (row) => row.name,
    cell: (row) => (
      <span className="wr-name" title={plain(row.access_id)}>
        {plain(row.name)}
      </span>
    ),
  },
  { id: "region", name: "Region", value: (row) => row.region },
  figure("workers", "Workers", (row) => row.workers, count),
  figure("agents", "Agents", (row) => row.agents, count),
  figure("load", "Load", (row) => row.load_permille / 1000, percent),
  figure("queued_bytes", "Queued", (row) => row.queued_bytes, bytes),
  moment("connected_since", "Connected", (row) => row.connected_since),
  events(
    (row) => plain(row.name),
    (row) => row.access_id,
  ),
  identity((row) => row.access_id, { optional: true }),
];

export function HealthPage() {
  const query = useQuery(healthQuery);
  return (
    <div className="wr-page">
      <PageHead title="Health" />
      <Loaded query={query}>
        {({ master, accesses }) => (
          <div className="wr-stack">
            <Panel title="Master">
              <Facts
                rows={[
                  ["State", <State key="s" {...stateOf(master)} />],
                  ["Term", count(master.epoch)],
                  ["Up for", duration(master.uptime_s)],
                  ...storeRows(master.store),
                  ["Open live streams", count(master.streams)],
                  ["Log backlog", count(master.log_lag)],
                  ["Metrics delay", measured(master.duckdb_lag_s, "s")],
                ]}
              />
            </Panel>
            {master.problems.length ? (
              <Panel title="Problems">
                <Reasons reasons={master.problems} />
              </Panel>
            ) : null}
            <Needs calm="Every host and relay is well" />
            <Panel title={`Relays (${accesses.length})`} bare>
              <DataTable
                of={["relay", "relays"]}
                columns={COLUMNS}
                id={(row) => row.access_id}
                rows={accesses}
                bare
                empty={
                  <Empty title="No relay is connected" command="windrow doctor">
                    Hosts reach the Master only through a relay: without one, nothing is heard from any host.
                  </Empty>
                }
              />
            </Panel>
          </div>
        )}
      </Loaded>
    </div>
  );
}

function stateOf(master: Health["master"]): { state: string; tone: Tone } {
  if (master.store.problem) return { state: "Failing", tone: "bad" };
  if (master.problems.length || master.conditions.length) return { state: "Needs a look", tone: "warn" };
  return master.duckdb_lag_s > LAG_WARN_S ? { state: "History lags", tone: "warn" } : { state: "Healthy", tone: "ok" };
}

function storeRows(store: Health["master"]["store"]): (readonly [string, string])[] {
  return [
    ["Writes", `${count(store.writes)} in ${count(store.commits)} commits`],
    ["Waiting writes", count(store.pending)],
    ["Failed commits", count(store.failures)],
  ];
}
