// The resources that the work of a cluster uses, over time: processors, memory, disk, network, GPUs.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { usage as usageQuery } from "../api/queries.ts";
import type { UsageHistory } from "../api/types.ts";
import { Chart } from "../parts/Chart.tsx";
import { Empty, Loaded, Panel } from "../parts/page.tsx";
import { LONG, SpanControl } from "../parts/Spans.tsx";
import { DRAWN, type Drawn, hasFigures, usageLines } from "./usage.ts";

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
            <div className="wr-charts" data-testid="usage">
              {DRAWN.filter((drawn) => gpus > 0 || !drawn.ofGpus).map((drawn) => (
                <One key={drawn.title} drawn={drawn} found={found} spanS={span.seconds} endedAt={endedAt} />
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

function One({
  drawn,
  found,
  spanS,
  endedAt,
}: {
  drawn: Drawn;
  found: UsageHistory;
  spanS: number;
  endedAt: string | null;
}) {
  const lines = useMemo(() => usageLines(drawn, found), [drawn, found]);
  return (
    <Chart
      title={drawn.title}
      lines={lines}
      unit={drawn.unit}
      most={drawn.unit === "ratio" ? 1 : null}
      spanS={spanS}
      untilMs={endedAt === null ? null : Date.parse(endedAt)}
    />
  );
}
