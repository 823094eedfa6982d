// The resources that the work of a cluster uses, over time: processors, memory, disk, network, GPUs.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { events as eventsQuery, usage as usageQuery } from "../api/queries.ts";
import type { UsageHistory } from "../api/types.ts";
import { marksOf } from "../hosts/timeline.ts";
import { Chart } from "../parts/Chart.tsx";
import { Empty, Loaded, Panel } from "../parts/page.tsx";
import { LONG, SpanControl } from "../parts/Spans.tsx";
import type { Mark } from "../parts/series.ts";
import { DRAWN, type Drawn, hasFigures, topOf, usageByRank } from "./usage.ts";

/** The most members whose lines one answer holds. */
const MEMBERS_MOST = 8;

interface UsageProps {
  clusterId: string;
  /** Where the charts end: when its work ended; null while it goes on. */
  endedAt: string | null;
  hosts: number;
  gpus: number;
}

export function Usage({ clusterId, endedAt, hosts, gpus }: UsageProps) {
  const [span, setSpan] = useState(LONG[0]!);
  const query = useQuery(usageQuery(clusterId, span.seconds, endedAt));
  const past = useQuery(eventsQuery({ subject: clusterId, severity: "info" }).first).data;
  const marks = useMemo(() => marksOf(past?.items ?? []), [past]);
  return (
    <Panel
      title="What it uses"
      actions={
        <SpanControl
          span={span}
          spans={LONG}
          onChange={(name) => setSpan(LONG.find((one) => one.name === name) ?? LONG[0]!)}
        />
      }
    >
      <Loaded query={query} lines={6}>
        {(found) =>
          hasFigures(found) ? (
            <div data-testid="usage" className={hosts > 1 ? "wr-stack" : "wr-charts"}>
              {DRAWN.filter((drawn) => gpus > 0 || !drawn.ofGpus).map((drawn) => (
                <One key={drawn.title} {...{ drawn, found, endedAt, marks }} spanS={span.seconds} />
              ))}
            </div>
          ) : (
            <Empty title="No figures yet">
              {endedAt === null
                ? "The first come after 10 s."
                : "Work that ends within 10 s has none, and none are kept for longer than 30 days."}
            </Empty>
          )
        }
      </Loaded>
      <Text size="xs" className="wr-quiet" mt={10}>
        Measured every 10 s. Each reading is kept for 4 days, means of minutes and hours for 30 days, nothing longer.
        {hosts > MEMBERS_MOST && ` Drawn are the first ${MEMBERS_MOST} of ${hosts} members.`}
      </Text>
    </Panel>
  );
}

interface OneProps {
  drawn: Drawn;
  found: UsageHistory;
  spanS: number;
  endedAt: string | null;
  marks: readonly Mark[];
}

/** A chart, or of several members a small one of each, on one scale. */
function One({ drawn, found, spanS, endedAt, marks }: OneProps) {
  const members = useMemo(() => usageByRank(drawn, found), [drawn, found]);
  const top = useMemo(() => topOf(members.flatMap(([, lines]) => lines)), [members]);
  const most = drawn.unit === "ratio" ? 1 : members.length > 1 ? top : null;
  const charts = members.map(([rank, lines]) => (
    <Chart
      key={rank}
      title={members.length > 1 ? `${drawn.title}, rank ${rank}` : drawn.title}
      lines={lines}
      unit={drawn.unit}
      most={most}
      spanS={spanS}
      untilMs={endedAt === null ? null : Date.parse(endedAt)}
      marks={marks}
      small={members.length > 1}
    />
  ));
  return members.length > 1 ? <div className="wr-charts wr-charts-small">{charts}</div> : charts;
}
