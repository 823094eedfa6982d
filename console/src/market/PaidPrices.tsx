// The prices at which rentals of one tier began, day by day: from the lowest to the highest, with the median.
import { NativeSelect, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { paid as paidQuery } from "../api/queries.ts";
import type { MachineType, PaidDay } from "../api/types.ts";
import { amount, count } from "../parts/format.ts";
import { Panel, ProblemNote, Waiting } from "../parts/page.tsx";
import { gradeOf, isProcessors, modelOf } from "./shop.ts";

const [HIGH, HEAD, FOOT] = [120, 12, 18];
const keyOf = (row: MachineType) => `${row.tier} ${row.simulated}`;

export function PaidPrices({ rows }: { rows: readonly MachineType[] }) {
  const tiers = new Map(rows.filter((row) => !isProcessors(row)).map((row) => [keyOf(row), row]));
  const [chosen, choose] = useState("");
  const row = tiers.get(chosen) ?? [...tiers.values()][0];
  const query = useQuery({ ...paidQuery(row?.tier ?? "", row?.simulated ?? false), enabled: row !== undefined });
  if (!row) return null;
  const name = `${modelOf(row)} · grade ${gradeOf(row)}`;
  return (
    <Panel
      title="Prices paid in the last 30 days"
      actions={
        <NativeSelect
          size="xs"
          aria-label="GPU of the prices paid"
          value={keyOf(row)}
          onChange={(event) => choose(event.currentTarget.value)}
          data={[...tiers].map(([value, one]) => ({
            value,
            label: `${modelOf(one)} · grade ${gradeOf(one)}${one.simulated ? " · simulated" : ""}`,
          }))}
        />
      }
    >
      {query.error ? (
        <ProblemNote error={query.error} retry={() => void query.refetch()} />
      ) : !query.data ? (
        <Waiting lines={4} />
      ) : query.data.length === 0 ? (
        <Text size="sm" className="wr-quiet">
          Nobody began to rent {name} in the last 30 days.
        </Text>
      ) : (
        <Days days={query.data} label={`Price paid for ${name}, per GPU and hour`} />
      )}
    </Panel>
  );
}

const DAY_MS = 86_400_000;
/** Of the labels below, by place: the first and the last stay inside. */
const ANCHORS: Readonly<Record<number, "start" | "middle" | "end">> = {
  0: "start",
  10: "middle",
  20: "middle",
  29: "end",
};

function Days({ days, label }: { days: readonly PaidDay[]; label: string }) {
  const today = Math.floor(Date.now() / DAY_MS);
  const place = ({ day }: PaidDay) => ((29 - today + Date.parse(day) / DAY_MS + 0.5) / 30) * 100;
  const [least, most] = [
    Math.min(...days.map((one) => Number(one.lowest))),
    Math.max(...days.map((one) => Number(one.highest))),
  ];
  const y = (price: string) =>
    HEAD + (most > least ? (1 - (Number(price) - least) / (most - least)) * (HIGH - HEAD - 8) : (HIGH - HEAD) / 2);
  const said = days.map((one) => `${one.day} ${amount(one.median)}`).join(", ");
  return (
    <figure style={{ margin: 0 }}>
      <svg width="100%" height={HIGH + FOOT} role="img" aria-label={`${label}, median by day: ${said}`}>
        <line x1="0" x2="100%" y1={HIGH + 0.5} y2={HIGH + 0.5} stroke="var(--wr-line-strong)" />
        {days.map((one) => (
          <g key={one.day}>
            <title>{`${one.day}: ${one.lowest} to ${one.highest}, median ${one.median}, ${one.rentals} rentals`}</title>
            <line
              x1={`${place(one)}%`}
              x2={`${place(one)}%`}
              y1={y(one.lowest) + 1}
              y2={y(one.highest) - 1}
              stroke="var(--wr-meter-strong)"
              strokeWidth="5"
              strokeLinecap="round"
            />
            <circle cx={`${place(one)}%`} cy={y(one.median)} r="4" fill="var(--wr-meter-fill)" />
          </g>
        ))}
        {[0, 10, 20, 29].map((at) => (
          <text
            key={at}
            x={`${at === 0 ? 0 : at === 29 ? 100 : ((at + 0.5) / 30) * 100}%`}
            y={HIGH + 14}
            className="wr-bar-text"
            textAnchor={ANCHORS[at]}
          >
            {at === 29 ? "today" : new Date((today - 29 + at) * DAY_MS).toISOString().slice(5, 10)}
          </text>
        ))}
        <text x="0" y={HEAD - 2} className="wr-bar-text">
          {amount(String(most))}
        </text>
        {most > least && (
          <text x="0" y={HIGH - 4} className="wr-bar-text">
            {amount(String(least))}
          </text>
        )}
      </svg>
      <details className="wr-details">
        <summary>As a table</summary>
        <div className="wr-scroll">
          <table className="wr-table" aria-label={label}>
            <thead>
              <tr>
                <th scope="col">Day (UTC)</th>
                {["Lowest", "Median", "Highest", "Rentals"].map((head) => (
                  <th key={head} scope="col" className="num">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...days].reverse().map((one) => (
                <tr key={one.day}>
                  <td>{one.day}</td>
                  <td className="num">{amount(one.lowest)}</td>
                  <td className="num">{amount(one.median)}</td>
                  <td className="num">{amount(one.highest)}</td>
                  <td className="num">{count(one.rentals)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
