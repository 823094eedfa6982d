// How the installation itself does: the Master, and each relay that hosts reach it through.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { health as healthQuery } from "../api/queries.ts";
import type { Health } from "../api/types.ts";
import { bytes, count, decimal, duration, percent, plain } from "../format.ts";
import { Conditions } from "../parts/Conditions.tsx";
import { Empty, Facts, Id, Loaded, PageHead, Panel, Reasons } from "../parts/page.tsx";
import { State, When, type Tone } from "../parts/state.tsx";

/** History lags the log by seconds when all is well; beyond this somebody should look. */
const LAG_WARN_S = 60;

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
                  ["Log not yet written", count(master.log_lag)],
                  ["History behind the log", `${decimal(master.duckdb_lag_s, 1)} s`],
                ]}
              />
            </Panel>
            {master.problems.length ? <Panel title="Problems"><Reasons reasons={master.problems} /></Panel> : null}
            <Conditions found={master.conditions} />
            <Panel title={`Accesses (${accesses.length})`} bare>
              {accesses.length === 0 ? (
                <Empty title="No Access is connected" command="windrow doctor">Hosts reach the Master only through an Access: without one, nothing is heard from any host.</Empty>
              ) : (
                <div className="wr-scroll">
                  <table className="wr-table">
                    <thead><tr><th>Access</th><th>Region</th><th className="num">Workers</th><th className="num">Agents</th><th className="num">Load</th><th className="num">Queued</th><th>Connected</th><th>Events</th></tr></thead>
                    <tbody>
                      {accesses.map((access) => (
                        <tr key={access.access_id}>
                          <td><Id id={access.access_id} /></td>
                          <td>{plain(access.region)}</td>
                          <td className="num">{count(access.workers)}</td>
                          <td className="num">{count(access.agents)}</td>
                          <td className="num">{percent(access.load_permille / 1000)}</td>
                          <td className="num">{bytes(access.queued_bytes)}</td>
                          <td><When at={access.connected_since} /></td>
                          <td><Link className="wr-link" to="/events" search={{ subject: access.access_id } as never} aria-label={`Events of Access ${plain(access.access_id)}`}>Events</Link></td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
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
  return [["Writes", `${count(store.writes)} in ${count(store.commits)} commits`], ["Writes that wait", count(store.pending)], ["Failed commits", count(store.failures)]];
}
