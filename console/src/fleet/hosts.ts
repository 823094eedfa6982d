// The fleet by host: its GPUs counted by state, from the rows of the fleet. Pure.
import { plain } from "../parts/format.ts";
import type { FleetRow } from "./rows.ts";

export interface HostRow {
  key: string;
  host: string;
  simulated: boolean;
  region: string | null;
  /** "8 × H100", "8 GPUs" of several kinds, or the processor. */
  hardware: string;
  tier: string | null;
  link: string;
  /** The worst of its parts' states. */
  state: string | null;
  /** "2 of 8 faulty" */
  stateText: string | null;
  rented: number;
  of: number;
  use: number | null;
  hottest: number | null;
  power: number | null;
  at: string | null;
}

const WORST = ["faulty", "offline", "paused", "idle", "rented"];

/** In the order of the rows. */
export function hostsOf(rows: readonly FleetRow[]): HostRow[] {
  const groups = new Map<string, FleetRow[]>();
  for (const row of rows) {
    const group = groups.get(row.hostId);
    if (group) group.push(row);
    else groups.set(row.hostId, [row]);
  }
  return [...groups.values()].map(hostOf);
}

function hostOf(parts: readonly FleetRow[]): HostRow {
  const first = parts[0]!;
  const state = WORST.find((word) => parts.some((part) => part.state === word)) ?? first.state;
  const having = parts.filter((part) => part.state === state).length;
  const models = new Set(parts.map((part) => part.model));
  const known = (read: (part: FleetRow) => number | null) =>
    parts.map(read).filter((value): value is number => value !== null);
  const [uses, heats, powers] = [
    known((part) => part.use),
    known((part) => part.temperature),
    known((one) => one.power),
  ];
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  return {
    key: first.hostId,
    host: first.host,
    simulated: first.simulated,
    region: first.region,
    hardware:
      first.kind === "cpu"
        ? first.model
        : models.size > 1
          ? `${parts.length} GPUs`
          : `${parts.length} × ${plain(first.model).replace(/^NVIDIA /, "")}`,
    tier: first.tier,
    link: first.link,
    state,
    stateText: parts.length > 1 && having < parts.length ? `${state}, ${having} of ${parts.length}` : state,
    rented: parts.filter((part) => part.state === "rented").length,
    of: parts.length,
    use: uses.length ? sum(uses) / uses.length : null,
    hottest: heats.length ? Math.max(...heats) : null,
    power: powers.length ? sum(powers) : null,
    at: parts.reduce<string | null>((last, part) => (last && part.at && last > part.at ? last : part.at), null),
  };
}
