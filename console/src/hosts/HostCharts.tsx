// The charts of one host: its history, then each reading as it comes, once a second.
import { Button, Group, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { send } from "../api/client.ts";
import { history as historyQuery } from "../api/queries.ts";
import type { History, Host, HostLiveFrame } from "../api/types.ts";
import { type Band, Chart } from "../parts/Chart.tsx";
import { DownloadIcon } from "../parts/icons.tsx";
import { ProblemNote, Waiting } from "../parts/page.tsx";
import { fromHistory, type Line, type Mark, type Point, rates, seriesKey, withFrame } from "../parts/series.ts";
import { keep } from "../tables/Csv.tsx";
import { fileName } from "../tables/csv.ts";
import type { Frames } from "./frames.ts";

/** A day of every card of a large host, written while it is read. */
const EXPORT_MS = 120_000;

interface Drawn {
  title: string;
  unit: string;
  /** Metric and the name of its line. */
  lines: readonly (readonly [string, string])[];
  /** A counter is drawn as its rate. */
  counter?: boolean;
  most?: (host: Host) => number | null;
}

const HOST_CHARTS: readonly Drawn[] = [
  { title: "CPU", unit: "ratio", lines: [["host_cpu_ratio", "CPU"]], most: () => 1 },
  { title: "Memory", unit: "By", lines: [["host_memory_used_bytes", "Used"]], most: (host) => host.memory_bytes },
  {
    title: "Network",
    unit: "By/s",
    lines: [
      ["host_network_receive_bytes_total", "Received"],
      ["host_network_transmit_bytes_total", "Sent"],
    ],
    counter: true,
  },
  {
    title: "Disk",
    unit: "By/s",
    lines: [
      ["host_disk_read_bytes_total", "Read"],
      ["host_disk_write_bytes_total", "Written"],
    ],
    counter: true,
  },
];

const GPU_CHARTS: readonly Drawn[] = [
  { title: "GPU use", unit: "ratio", lines: [["gpu_utilization_ratio", "GPU"]], most: () => 1 },
  {
    title: "GPU memory",
    unit: "By",
    lines: [["gpu_memory_used_bytes", "GPU"]],
    most: (host) => Math.max(0, ...host.gpus.map((gpu) => gpu.memory_bytes ?? 0)),
  },
  { title: "GPU temperature", unit: "Cel", lines: [["gpu_temperature_celsius", "GPU"]], most: () => 100 },
  { title: "GPU power", unit: "W", lines: [["gpu_power_watts", "GPU"]] },
];

const FAULT_CHARTS: readonly Drawn[] = [
  { title: "Uncorrectable memory errors", unit: "1", lines: [["gpu_ecc_uncorrected_total", "Errors"]] },
  { title: "PCIe replays", unit: "1", lines: [["gpu_pcie_replays_total", "Replays"]] },
];

/** Charts begin empty when the past cannot be read: the present still can. */
const NO_HISTORY: History = { series: [], step_s: 1 };

const metricsOf = (draws: readonly Drawn[]) => draws.flatMap((chart) => chart.lines.map(([metric]) => metric));
const DRAWN = { host: HOST_CHARTS, gpu: GPU_CHARTS, faults: FAULT_CHARTS, all: [...GPU_CHARTS, ...HOST_CHARTS] };
const METRICS = {
  host: metricsOf(DRAWN.host),
  gpu: metricsOf(DRAWN.gpu),
  faults: metricsOf(DRAWN.faults),
  all: metricsOf(DRAWN.all),
};

interface HostChartsProps {
  host: Host;
  spanS: number;
  frames: Frames;
  /** The charts of its GPUs without those of the host, or those of their faults. */
  only?: "gpu" | "faults";
  marks?: readonly Mark[];
  /** From this temperature on, its GPU slows itself down. */
  slowsAt?: number | null;
}

export function HostCharts({ host, spanS, frames, only, marks = [], slowsAt = null }: HostChartsProps) {
  const which = only ?? (host.gpus.length ? "all" : "host");
  const query = useQuery(historyQuery(host.id, METRICS[which], spanS));
  const failed = query.error !== null && query.data === undefined;
  const series = useLive(frames, METRICS[which], spanS, query.data ?? (failed ? NO_HISTORY : null));
  if (!series) return <Waiting lines={6} />;
  const hasAny = (drawn: Drawn) =>
    drawn.lines.some(([metric]) => [...series].some(([key, points]) => isOf(key, metric) && points.some(hasValue)));
  const absent = DRAWN[which].filter((drawn) => !hasAny(drawn));
  return (
    <>
      {failed && (
        <div role="status" data-testid="no-history" style={{ marginBottom: 14 }}>
          <Text size="sm">
            <strong>The history cannot be read just now.</strong> What follows are the live readings since this page was
            opened; nothing of what hosts report is lost meanwhile.
          </Text>
          <ProblemNote error={query.error} retry={() => void query.refetch()} />
        </div>
      )}
      <div className="wr-charts">
        {DRAWN[which].filter(hasAny).map((drawn) => (
          <One
            key={drawn.title}
            {...{ drawn, host, series, spanS, marks }}
            from={drawn.unit === "Cel" && slowsAt !== null ? { value: slowsAt, label: "slows down" } : null}
          />
        ))}
      </div>
      {absent.length > 0 && (
        <Text size="sm" className="wr-quiet" mt={10}>
          Not reported by this hardware, or not yet: {absent.map((drawn) => drawn.title).join(", ")}.
        </Text>
      )}
      <Text size="xs" className="wr-quiet" mt={10}>
        Single readings are kept for 4 days, means of minutes for 90 days, means of hours for 5 years. Long spans are
        drawn of means. A metrics store that the Master uses has limits of its own.
      </Text>
    </>
  );
}

const isOf = (key: string, metric: string): boolean => key === metric || key.startsWith(`${metric} `);
const hasValue = (point: Point): boolean => point[1] !== null;

function One({
  drawn,
  host,
  series,
  spanS,
  marks,
  from,
}: {
  drawn: Drawn;
  host: Host;
  series: ReadonlyMap<string, Point[]>;
  spanS: number;
  marks: readonly Mark[];
  from: Band | null;
}) {
  const cards = host.gpus.map((gpu) => `${gpu.uuid} ${gpu.index}`).join("\n");
  const lines = useMemo(() => {
    const of = drawn.lines[0]?.[0].startsWith("gpu_")
      ? cards.split("\n").map((card) => card.split(" ") as [string, string])
      : [null];
    return drawn.lines.flatMap(([metric, label]) =>
      of.map((card): Line => {
        const points = series.get(seriesKey(metric, card?.[0] ?? null)) ?? [];
        return {
          key: seriesKey(metric, card?.[0] ?? null),
          label: card ? `${label} ${card[1]}` : label,
          points: drawn.counter ? rates(points) : points,
        };
      }),
    );
  }, [drawn, cards, series]);
  return (
    <Chart
      title={drawn.title}
      lines={lines}
      unit={drawn.unit}
      most={drawn.most?.(host) ?? null}
      spanS={spanS}
      marks={marks}
      band={from}
      kept={<Export drawn={drawn} host={host} spanS={spanS} />}
    />
  );
}

const KINDS = [
  ["csv", "CSV"],
  ["parquet", "Parquet"],
] as const;

/** The chart's series as the history holds them, as a file. */
function Export({ drawn, host, spanS }: { drawn: Drawn; host: Host; spanS: number }) {
  const save = useMutation({
    mutationFn: async (kind: string) => {
      const to = Date.now();
      const query = {
        metric: drawn.lines.map(([metric]) => metric),
        format: kind,
        from: new Date(to - spanS * 1000).toISOString(),
        to: new Date(to).toISOString(),
      };
      const answer = await send("GET", `/hosts/${encodeURIComponent(host.id)}/export`, { query }, EXPORT_MS);
      keep(await answer.blob(), fileName(`windrow-${host.name}-${drawn.title}`, kind));
    },
  });
  return (
    <>
      <Group gap={6} mt={8}>
        <Text size="xs" className="wr-quiet">
          From the history:
        </Text>
        {KINDS.map(([kind, name]) => (
          <Button
            key={kind}
            variant="default"
            size="compact-xs"
            leftSection={<DownloadIcon size={12} />}
            loading={save.isPending && save.variables === kind}
            onClick={() => save.mutate(kind)}
            aria-label={`Export ${drawn.title} as ${name}`}
          >
            {name}
          </Button>
        ))}
      </Group>
      {save.error && <ProblemNote error={save.error} />}
    </>
  );
}

/** History with live readings on top; frames that come before the history wait for it. */
function useLive(
  frames: Frames,
  metrics: readonly string[],
  spanS: number,
  history: History | null,
): ReadonlyMap<string, Point[]> | null {
  const [series, setSeries] = useState<ReadonlyMap<string, Point[]> | null>(null);
  const waiting = useRef<HostLiveFrame[]>([]);
  const names = metrics.join(" ");
  useEffect(() => {
    if (!history) return;
    const wanted = new Set(names.split(" "));
    setSeries(
      waiting.current.reduce(
        (held, frame) => withFrame(held, frame, wanted, spanS * 1000),
        fromHistory(history.series, history.step_s * 1000),
      ),
    );
    waiting.current = [];
  }, [history, names, spanS]);
  useEffect(() => {
    const wanted = new Set(names.split(" "));
    return frames.subscribe((frame) =>
      setSeries((held) => {
        if (held) return withFrame(held, frame, wanted, spanS * 1000);
        waiting.current = [...waiting.current.slice(-60), frame];
        return held;
      }),
    );
  }, [frames, names, spanS]);
  return series;
}
