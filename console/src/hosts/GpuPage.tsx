// The page of one GPU: every field, its conditions and XIDs over time, benchmarks, and the reasons for its tier.

import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { events as eventsQuery, gpu as gpuQuery, host as hostQuery } from "../api/queries.ts";
import type { EventRow, GpuField, GpuPage as GpuWhole } from "../api/types.ts";
import { Conditions } from "../parts/Conditions.tsx";
import { bytes, celsius, DASH, fieldText, percent, perHour, plain, watts, words } from "../parts/format.ts";
import { Facts, Figure, Id, Loaded, PageHead, Panel, Reasons } from "../parts/page.tsx";
import { SpanControl, spanNamed } from "../parts/Spans.tsx";
import { Subject } from "../parts/Subject.tsx";
import { Simulated, State, TestMoney, When } from "../parts/state.tsx";
import { EventList } from "../records/EventList.tsx";
import { moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { figures, rateText } from "./benchmarks.ts";
import { useFrames } from "./frames.ts";
import { HostCharts } from "./HostCharts.tsx";
import { blamed, codeOf, type Spell, spells } from "./timeline.ts";
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
  const past = useQuery(eventsQuery({ subject: gpu.uuid, severity: "info" }).first);
  return (
    <>
      <PageHead
        above={
          <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: gpu.host_id }}>
            {plain(gpu.host_name)}
          </Link>
        }
        title={plain(gpu.name)}
        beside={
          <>
            <State state={gpu.state_text} reason={gpu.state_reason} />
            {gpu.simulated && <Simulated />}
            <Text size="xs" className="wr-quiet">
              <Id id={gpu.uuid} />
            </Text>
          </>
        }
      />
      {gpu.state_reason && (
        <Text size="sm" mt={-10} mb={12} className="wr-break wr-quiet">
          {plain(gpu.state_reason)}
        </Text>
      )}
      {gpu.conditions.length ? (
        <Stack gap={6} mb={16}>
          <Conditions found={gpu.conditions} />
        </Stack>
      ) : null}
      <div className="wr-figures" style={{ marginBottom: 16 }}>
        <Figure label="tier" value={plain(gpu.tier)} />
        <Figure label="price" value={perHour(gpu.price_per_hour)} note={<TestMoney />} />
        <Figure label="use" value={percent(gpu.live?.utilization_ratio)} />
        <Figure label={`memory of ${bytes(gpu.memory_bytes)}`} value={bytes(gpu.live?.memory_used_bytes)} />
        <Figure label="temperature" value={celsius(gpu.live?.temperature_celsius)} />
        <Figure label="power" value={watts(gpu.live?.power_watts)} />
      </div>
      <div className="wr-columns">
        <div className="wr-stack">
          <Charts gpu={gpu} />
          <Timeline gpu={gpu} events={past.data?.items ?? []} />
          <Xids events={past.data?.items ?? []} />
          <div className="wr-fields">
            {gpu.groups.map((group) => (
              <Panel key={group.name} title={group.name}>
                <Facts rows={group.fields.map(row)} />
              </Panel>
            ))}
          </div>
          <Panel bare title="Events">
            <EventList subject={gpu.uuid} follow />
          </Panel>
        </div>
        <aside className="wr-stack">
          <Panel title={`Tier ${plain(gpu.tier)}: why`} label="Tier">
            {gpu.tier_reasons.length ? (
              <Reasons reasons={gpu.tier_reasons} />
            ) : (
              <Text size="sm" className="wr-quiet">
                Not measured yet.
              </Text>
            )}
          </Panel>
          <Evidence gpu={gpu} />
          <Panel title="Place">
            <Facts
              rows={[
                ["Host", <Subject key="h" id={gpu.host_id} />],
                ["Link", <State key="l" state={gpu.link_state} />],
                ["Region", plain(gpu.region)],
                ["Rented by", gpu.cluster_id ? <Subject key="c" id={gpu.cluster_id} /> : DASH],
              ]}
            />
          </Panel>
        </aside>
      </div>
    </>
  );
}

/** A field's name with what is known of it in the tooltip, and its value. */
function row(field: GpuField): readonly [string, React.ReactNode] {
  const said = [
    `${field.name}, read by ${field.read}, ${field.rate}`,
    field.dcgm && `DCGM: ${field.dcgm}`,
    field.otel && `OpenTelemetry: ${field.otel}`,
    field.note,
  ]
    .filter(Boolean)
    .join("\n");
  return [
    field.label,
    <span key={field.name} title={said} data-field={field.name}>
      {fieldText(field.value, field.unit)}
    </span>,
  ];
}

function Charts({ gpu }: { gpu: GpuWhole }) {
  const frames = useFrames(gpu.host_id);
  const host = useQuery(hostQuery(gpu.host_id));
  const search = useSearch({ from: "/gpus/$gpuId" });
  const navigate = useNavigate({ from: "/gpus/$gpuId" });
  const span = spanNamed(search.span);
  return (
    <Panel
      title="Readings"
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
      <Loaded query={host} lines={4}>
        {(whole) => (
          <HostCharts
            key={span.name}
            host={{ ...whole, gpus: whole.gpus.filter((one) => one.uuid === gpu.uuid) }}
            spanS={span.seconds}
            frames={frames}
            only="gpu"
          />
        )}
      </Loaded>
    </Panel>
  );
}

const SPELL_COLUMNS: readonly Column<Spell>[] = [
  {
    id: "code",
    name: "What",
    value: (one) => one.code,
    cell: (one) => <State state={words(codeOf(one.code))} tone={one.to === null ? "warn" : "off"} />,
  },
  { id: "says", name: "Says", value: (one) => one.says },
  { ...moment<Spell>("from", "From", (one) => one.from, "before"), width: 96 },
  { ...moment<Spell>("to", "Until", (one) => one.to, "now"), width: 96 },
];

function Timeline({ gpu, events }: { gpu: GpuWhole; events: readonly EventRow[] }) {
  const rows = spells(events, [...gpu.conditions, ...gpu.claims]);
  return (
    <Panel title="Health" bare={rows.length > 0}>
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
  { id: "xid", name: "XID", number: true, value: (event) => field(event, "xid") },
  { id: "blame", name: "Put down to", value: blamed },
  {
    id: "workload",
    name: "Workload",
    value: (event) => field(event, "workload"),
    cell: (event) => (typeof event.fields.workload === "string" ? <Subject id={event.fields.workload} /> : DASH),
  },
  { id: "process", name: "Process", value: (event) => `${field(event, "process")} ${field(event, "pid")}` },
  { id: "text", name: "Says", value: (event) => event.text },
];

function Xids({ events }: { events: readonly EventRow[] }) {
  const rows = events.filter((event) => event.kind === "gpu.xid");
  return (
    <Panel title="XIDs" bare={rows.length > 0}>
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

function Evidence({ gpu }: { gpu: GpuWhole }) {
  return (
    <Panel title="Verification">
      <Text size="sm" fw={600}>
        Verified
      </Text>
      <CardEvidence hostId={gpu.host_id} uuid={gpu.uuid} simulated={gpu.simulated} />
      <Text size="sm" fw={600} mt={10}>
        Reported by its host
      </Text>
      {gpu.claims.length ? (
        <Reasons reasons={gpu.claims.map((claim) => `${codeOf(claim.code)}: ${claim.detail}`)} />
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
