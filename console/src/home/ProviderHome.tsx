// The home of who has hosts here: earned, in use, hosts that need somebody, why not rented, steps to a better grade.
import { Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { attention as attentionQuery, ownHosts as ownHostsQuery, ownOverview } from "../api/queries.ts";
import type { OwnHosts, Why } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { USES, UseBar, UseKey, UsePatterns } from "../parts/Bars.tsx";
import { count, percent, plain, sentence } from "../parts/format.ts";
import { LinkButton } from "../parts/LinkButton.tsx";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";
import { Simulated, State } from "../parts/state.tsx";
import { Earned } from "./Earned.tsx";
import { Needs } from "./Needs.tsx";
import { useOpenAlerts } from "./OpenAlerts.tsx";

export function ProviderHome() {
  const query = useQuery(ownHostsQuery);
  // They stand above the rest, which is not to move.
  const needs = useQuery(attentionQuery(true));
  const open = useOpenAlerts("provide");
  return (
    <div className="wr-page">
      <PageHead title="Home" />
      <UsePatterns />
      <Loaded query={needs.isPending || open.isPending ? { ...query, data: undefined } : query} lines={12}>
        {(data) => (data.hosts.total === 0 ? <None /> : <Shown data={data} />)}
      </Loaded>
    </div>
  );
}

function None() {
  return (
    <Panel label="Hosts">
      <Empty
        title="You have no hosts yet"
        command="windrow token add --join"
        action={<PageButton to="/join">Add a host by one line</PageButton>}
      >
        Add a machine with GPUs: it is measured, put in a grade, and earns by the second while somebody rents it. Make
        the line that joins it here, or with:
      </Empty>
    </Panel>
  );
}

function Shown({ data }: { data: OwnHosts }) {
  const overview = useQuery(ownOverview);
  return (
    <div className="wr-stack">
      <Needs own calm="All of your hosts answer, and none of their GPUs is faulty." />
      <div className="wr-home">
        <div className="wr-stack">
          <Loaded query={overview} lines={8}>
            {({ revenue, per_hour }) => revenue && <Earned title="Earned" revenue={revenue} rate={per_hour} />}
          </Loaded>
          <Hosts data={data} />
        </div>
        <div className="wr-stack">
          <InUse data={data} />
          <WhyNot
            title="Why not rented"
            rows={data.unrented}
            empty={data.gpus.idle ? "Nothing stands in the way: idle GPUs wait for somebody to rent them." : ""}
          />
          <WhyNot title="Next step to a better grade" rows={data.grades} empty="" />
        </div>
      </div>
    </div>
  );
}

function InUse({ data }: { data: OwnHosts }) {
  const counts = data.gpus.total ? data.gpus : data.hosts;
  const what = data.gpus.total ? "GPUs" : "hosts";
  return (
    <Panel
      title={`Rented now: ${percent(counts.rented / counts.total)} of ${count(counts.total)} ${what}`}
      label="In use"
    >
      <UseBar counts={counts} label={`Your ${what}`} height={18} />
      <dl className="wr-uses">
        {USES.filter(([use]) => counts[use] > 0).map(([use, name, says]) => (
          <div key={use} title={says}>
            <dt>
              <UseKey use={use} />
              {name}
            </dt>
            <dd>{count(counts[use])}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

/** The price is the reason that its owner can change at once. */
const isOfPrice = (row: Why): boolean => row.words.startsWith("Its price");

function WhyNot({ title, rows, empty }: { title: string; rows: readonly Why[]; empty: string }) {
  if (rows.length === 0 && !empty) return null;
  return (
    <Panel title={title} bare>
      {rows.length === 0 && <p className="wr-calm wr-quiet">{empty}</p>}
      <ul className="wr-lines">
        {rows.map((row) => (
          <li key={`${row.tier} ${row.words}`}>
            <span className="wr-break">
              <strong>{plain(row.tier)}</strong> {plain(row.words)}{" "}
              <span className="wr-quiet">
                {plain(row.host_name)}
                {row.hosts > 1 && ` and ${count(row.hosts - 1)} more`}
              </span>
            </span>
            {isOfPrice(row) ? (
              <LinkButton to="/offers" aria-label={`Set price of ${plain(row.tier)}`}>
                Set price
              </LinkButton>
            ) : (
              <LinkButton
                to="/hosts/$hostId"
                params={{ hostId: row.host_id }}
                aria-label={`Open ${plain(row.host_name)}: ${plain(row.words)}`}
              >
                Open
              </LinkButton>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Hosts({ data }: { data: OwnHosts }) {
  const more = data.hosts.total - data.items.length;
  return (
    <Panel
      title={`Hosts (${count(data.hosts.total)})`}
      label="Hosts"
      actions={
        <Group gap="xs">
          <Link className="wr-link" to="/fleet">
            Fleet
          </Link>
        </Group>
      }
      bare
    >
      <ul className="wr-lines">
        {data.items.map((host) => (
          <li key={host.id}>
            <State state={host.headline} />
            <span className="wr-break">
              <Link className="wr-link wr-underlined" to="/hosts/$hostId" params={{ hostId: host.id }}>
                {plain(host.name)}
              </Link>
              {host.simulated && (
                <>
                  {" "}
                  <Simulated />
                </>
              )}{" "}
              <span className="wr-quiet">{sentence(host.reason)}</span>
              {host.remedy && (
                <div className="wr-quiet">
                  <Remedy text={host.remedy} />
                </div>
              )}
            </span>
            {host.gpus.total > 0 && (
              <span className="wr-lines-bar">
                <UseBar counts={host.gpus} label={`GPUs of ${plain(host.name)}`} />
              </span>
            )}
          </li>
        ))}
        {more > 0 && <li className="wr-quiet">and {count(more)} more in the fleet</li>}
      </ul>
    </Panel>
  );
}
