// The rank that failed first, and what holds the GPUs of a machine or a job back: charts, and what to change.
import { Alert, Code, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { findings as findingsQuery } from "../api/queries.ts";
import type { Finding, Findings as Found } from "../api/types.ts";
import { Chart } from "../parts/Chart.tsx";
import { exact, percent, perHour, plain } from "../parts/format.ts";
import { Loaded, Panel } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";

/** of: `/clusters/ID` or `/jobs/ID`. */
export function Findings({ of, over }: { of: string; over: boolean }) {
  const query = useQuery(findingsQuery(of, over));
  return (
    <Panel title="Bottlenecks">
      <Loaded query={query} lines={2}>
        {(found) => (
          <>
            {found.first_ended && <FirstEnded first={found.first_ended} />}
            <Shown found={found} />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

/** The other ranks of a gang fail by it, or wait for it in vain. */
function FirstEnded({ first }: { first: NonNullable<Found["first_ended"]> }) {
  const { rank, host_name, exit_code, detail, at, last_lines } = first;
  const end = exit_code === null ? "its exit code is not known" : `exit ${exit_code}`;
  return (
    <Alert color="red" variant="light" mb="md" title={`Rank ${rank} on ${plain(host_name)} failed first`}>
      <Text size="sm">
        {end}
        {detail && `: ${plain(detail)}`}
        {at && `, ${exact(at)}`}
      </Text>
      {last_lines.length > 0 && <Code block>{last_lines.map(plain).join("\n")}</Code>}
    </Alert>
  );
}

function Shown({ found }: { found: Found }) {
  if (found.findings.length === 0)
    return (
      <Text size="sm" className="wr-quiet">
        {plain(found.words)}
      </Text>
    );
  return (
    <div className="wr-stack">
      {found.findings.map((one) => (
        <One key={`${one.rank} ${one.gpu}`} one={one} found={found} />
      ))}
    </div>
  );
}

function One({ one, found }: { one: Finding; found: Found }) {
  const spanS = (Date.parse(found.looked_to ?? "") - Date.parse(found.looked_from ?? "")) / 1000;
  const lost = one.lost_ratio > 0 ? `${percent(one.lost_ratio)} of the GPU, ${perHour(one.lost_per_hour)}.` : "";
  return (
    <div>
      <Alert color={one.lost_ratio > 0 ? "yellow" : "gray"} variant="light" title={plain(one.title)}>
        <Text size="sm">
          {plain(one.words)} {lost && `It costs ${lost}`}
        </Text>
        <Text size="sm" mt={6}>
          <Remedy text={one.remedy} />
        </Text>
      </Alert>
      <div className="wr-charts">
        {one.evidence.map(({ metric, label, unit, points, limit }) => (
          <Chart
            key={metric}
            title={label}
            unit={metric.endsWith("_ratio") ? "ratio" : unit}
            most={metric.endsWith("_ratio") ? 1 : null}
            spanS={spanS}
            untilMs={Date.parse(found.looked_to ?? "")}
            band={limit === null ? null : { value: limit, label: "too much" }}
            lines={[{ key: metric, label, points: points as [number, number | null][] }]}
          />
        ))}
      </div>
    </div>
  );
}
