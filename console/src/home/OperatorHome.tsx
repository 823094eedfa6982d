// The home of who runs the market: what needs somebody, GPUs by state, money, waiting work, relays, what happened.
import { Group, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { onEvents } from "../api/feed.ts";
import {
  accesses as accessesQuery,
  attention as attentionQuery,
  jobs as jobsQuery,
  overview as overviewQuery,
  useHistory as useHistoryQuery,
} from "../api/queries.ts";
import type { Overview, UseCounts, UsePoint } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { USES, UseBar, UseKey, UsePatterns } from "../parts/Bars.tsx";
import { count, measured, percent, plain } from "../parts/format.ts";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { SpanControl } from "../parts/Spans.tsx";
import { Simulated, State, useNow, When } from "../parts/state.tsx";
import { AREA_SPANS, UseArea } from "../parts/UseArea.tsx";
import { textOf } from "../records/events.ts";
import { Earned } from "./Earned.tsx";
import { GettingStarted } from "./GettingStarted.tsx";
import { Needs } from "./Needs.tsx";
import { useOpenAlerts } from "./OpenAlerts.tsx";
import { MAP_MOST, SmallMap } from "./SmallMap.tsx";
import { WaitingJobs } from "./WaitingJobs.tsx";

/** Events come in bursts; counting again for each of them would be waste. */
const SETTLE_MS = 400;

function useFresh() {
  const client = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const again = () => {
      timer ??= setTimeout(() => {
        timer = null;
        void client.invalidateQueries({ queryKey: ["overview"] });
      }, SETTLE_MS);
    };
    const close = onEvents(undefined, { heard: again, opened: again });
    return () => {
      close();
      if (timer) clearTimeout(timer);
    };
  }, [client]);
}

