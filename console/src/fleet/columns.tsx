// The columns of the fleet's table. A row is a GPU, or a host without GPUs.
import type { CSSProperties } from "react";
import { bytes, celsius, DASH, percent, perHour, plain, watts, words } from "../parts/format.ts";
import { Simulated, When } from "../parts/state.tsx";
import { toneOf } from "../parts/states.ts";
import { figure, simulated } from "../tables/columns.tsx";
import type { Column } from "../tables/table.ts";
import { type FleetRow, memoryRatio } from "./rows.ts";

/** What a row of a GPU and a row of a host both tell. */
interface Common {
  host: string;
  simulated: boolean;
  tier: string | null;
  link: string;
  use: number | null;
  power: number | null;
  region: string | null;
  at: string | null;
}

/** The columns of it. */
export const COMMON = {
  host: {
    id: "host",
    name: "Host",
    width: "minmax(206px, 1.4fr)",
    value: (row) => row.host,
    cell: (row) => <HostCell name={row.host} isSimulated={row.simulated} />,
  },
  tier: { id: "tier", name: "Tier", width: "90px", value: (row) => row.tier, facet: true, facetName: plain },
  link: {
    id: "link",
    name: "Host link",
    width: "84px",
    value: (row) => row.link,
    facet: true,
    csv: "host_link",
    cell: (row) => <CellState state={row.link} />,
  },
  use: {
    id: "use",
    name: "Use",
    width: "96px",
    number: true,
    value: (row) => row.use,
    csv: "utilization_ratio",
    cell: (row) => <CellMeter ratio={row.use} text={percent(row.use)} />,
  },
  power: {
    id: "power",
    name: "Power",
    width: "70px",
    number: true,
    value: (row) => row.power,
    csv: "power_watts",
    cell: (row) => watts(row.power),
  },
  region: {
    id: "region",
    name: "Region",
    width: "minmax(62px, .4fr)",
    value: (row) => row.region,
    facet: true,
    facetName: plain,
    cell: (row) => <span className="wr-cut">{plain(row.region)}</span>,
  },
  at: {
    id: "at",
    name: "Seen",
    width: "70px",
    number: true,
    value: (row) => row.at,
    cell: (row) => (
      <span className="wr-quiet">
        <When at={row.at} />
      </span>
    ),
  },
} satisfies Record<string, Column<Common>>;

/** In which state it is. */
export const stateColumn = <Row extends { state: string | null; stateText: string | null; why?: string | null }>(
  width: string,
): Column<Row> => ({
  id: "state",
  name: "State",
  width,
  value: (row) => row.state,
  facet: true,
  cell: (row) => (row.stateText ? <CellState state={row.stateText} reason={row.why ?? null} /> : DASH),
});

export const FLEET_COLUMNS: readonly Column<FleetRow>[] = [
  COMMON.host,
  {
    id: "model",
    name: "Hardware",
    width: "minmax(122px, 1.2fr)",
    value: (row) => row.model,
    csv: "hardware",
    cell: (row) => (
      <span className="wr-cut" title={plain(row.model)}>
        {row.index !== null && <span className="wr-quiet">GPU {row.index} · </span>}
        {plain(row.model.replace(/^NVIDIA /, ""))}
      </span>
    ),
  },
  COMMON.tier,
  COMMON.link,
  stateColumn("minmax(84px, .7fr)"),
  COMMON.use,
  {
    id: "memory",
    name: "Memory",
    width: "104px",
    number: true,
    value: (row) => row.memoryUsedBytes,
    csv: "memory_used_bytes",
    cell: (row) => <MemoryCell row={row} />,
  },
  {
    id: "temperature",
    name: "Temp",
    width: "56px",
    number: true,
    value: (row) => row.temperature,
    csv: "temperature_celsius",
    cell: (row) => celsius(row.temperature),
  },
  COMMON.power,
  {
    id: "price",
    name: "Price",
    width: "74px",
    number: true,
    value: (row) => row.price,
    csv: "price_per_hour",
    cell: (row) => perHour(row.price),
  },
  COMMON.region,
  COMMON.at,
  {
    id: "kind",
    name: "Kind",
    value: (row) => row.kind,
    facet: true,
    facetName: (kind) => (kind === "cpu" ? "CPU host" : words(kind)),
    optional: true,
  },
  simulated((row) => row.simulated),
  { id: "gpu_index", name: "GPU number", value: (row) => row.index, optional: true },
  { id: "id", name: "Id", value: (row) => row.key, optional: true },
  { id: "host_id", name: "Host id", value: (row) => row.hostId, optional: true },
  { id: "cluster_id", name: "Machine id", value: (row) => row.clusterId, optional: true },
  figure("memory_bytes", "Memory in all", (row) => row.memoryBytes, bytes, { optional: true }),
];

// One element per cell, its shape and bar drawn by style alone: hundreds of these are laid out again at each long
// scroll.

export function HostCell({ name, isSimulated }: { name: string; isSimulated: boolean }) {
  return (
    <span className="wr-cut" style={{ display: "flex", gap: 8, alignItems: "center" }}>
      <span className="wr-cut" title={plain(name)}>
        {plain(name)}
      </span>
      {isSimulated && <Simulated />}
    </span>
  );
}

export function CellState({ state, reason }: { state: string; reason?: string | null }) {
  const text = words(state);
  return (
    <span className={`wr-cell-state wr-cell-${toneOf(state)}`} title={reason ? `${text}: ${plain(reason)}` : text}>
      {text}
    </span>
  );
}

export function CellMeter({ ratio, text, title }: { ratio: number | null; text: string; title?: string }) {
  return (
    <span
      className={title ? "wr-cell-meter wr-cell-meter-wide" : "wr-cell-meter"}
      style={{ "--ratio": `${Math.round(100 * Math.min(1, Math.max(0, ratio ?? 0)))}%` } as CSSProperties}
      title={title}
    >
      {text}
    </span>
  );
}

function MemoryCell({ row }: { row: FleetRow }) {
  return (
    <CellMeter
      ratio={memoryRatio(row)}
      text={bytes(row.memoryBytes)}
      title={`${bytes(row.memoryUsedBytes)} of ${bytes(row.memoryBytes)}`}
    />
  );
}
