// What a cluster is: its members, how they reach each other, what was asked for, and why it runs where it does.
import { Group, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Cluster, Explanation } from "../api/types.ts";
import { amount, bytes, count, DASH, duration, percent, plain, words } from "../parts/format.ts";
import { Command, Facts, Id, known, Panel } from "../parts/page.tsx";
import { Meter, State, When } from "../parts/state.tsx";
import { figure } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { kindName } from "./kinds.ts";
import { asCommand } from "./request.ts";

export function ClusterDetails({ cluster }: { cluster: Cluster }) {
  return (
    <div className="wr-pair">
      <Panel title={cluster.workloads.length > 1 ? "Members" : "Workload"}>
        <Workloads cluster={cluster} />
      </Panel>
      <div className="wr-stack">
        <Panel title="Configuration">
          <Asked cluster={cluster} />
        </Panel>
        {cluster.network && (
          <Panel title="Network">
            <Network network={cluster.network} traffic={cluster.traffic} />
          </Panel>
        )}
      </div>
    </div>
  );
}

/** The way the members on several hosts reach each other, with the reason. */
function Network({ network, traffic }: { network: NonNullable<Cluster["network"]>; traffic: Cluster["traffic"] }) {
  const rows: [string, string][] = [
    [
      "Members meet",
      network.mode === "tunnels" ? "in a private network, through a relay that cannot read it" : "directly",
    ],
    ["Because", plain(network.reason)],
  ];
  if (network.cords > 0)
    rows.push(
      ["Joined", `${count(network.cords_up)} of ${count(network.cords)} pairs`],
      ["Carried", `${bytes(traffic.bytes_in)} and ${bytes(traffic.bytes_out)}`],
    );
  if (network.problem !== null) rows.push(["Not joined", plain(network.problem)]);
  return (
    <div data-testid="network">
      <Facts rows={rows} />
    </div>
  );
}

/** The latest step of a member, in a cluster whose members are prepared side by side. */
function lastStep(cluster: Cluster, work: Cluster["workloads"][number]): string {
  const own = cluster.steps.filter((step) => step.member?.startsWith(`rank ${work.rank} on `));
  const step = own[own.length - 1];
  if (step === undefined) return DASH;
  return step.progress === null ? words(step.name) : `${words(step.name)} ${percent(step.progress)}`;
}

function Workloads({ cluster }: { cluster: Cluster }) {
  const members = cluster.workloads.filter((work) => work.is_member).sort((left, right) => left.rank - right.rank);
  if (members.length === 0)
    return (
      <Text size="sm" className="wr-quiet">
        Not placed yet.
      </Text>
    );
  return (
    <Stack gap="md">
      {members.map((work) => (
        <Facts
          key={work.id}
          rows={[
            ...(work.address === null
              ? []
              : [
                  ["Rank", String(work.rank)] as const,
                  ["Address", plain(work.address)] as const,
                  ["Last step", lastStep(cluster, work)] as const,
                ]),
            [
              "Host",
              <Link key="h" className="wr-link" to="/hosts/$hostId" params={{ hostId: work.host_id }}>
                {plain(work.host_name)}
              </Link>,
            ],
            ["Phase", <State key="p" state={work.phase} />],
            ["Runtime", plain(work.runtime)],
            ...(work.image === null ? [] : [["Image", plain(work.image)] as const]),
            ["Metered time", duration(work.running_s)],
            ...(work.exit_code === null ? [] : [["Exit code", String(work.exit_code)] as const]),
            ...(Object.keys(work.ports).length > 0
              ? [
                  [
                    "Ports",
                    Object.entries(work.ports)
                      .map(([inside, port]) => `${plain(inside)} → ${port}`)
                      .join(", "),
                  ] as const,
                ]
              : []),
            ["Id", <Id key="i" id={work.id} />],
            [
              "History",
              <Link
                key="e"
                className="wr-link"
                to="/events"
                search={{ subject: work.id }}
                aria-label={`Events of workload ${plain(work.id)}`}
              >
                Events
              </Link>,
            ],
          ]}
        />
      ))}
    </Stack>
  );
}