export function OperatorHome() {
  const query = useQuery(overviewQuery);
  // They stand above the rest, which is not to move.
  const needs = useQuery(attentionQuery(false));
  const open = useOpenAlerts("operate");
  useFresh();
  return (
    <div className="wr-page">
      <PageHead title="Home" />
      <Loaded query={needs.isPending || open.isPending ? { ...query, data: undefined } : query} lines={12}>
        {(data) => (
          <div className="wr-stack">
            {!open.alerts?.length && <GettingStarted overview={data} />}
            <Shown data={data} start={open.alerts?.length ? <GettingStarted overview={data} /> : null} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

/** start: what an operator does first, after what is wrong. */
function Shown({ data, start }: { data: Overview; start: ReactNode }) {
  if (data.hosts.total === 0)
    return (
      <div className="wr-stack">
        {(data.accesses === 0 || start) && <Needs calm="" />}
        {start}
        <Panel label="Hosts">
          <Empty
            title="No hosts yet"
            command="windrow token add --join"
            action={<PageButton to="/join">Add a host by one line</PageButton>}
          >
            The first numbers come with the first host. <code>windrow up</code> joins the machine it runs on; another
            one joins with a line that you make here or with:
          </Empty>
        </Panel>
      </div>
    );
  return (
    <div className="wr-stack">
      <UsePatterns />
      <Needs calm="Nothing needs attention: every host answers, and no GPU is faulty." />
      {start}
      <Counts data={data} />
      {data.gpus.total > 0 && (
        <div className="wr-home">
          <OverTime gpus={data.gpus} at={data.at} />
          {data.gpus.total <= MAP_MOST && <SmallMap />}
        </div>
      )}
      <div className="wr-home">
        {data.revenue && <Earned title="Money" revenue={data.revenue} rate={data.per_hour} />}
        <div className="wr-stack">
          <WaitingJobs query={jobsQuery.first} title="Waiting for a GPU" empty="No job waits." />
          <Relays />
        </div>
      </div>
      <Recent events={data.events} />
    </div>
  );
}

function Counts({ data }: { data: Overview }) {
  const [title, counts, simulated, kind] =
    data.gpus.total > 0
      ? (["GPUs", data.gpus, data.simulated_gpus, "gpu"] as const)
      : (["Hosts", data.hosts, data.simulated_hosts, "cpu"] as const);
  return (
    <Panel
      title={`${count(counts.total)} ${title}`}
      label={title}
      actions={
        <Text size="xs" className="wr-quiet">
          {percent(counts.rented / counts.total)} rented · {count(data.hosts.total)} hosts
          {simulated > 0 && (
            <>
              {" "}
              · {count(simulated)} {title} <Simulated />
            </>
          )}
        </Text>
      }
    >
      <UseBar counts={counts} label={title} height={18} />
      <dl className="wr-uses" data-testid={`uses-${kind === "gpu" ? "gpu" : "host"}`}>
        {USES.map(([use, name, says]) => (
          <div key={use} title={says}>
            <dt>
              <UseKey use={use} />
              {name}
            </dt>
            <dd>
              <Link className="wr-link" to="/fleet" search={{ kind, state: use }}>
                {count(counts[use])}
              </Link>
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function OverTime({ gpus, at }: { gpus: UseCounts; at: string }) {
  const [chosen, choose] = useState<(typeof AREA_SPANS)[number]>(AREA_SPANS[0]);
  const query = useQuery(useHistoryQuery(chosen.span));
  const now = useNow();
  const untilMs = Math.floor(now / 60_000) * 60_000 + 60_000;
  return (
    <Panel
      title="GPUs by state"
      actions={
        <SpanControl
          span={chosen}
          spans={AREA_SPANS}
          onChange={(name) => choose(AREA_SPANS.find((one) => one.name === name) ?? AREA_SPANS[0])}
        />
      }
    >
      <Loaded query={query} lines={8}>
        {({ points, step_s }) =>
          points.length ? (
            <UseArea
              points={[...points, { at, ...gpus } satisfies UsePoint]}
              stepS={step_s}
              spanS={chosen.seconds}
              untilMs={untilMs}
            />
          ) : (
            <Empty title="No history yet">
              The Master counts every minute from its start on; the first point comes within two minutes.
            </Empty>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Relays() {
  const query = useQuery(accessesQuery);
  return (
    <Panel
      title="Relays"
      actions={
        <Link className="wr-link" to="/regions">
          All relays
        </Link>
      }
      bare
    >
      <Loaded query={query} lines={2}>
        {(rows) => (
          <ul className="wr-lines">
            {rows.map((row) => (
              <li key={row.id}>
                <State state={row.state} />
                <span className="wr-break">
                  <strong>{plain(row.region ?? row.id)}</strong>{" "}
                  <span className="wr-quiet">
                    {count(row.agents)} {row.agents === 1 ? "host" : "hosts"}
                    {row.rtt_ms !== null && ` · ${measured(row.rtt_ms, "ms")}`} · load{" "}
                    {percent(row.load_permille / 1000)}
                  </span>
                </span>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
}

function Recent({ events }: { events: Overview["events"] }) {
  return (
    <Panel
      title="Recent events"
      actions={
        <Link className="wr-link" to="/events">
          All events
        </Link>
      }
      bare
    >
      {events.length ? (
        <ul className="wr-lines wr-lines-tight">
          {events.map((event) => (
            <li key={event.id}>
              <span className="wr-quiet wr-lines-when">
                <When at={event.at} />
              </span>
              <span className="wr-break">{textOf(event)}</span>
              <Group gap={6}>
                {event.subjects
                  .filter((one) => one.startsWith("host_"))
                  .slice(0, 1)
                  .map((hostId) => (
                    <Link
                      key={hostId}
                      className="wr-link"
                      to="/hosts/$hostId"
                      params={{ hostId }}
                      aria-label={`Open the host: ${textOf(event)}`}
                    >
                      Open
                    </Link>
                  ))}
              </Group>
            </li>
          ))}
        </ul>
      ) : (
        <Empty title="Nothing happened of late">
          Everyday events, such as rentals and measurements, are in the list.
        </Empty>
      )}
    </Panel>
  );
}
