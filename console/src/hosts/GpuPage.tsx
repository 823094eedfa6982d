// The page of one GPU in tabs: what is wrong and what mends it; its health over time, charts, events, every field.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { events as eventsQuery, gpu as gpuQuery, host as hostQuery } from "../api/queries.ts";
import type { EventRow, GpuField, GpuPage as GpuWhole, Host } from "../api/types.ts";
import { FieldGroups } from "../parts/FieldGroups.tsx";
import { bytes, celsius, DASH, exact, percent, perHour, plain, watts } from "../parts/format.ts";
import { ObjectHead } from "../parts/ObjectHead.tsx";
import { Facts, Figure, known, Loaded, Panel, Reasons } from "../parts/page.tsx";
import { SpanControl, spanNamed } from "../parts/Spans.tsx";
import { Subject } from "../parts/Subject.tsx";
import { State, TestMoney, When } from "../parts/state.tsx";
import { type Tab, Tabbed } from "../parts/Tabbed.tsx";
import { EventList } from "../records/EventList.tsx";
import { moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { figures, rateText } from "./benchmarks.ts";
import { useFrames } from "./frames.ts";
import { Actions } from "./HostActions.tsx";
import { HostCharts } from "./HostCharts.tsx";
import { Troubles } from "./Troubles.tsx";
import { blamed, type Lane, lanesOf, marksOf, type Spell, spells } from "./timeline.ts";
import { CardEvidence } from "./Verification.tsx";

export function GpuPage() {
  const { gpuId } = useParams({ from: "/gpus/$gpuId" });
  const query = useQuery(gpuQuery(gpuId));
  return (
    <div className="wr-page">
      <Loaded query={query} lines={12}>
        {(gpu) => <GpuView key={gpu.uuid} gpu={gpu} />}
      </Loaded>
    </div>
  );
}

function GpuView({ gpu }: { gpu: GpuWhole }) {
  const past = useQuery(eventsQuery({ subject: gpu.uuid, severity: "info" }).first).data?.items ?? [];
  const host = useQuery(hostQuery(gpu.host_id)).data;
  const tabs: readonly Tab[] = [
    { value: "overview", name: "Overview", content: <Overview gpu={gpu} host={host} events={past} /> },
    {
      value: "health",
      name: "Health",
      content: (
        <div className="wr-columns">
          <div className="wr-stack">
            <Timeline gpu={gpu} events={past} />
            <Xids events={past} />
            {host && <Charts gpu={gpu} host={host} events={past} only="faults" />}
          </div>
          <aside className="wr-stack">
            <Evidence gpu={gpu} />
          </aside>
        </div>
      ),
    },
    {
      value: "charts",
      name: "Charts",
      content: host && <Charts gpu={gpu} host={host} events={past} only="gpu" />,
    },
    {
      value: "events",
      name: "Events",
      content: (
        <Panel bare label="Events">
          <EventList subject={gpu.uuid} follow />
        </Panel>
      ),
    },
    {
      value: "details",
      name: "Details",
      content: <FieldGroups groups={gpu.groups} said={saidOf} by="this card" />,
    },
  ];
  return (
    <Tabbed
      tabs={tabs}
      head={
        <ObjectHead
          up={{ to: "/hosts/$hostId", params: { hostId: gpu.host_id }, name: gpu.host_name }}
          title={`GPU ${gpu.index} · ${gpu.name}`}
          state={gpu.state_text}
          reason={gpu.state_reason}
          simulated={gpu.simulated}
          id={gpu.uuid}
          actions={host && <Actions host={host} />}
        />
      }
    />
  );
}

interface OfGpu {
  gpu: GpuWhole;
  host: Host | undefined;
  events: readonly EventRow[];
}

function Overview({ gpu, host, events }: OfGpu) {
  const live = gpu.live;
  const figures: readonly (readonly [string, string])[] = [
    ["use", percent(live?.utilization_ratio)],
    [`memory of ${bytes(gpu.memory_bytes)}`, bytes(live?.memory_used_bytes)],
    ["temperature", celsius(live?.temperature_celsius)],
    ["power", watts(live?.power_watts)],
  ];
  return (
    <>
      {gpu.state_reason && gpu.state !== "faulty" && (
        <Text size="sm" mb={12} className="wr-break">
          {plain(gpu.state_reason)}
        </Text>
      )}
      {host && <Troubles host={host} found={gpu.conditions} cards={[gpu]} links={false} />}
      <div className="wr-figures" style={{ marginBottom: 16 }}>
        <Figure label="tier" value={plain(gpu.tier)} />
        <Figure label="price" value={perHour(gpu.price_per_hour)} note={<TestMoney />} />
        {known(figures).map(([label, value]) => (
          <Figure key={label} label={label} value={value} />
        ))}
      </div>
      <div className="wr-columns">
        <div className="wr-stack">
          <Panel title="The last 7 days">
            <Lanes spells={spells(events, [...gpu.conditions, ...gpu.claims])} />
          </Panel>
          <Panel title={`Tier ${plain(gpu.tier)}: why`} label="Tier">
            {gpu.tier_reasons.length ? (
              <Reasons reasons={gpu.tier_reasons} />
            ) : (
              <Text size="sm" className="wr-quiet">
                Not measured yet.
              </Text>
            )}
          </Panel>
        </div>
        <aside className="wr-stack">
          <Panel title="Place">
            <Facts
              rows={known([
                ["Host", <Subject key="h" id={gpu.host_id} name={gpu.host_name} />],
                ["Link", <State key="l" state={gpu.link_state} />],
                ["Region", gpu.region && plain(gpu.region)],
                ["Rented by", gpu.cluster_id && <Subject key="c" id={gpu.cluster_id} />],
              ])}
            />
          </Panel>
        </aside>
      </div>
    </>
  );
}

const WEEK_MS = 7 * 86_400_000;

/** Each condition as a line of time, with a bar where it held. */
function Lanes({ spells: all }: { spells: readonly Spell[] }) {
  const lanes = lanesOf(all, Date.now(), WEEK_MS);
  if (lanes.length === 0)
    return (
      <Text size="sm" className="wr-quiet">
        Nothing was the matter with this GPU.
      </Text>
    );
  return (
    <div className="wr-lanes">
      {lanes.map(({ code, title, bars }) => (
        <div key={code}>
          <span className="wr-break">{plain(title)}</span>
          <span className="wr-lane" role="img" aria-label={`${plain(title)}: ${bars.map(saidOfBar).join("; ")}`}>
            {bars.map((one) => (
              <i key={one.from} style={{ left: `${one.left}%`, width: `${one.width}%` }} data-on={one.to === null} />
            ))}
          </span>
        </div>
      ))}
      <div className="wr-quiet">
        <span />
        <span className="wr-lane-foot">
          <span>7 days ago</span>
          <span>now</span>
        </span>
      </div>
    </div>
  );
}

const saidOfBar = ({ from, to }: Lane["bars"][number]): string => `${exact(from)} to ${to ? exact(to) : "now"}`;

/** What is known of a field, in its tooltip. */
const saidOf = (field: GpuField): string =>
  [
    `${field.name}, read by ${field.read}, ${field.rate}`,
    field.dcgm && `DCGM: ${field.dcgm}`,
    field.otel && `OpenTelemetry: ${field.otel}`,
    field.note,
  ]
    .filter(Boolean)
    .join("\n");

function Charts({ gpu, host, events, only }: Omit<OfGpu, "host"> & { host: Host; only: "gpu" | "faults" }) {
  const frames = useFrames(gpu.host_id);
  const search = useSearch({ from: "/gpus/$gpuId" });
  const navigate = useNavigate({ from: "/gpus/$gpuId" });
  const span = spanNamed(search.span ?? (only === "faults" ? "7 d" : undefined));
  const one = useMemo(
    () => ({ ...host, gpus: host.gpus.filter((other) => other.uuid === gpu.uuid) }),
    [host, gpu.uuid],
  );
  const marks = useMemo(() => marksOf(events), [events]);
  const slows = gpu.groups.flatMap((group) => group.fields).find((field) => field.name === "temperature_slowdown");
  return (
    <Panel
      title={only === "faults" ? "Faults over time" : "Readings"}
      actions={
        <SpanControl
          span={span}
          onChange={(name) =>
            void navigate({
              to: "/gpus/$gpuId",
              params: { gpuId: gpu.uuid },
              search: { ...search, span: name },
              replace: true,
            })
          }
        />
      }
    >
      <HostCharts
        key={span.name}
        host={one}
        spanS={span.seconds}
        frames={frames}
        only={only}
        marks={marks}
        slowsAt={typeof slows?.value === "number" ? slows.value : null}
      />
    </Panel>
  );
}

const SPELL_COLUMNS: readonly Column<Spell>[] = [
  {
    id: "code",
    name: "What",
    value: (one) => one.title,
    cell: (one) => <State state={one.title} tone={one.to === null ? "warn" : "off"} />,
  },
  { id: "says", name: "Message", value: (one) => one.says },
  { ...moment<Spell>("from", "From", (one) => one.from, "before"), width: 96 },
  { ...moment<Spell>("to", "Until", (one) => one.to, "now"), width: 96 },
];

function Timeline({ gpu, events }: { gpu: GpuWhole; events: readonly EventRow[] }) {
  const rows = spells(events, [...gpu.conditions, ...gpu.claims]);
  return (
    <Panel title="Conditions" bare={rows.length > 0}>
      {rows.length === 0 ? (
        <Text size="sm" className="wr-quiet">
          Nothing was the matter with this GPU in the events that were read.
        </Text>
      ) : (
        <DataTable
          of={["condition", "conditions"]}
          columns={SPELL_COLUMNS}
          id={(one) => `${one.code} ${one.from} ${one.to}`}
          rows={rows}
          bare
          empty={null}
        />
      )}
    </Panel>
  );
}

const XID_COLUMNS: readonly Column<EventRow>[] = [
  { ...moment<EventRow>("at", "When", (event) => event.at), width: 96 },
  {
    id: "xid",
    name: "XID",
    value: (event) => event.title,
    cell: (event) => (
      <a className="wr-link" href={`/docs/xids#xid-${field(event, "xid")}`} target="_blank" rel="noopener">
        {plain(event.title)}
      </a>
    ),
  },
  { id: "blame", name: "Caused by", value: blamed },
  {
    id: "workload",
    name: "Workload",
    value: (event) => field(event, "workload"),
    cell: (event) => (typeof event.fields.workload === "string" ? <Subject id={event.fields.workload} /> : DASH),
  },
  { id: "process", name: "Process", value: (event) => said(event, "process", "pid") },
  { id: "text", name: "Message", value: (event) => event.text },
];

function Xids({ events }: { events: readonly EventRow[] }) {
  const rows = events.filter((event) => event.kind === "gpu.xid");
  return (
    <Panel title="Driver errors (XID)" bare={rows.length > 0}>
      {rows.length === 0 ? (
        <Text size="sm" className="wr-quiet">
          The driver reported no fault in the events that were read.
        </Text>
      ) : (
        <DataTable of={["XID", "XIDs"]} columns={XID_COLUMNS} id={(event) => event.id} rows={rows} bare empty={null} />
      )}
    </Panel>
  );
}

function field(event: EventRow, name: string): string {
  const value = event.fields[name];
  return typeof value === "string" ? plain(value) : DASH;
}

const said = (event: EventRow, ...names: string[]): string =>
  names
    .map((name) => field(event, name))
    .filter((word) => word !== DASH)
    .join(" ") || DASH;

function Evidence({ gpu }: { gpu: GpuWhole }) {
  return (
    <Panel title="Verification">
      <Text size="sm" fw={600}>
        Verified
      </Text>
      <CardEvidence gpu={gpu} />
      <Text size="sm" fw={600} mt={10}>
        Reported by its host
      </Text>
      {gpu.claims.length ? (
        <Reasons reasons={gpu.claims.map((claim) => `${claim.title}: ${claim.detail}`)} />
      ) : (
        <Text size="sm" className="wr-quiet">
          No contradictions found.
        </Text>
      )}
      <Text size="sm" fw={600} mt={10}>
        What test rentals measured, inside
      </Text>
      {gpu.benchmarks.length ? (
        <Facts
          rows={figures(gpu.benchmarks).map(([label, [newest, ...earlier]]) => [
            label,
            newest && (
              <span key={label}>
                {rateText(newest)}, <When at={newest.measured_at} />
                {earlier.length > 0 && (
                  <Text span size="xs" className="wr-quiet">
                    {" "}
                    before: {earlier.map(rateText).join(", ")}
                  </Text>
                )}
              </span>
            ),
          ])}
        />
      ) : (
        <Text size="sm" className="wr-quiet">
          Nothing yet.
        </Text>
      )}
    </Panel>
  );
}
