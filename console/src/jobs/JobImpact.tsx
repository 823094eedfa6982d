// A job's effect on each of its GPUs: readings before, during and after it.
import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { jobImpact } from "../api/queries.ts";
import type { CardImpact, JobImpact as Impact, Job, Stretch } from "../api/types.ts";
import { Chart } from "../parts/Chart.tsx";
import { bytes, inUnit, percent, plain } from "../parts/format.ts";
import { Loaded, Panel } from "../parts/page.tsx";
import { isOver } from "./jobs.ts";

const TITLES: Readonly<Record<string, readonly [string, string]>> = {
  gpu_utilization_ratio: ["GPU use", "ratio"],
  gpu_memory_used_bytes: ["GPU memory", "By"],
  gpu_power_watts: ["GPU power", "W"],
};

const ROWS: readonly (readonly [string, (one: Stretch) => string])[] = [
  ["Use, average", (one) => percent(one.utilization_ratio.mean)],
  ["Use, peak", (one) => percent(one.utilization_ratio.max)],
  ["Memory, peak", (one) => bytes(one.memory_used_bytes.max)],
  ["Power, average", (one) => inUnit(one.power_watts.mean, "W")],
  ["Power, peak", (one) => inUnit(one.power_watts.max, "W")],
  ["Clocks held back", (one) => percent(one.throttled_ratio)],
];

export function JobImpact({ job }: { job: Job }) {
  const query = useQuery(jobImpact(job.id, isOver(job)));
  return (
    <Panel title="GPU usage">
      <Loaded query={query} lines={4}>
        {(found) => <Cards found={found} />}
      </Loaded>
    </Panel>
  );
}

function Cards({ found }: { found: Impact }) {
  if (found.gpus.length === 0)
    return (
      <Text size="sm" className="wr-quiet">
        The job has no GPU yet.
      </Text>
    );
  return (
    <Stack gap="lg" data-testid="job-impact">
      {found.gpus.map((card) => (
        <Card key={card.host_id + card.gpu} card={card} />
      ))}
    </Stack>
  );
}

function Card({ card }: { card: CardImpact }) {
  return (
    <div>
      <Text size="sm" fw={600} className="wr-break">
        {plain(card.gpu)} on {plain(card.host_name)}
      </Text>
      <div className="wr-scroll">
        <table className="wr-table" aria-label={`Readings of ${card.gpu} before, during and after the job`}>
          <thead>
            <tr>
              <th scope="col" />
              <th scope="col" className="num">
                Before
              </th>
              <th scope="col" className="num">
                During
              </th>
              <th scope="col" className="num">
                After
              </th>
            </tr>
          </thead>
          <tbody>
            {ROWS.map(([name, read]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td className="num">{read(card.before)}</td>
                <td className="num">{read(card.during)}</td>
                <td className="num">{read(card.after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="wr-charts">
        {card.series.map(({ metric, points }) => {
          const [title, unit] = TITLES[metric] ?? [metric, ""];
          const span = points.length > 1 ? (points.at(-1)![0] - points[0]![0]) / 1000 : 60;
          return (
            <Chart
              key={metric}
              title={title}
              unit={unit}
              most={unit === "ratio" ? 1 : null}
              spanS={span}
              untilMs={points.at(-1)?.[0] ?? null}
              lines={[{ key: metric, label: title, points: points as [number, number | null][] }]}
            />
          );
        })}
      </div>
    </div>
  );
}