/** The limits that end a cluster. */
function limitsOf(cluster: Cluster): [string, ReactNode][] {
  const asked = cluster.request;
  return [
    ...(asked.max_duration_seconds === null
      ? []
      : [["Maximum run time", duration(asked.max_duration_seconds)] as [string, ReactNode]]),
    ...(asked.budget === null ? [] : [["Budget", amount(asked.budget)] as [string, ReactNode]]),
    ...(asked.idle_seconds === null
      ? []
      : [["Stops when unused for", duration(asked.idle_seconds)] as [string, ReactNode]]),
    ...(cluster.client_lease_ends_at === null
      ? []
      : [["Ends without its client", <When key="c" at={cluster.client_lease_ends_at} />] as [string, ReactNode]]),
    ...(cluster.ends_at === null ? [] : [["Ends", <When key="n" at={cluster.ends_at} />] as [string, ReactNode]]),
  ];
}

function Asked({ cluster }: { cluster: Cluster }) {
  const { secrets, registry_secret } = cluster.request;
  return (
    <Stack gap="xs">
      <Facts
        rows={known([
          ["Kind", kindName(cluster.kind)],
          ["Created", <When key="c" at={cluster.created_at} />],
          ["Started", cluster.started_at && <When key="s" at={cluster.started_at} />],
          ["Ended", cluster.ended_at && <When key="e" at={cluster.ended_at} />],
          ...limitsOf(cluster),
          ...(secrets.length ? [["Secrets", plain(secrets.join(", "))] as const] : []),
          ...(registry_secret === null ? [] : [["Registry login", plain(registry_secret)] as const]),
        ])}
      />
      {!cluster.request.simulated && <Command text={asCommand(cluster.request)} label="the same by command" />}
    </Stack>
  );
}

const LOSER_COLUMNS: readonly Column<Explanation["losers"][number]>[] = [
  { id: "host", name: "Not here", value: (loser) => loser.host },
  { id: "reason", name: "Because", value: (loser) => loser.reason },
  figure("score", "Score", (loser) => loser.score, count),
];

const TERMS: Record<string, readonly [name: string, says: string]> = {
  cost: ["Price", "the cheaper, the fuller"],
  packing: ["Fit", "full where it takes the last free GPUs of the host, so that hosts with many free ones stay whole"],
  trust: ["Verified", "full for hardware that the Master verified, half for other hosts"],
  home: ["Your own", "full for a host of yours: no money leaves your account"],
  grade: ["Speed", "full for the grade A of its tier"],
};

/** What spoke for the host: each factor from 0 to 1,000, times its weight. */
function Terms({ why, chosen }: { why: Explanation; chosen: NonNullable<Explanation["chosen"]> }) {
  return (
    <>
      <Text size="sm">It has the highest score, {count(chosen.score)}, of the hosts that fit. How it is made up:</Text>
      <Facts
        rows={Object.entries(why.weights).map(([term, weight]) => {
          const [name, says] = TERMS[term] ?? [words(term), ""];
          const value = chosen.terms[term] ?? 0;
          return [
            name,
            <Group key={term} gap="xs" wrap="nowrap" title={says}>
              <Meter ratio={value / 1000} text={percent(value / 1000)} label={name} />
              <span className="wr-quiet wr-nowrap">counts {count(weight)}×</span>
            </Group>,
          ] as const;
        })}
      />
    </>
  );
}

/** The record of a decision: the host, what spoke for it, and the others. */
export function Decision({ why }: { why: Explanation }) {
  const { chosen } = why;
  return (
    <>
      {chosen ? (
        <>
          <Facts
            rows={[
              [
                "Chosen",
                <Link key="c" className="wr-link" to="/hosts/$hostId" params={{ hostId: chosen.host_id }}>
                  {plain(chosen.host_name)}
                </Link>,
              ],
            ]}
          />
          <Terms why={why} chosen={chosen} />
        </>
      ) : (
        <Text size="sm">{plain(why.decision)}</Text>
      )}
      {why.losers.length > 0 && (
        <DataTable
          of={["host", "hosts that were not chosen"]}
          columns={LOSER_COLUMNS}
          id={(loser) => loser.host_id}
          rows={why.losers}
          bare
          empty={null}
        />
      )}
    </>
  );
}
