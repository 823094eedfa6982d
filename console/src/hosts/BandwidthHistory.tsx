// A host's measured bandwidth over time: one line per direction and region.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { bandwidthRounds } from "../api/queries.ts";
import type { Host } from "../api/types.ts";
import { Chart } from "../parts/Chart.tsx";
import { roundLines } from "../parts/series.ts";

const DAY_S = 86_400;

/** Nothing until there are two rounds to draw a line between. */
export function BandwidthHistory({ host }: { host: Host }) {
  const { data } = useQuery(bandwidthRounds(host.id));
  const lines = useMemo(() => roundLines(data?.rounds ?? []), [data]);
  const oldestMs = Math.min(...lines.map((line) => line.points[0]?.[0] ?? Infinity));
  if (!lines.some((line) => line.points.length > 1)) return null;
  return <Chart title="Measured" lines={lines} unit="bit/s" spanS={Math.max(DAY_S, (Date.now() - oldestMs) / 1000)} />;
}
