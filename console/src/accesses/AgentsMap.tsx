// The map of a market: each Access with its agents around it; agents are seen moving when an Access dies or is
// drained.
import { Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, memo, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { accessAgents } from "../api/queries.ts";
import type { Access, HostSummary } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { useFleet } from "../fleet/feed.ts";
import type { Fleet } from "../fleet/rows.ts";
import { count, measured, plain, words } from "../parts/format.ts";
import { Empty, ProblemNote, Waiting } from "../parts/page.tsx";
import { toneOf } from "../parts/states.ts";
import { useWidth } from "../parts/width.ts";
import { agentsOf } from "./agents.ts";
import {
  type Agent,
  around,
  bubbleRadius,
  type Cell,
  CORE_PX,
  type Counts,
  capacityFor,
  countsOf,
  DOTS_MOST,
  dotRadius,
  HEAD_PX,
  type Link,
  lay,
  moves,
  type Place,
  type Seats,
  seat,
} from "./layout.ts";

/** As long as a move is told in words. */
const TOLD_MS = 12_000;
const NONE: Counts = { online: 0, suspect: 0, lost: 0 };
const LINKS: readonly Link[] = ["online", "suspect", "lost"];

export function AgentsMap({ accesses }: { accesses: readonly Access[] }) {
  const { fleet, error: feedError } = useFleet();
  const listed = useQuery(accessAgents);
  const agents = useMemo(() => agentsOf(listed.data ?? [], streamed(fleet.hosts)), [listed.data, fleet.hosts]);
  const told = useMoves(agents);
  if (!listed.data)
    return listed.error ? (
      <ProblemNote error={listed.error} retry={() => void listed.refetch()} />
    ) : (
      <Waiting lines={6} />
    );
  if (agents.length === 0) {
    return (
      <Empty
        title="No host has come yet"
        command="windrow token add --join"
        action={<PageButton to="/join">Add a host</PageButton>}
      >
        Each host appears here as a dot at the relay it has chosen, and moves when that relay dies or is drained.
      </Empty>
    );
  }
  return <Drawn accesses={accesses} agents={agents} told={told} stale={feedError !== null} />;
}

function* streamed(hosts: Fleet["hosts"]): Iterable<HostSummary> {
  for (const stored of hosts.values()) yield stored.value;
}

interface Told {
  from: string;
  to: string;
  count: number;
  at: number;
}

/** The latest moves; each one also reads the Accesses again. */
function useMoves(agents: readonly Agent[]): readonly Told[] {
  const client = useQueryClient();
  const before = useRef<ReadonlyMap<string, string>>(new Map());
  const [told, tell] = useState<readonly Told[]>([]);
  useEffect(() => {
    const fresh = moves(before.current, agents);
    before.current = new Map(agents.map((agent) => [agent.id, agent.access]));
    if (fresh.length === 0) return;
    void client.invalidateQueries({ queryKey: ["accesses"] });
    const at = Date.now();
    tell((known) => {
      const kept = new Map(known.filter((one) => at - one.at < TOLD_MS).map((one) => [`${one.from}\n${one.to}`, one]));
      for (const one of fresh) {
        const same = kept.get(`${one.from}\n${one.to}`);
        kept.set(`${one.from}\n${one.to}`, { ...one, count: one.count + (same?.count ?? 0), at });
      }
      return [...kept.values()];
    });
  }, [agents, client]);
  useEffect(() => {
    if (told.length === 0) return;
    const timer = setTimeout(() => tell([]), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);
  return told;
}

/** The Accesses that are drawn: all but those that are gone and that nobody is at any more. */
function placesOf(accesses: readonly Access[], counts: ReadonlyMap<string, Counts>): Place[] {
  const shown: Place[] = accesses
    .filter((one) => one.state !== "departed" || counts.has(one.id))
    .map(({ id, region }) => ({ id, region }));
  const known = new Set(shown.map((one) => one.id));
  for (const id of counts.keys()) if (!known.has(id)) shown.push({ id, region: null });
  return shown;
}

/** An Access that died stays for as long as this page is open, so that one sees where they came from. */
function useKept(accesses: readonly Access[], counts: ReadonlyMap<string, Counts>): readonly Place[] {
  const kept = useRef(new Map<string, Place>());
  for (const place of placesOf(accesses, counts)) kept.current.set(place.id, place);
  const ids = [...kept.current.values()].map((one) => `${one.id} ${one.region}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the map stays the same object; ids hold its content
  return useMemo(() => [...kept.current.values()], [ids]);
}

function Drawn({
  accesses,
  agents,
  told,
  stale,
}: {
  accesses: readonly Access[];
  agents: readonly Agent[];
  told: readonly Told[];
  stale: boolean;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const width = useWidth(ref);
  const navigate = useNavigate();
  const counts = useMemo(() => countsOf(agents), [agents]);
  const places = useKept(accesses, counts);
  const { cells, height } = useMemo(() => lay(places, Math.max(width, 1)), [places, width]);
  const held = useRef<{ seats: Seats; capacity: number }>({ seats: new Map(), capacity: 0 });
  const asDots = agents.length <= DOTS_MOST;
  const { seats, capacity } = useMemo(() => {
    const grown = capacityFor(agents.length, held.current.capacity);
    held.current = { seats: asDots ? seat(held.current.seats, agents, grown) : new Map(), capacity: grown };
    return held.current;
  }, [agents, asDots]);
  const byAccess = useMemo(() => new Map(accesses.map((one) => [one.id, one])), [accesses]);
  const stops = useMemo(() => stopsOf(cells, agents, seats, asDots), [cells, agents, seats, asDots]);
  const [looked, look] = useState<string | null>(null);

  const walk = (event: KeyboardEvent) => {
    const to = next(event.key, stops, looked);
    if (event.key === "Enter" && looked?.startsWith("host_"))
      void navigate({ to: "/hosts/$hostId", params: { hostId: looked } });
    else if (event.key === "Escape") look(null);
    else if (to !== null) look(to);
    else return;
    event.preventDefault();
  };
  const point = (event: PointerEvent) => {
    const id = (event.target as Element).closest("[data-at]")?.getAttribute("data-at");
    if (id) look(id);
  };
  const where = new Map(cells.map((cell) => [cell.place.id, cell]));
  return (
    <div className="wr-map">
      {/* Read by a screen reader as what it says in words; the drawing itself is for the eye. */}
      <div
        ref={ref}
        className="wr-map-view"
        role="group"
        tabIndex={0}
        aria-label="Map of relays and their agents: arrow keys walk over them, Enter opens a host"
        aria-describedby="wr-map-words"
        onKeyDown={walk}
        onPointerOver={point}
        onPointerLeave={() => look(null)}
      >
        <svg
          width={width}
          height={height}
          aria-hidden="true"
          data-testid="map"
          onClick={() => {
            if (looked?.startsWith("host_")) void navigate({ to: "/hosts/$hostId", params: { hostId: looked } });
          }}
        >
          {width > 0 &&
            cells.map((cell) => (
              <Node
                key={cell.place.id}
                cell={cell}
                access={byAccess.get(cell.place.id)}
                counts={counts.get(cell.place.id) ?? NONE}
                looked={looked === cell.place.id}
              />
            ))}
          {/* Not before the width is known: dots would fly in from where they never were. */}
          {width === 0
            ? null
            : asDots
              ? agents.map((agent) => {
                  const cell = where.get(agent.access);
                  const held = seats.get(agent.id);
                  if (!cell || !held) return null;
                  const at = around(held.slot, capacity, cell.radius);
                  return (
                    <Dot
                      key={agent.id}
                      id={agent.id}
                      access={agent.access}
                      link={agent.link}
                      x={cell.x + at.x}
                      y={cell.y + at.y}
                      radius={dotRadius(capacity, cell.radius)}
                      looked={looked === agent.id}
                    />
                  );
                })
              : cells.map((cell) => (
                  <Bubbles
                    key={cell.place.id}
                    cell={cell}
                    counts={counts.get(cell.place.id) ?? NONE}
                    all={agents.length}
                  />
                ))}
        </svg>
      </div>
      <div className="wr-map-foot">
        <Keys />
        <div role="status" data-testid="map-told">
          {told.length > 0 ? told.map((one) => `${moved(one, byAccess)}.`).join(" ") : ""}
        </div>
        <div role="status" data-testid="map-looked" className="wr-map-looked">
          {looked === null ? "" : described(looked, agents, byAccess, counts)}
        </div>
      </div>
      {stale && (
        <Text size="sm" className="wr-quiet">
          The live stream is down: this is the last that was known.
        </Text>
      )}
      <ul id="wr-map-words" className="wr-unseen">
        {cells.map((cell) => (
          <li key={cell.place.id}>
            {spoken(cell.place, byAccess.get(cell.place.id), counts.get(cell.place.id) ?? NONE)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/**
 * Online is round, suspect a triangle, lost a cross: no state by its colour alone. A move is the change of its
 * place.
 */
const Dot = memo(function Dot({
  id,
  access,
  link,
  x,
  y,
  radius,
  looked,
}: {
  id: string;
  access: string;
  link: Link;
  x: number;
  y: number;
  radius: number;
  looked: boolean;
}) {
  return (
    <g
      className={`wr-map-dot wr-tone-${toneOf(link)}`}
      data-at={id}
      data-access={access}
      data-link={link}
      style={{ transform: `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)` }}
    >
      {looked && <circle r={radius + 4} className="wr-map-ring" />}
      <circle r={radius + 2} fill="transparent" />
      <Mark link={link} radius={radius} />
    </g>
  );
});

function Mark({ link, radius: r }: { link: Link; radius: number }) {
  if (link === "online") return <circle r={r} fill="currentColor" />;
  if (link === "suspect") return <path d={`M0 ${-1.3 * r} L${1.2 * r} ${r} L${-1.2 * r} ${r} Z`} fill="currentColor" />;
  return (
    <path
      d={`M${-r} ${-r} L${r} ${r} M${r} ${-r} L${-r} ${r}`}
      stroke="currentColor"
      strokeWidth={Math.max(1.4, r * 0.6)}
      strokeLinecap="round"
    />
  );
}

function Node({
  cell,
  access,
  counts,
  looked,
}: {
  cell: Cell;
  access: Access | undefined;
  counts: Counts;
  looked: boolean;
}) {
  const state = access?.state ?? "departed";
  const tone = toneOf(state);
  const all = counts.online + counts.suspect + counts.lost;
  const top = cell.y - cell.radius - HEAD_PX + 12;
  return (
    <g data-at={cell.place.id} data-state={state} className="wr-map-node">
      <circle cx={cell.x} cy={cell.y} r={cell.radius} className={`wr-map-cell wr-map-${state}`} />
      {looked && <circle cx={cell.x} cy={cell.y} r={CORE_PX - 1} className="wr-map-ring" />}
      <g className={`wr-tone-${tone}`} style={{ transform: `translate(${cell.x}px, ${cell.y}px)` }}>
        <circle r={CORE_PX - 8} className="wr-map-core" />
        {tone === "ok" && <circle r={6} fill="currentColor" />}
        {tone === "warn" && <path d="M0 -7 L7 5.5 L-7 5.5 Z" fill="currentColor" />}
        {tone === "bad" && (
          <path d="M-6 -6 L6 6 M6 -6 L-6 6" stroke="currentColor" strokeWidth={3} strokeLinecap="round" />
        )}
      </g>
      <text x={cell.x} y={top} className="wr-map-region">
        {cell.place.region === null ? "Region not known" : plain(cell.place.region)}
      </text>
      <text x={cell.x} y={top + 17} className="wr-map-id">
        {nameAt(access, cell.place)}
        {state === "serving" ? "" : ` · ${words(state).toLowerCase()}`}
      </text>
      <text x={cell.x} y={top + 33} className="wr-map-id">
        {figures(all, access)}
      </text>
    </g>
  );
}

function Bubbles({ cell, counts, all }: { cell: Cell; counts: Counts; all: number }) {
  const total = counts.online + counts.suspect + counts.lost;
  const radius = bubbleRadius(total, all, cell.radius);
  return (
    <g data-at={cell.place.id} data-testid="bubble" style={{ transform: `translate(${cell.x}px, ${cell.y}px)` }}>
      <circle r={1} className="wr-map-bubble wr-tone-ok" style={{ transform: `scale(${radius.toFixed(1)})` }} />
      {LINKS.map(
        (link, index) =>
          counts[link] > 0 && (
            <g
              key={link}
              className={`wr-tone-${toneOf(link)}`}
              style={{ transform: `translate(${-30}px, ${CORE_PX + 12 + index * 17}px)` }}
            >
              <Mark link={link} radius={4} />
              <text x={10} y={4} className="wr-map-count">
                {count(counts[link])} {link}
              </text>
            </g>
          ),
      )}
    </g>
  );
}

function Keys() {
  return (
    <div className="wr-map-keys" aria-hidden="true">
      {LINKS.map((link) => (
        <span key={link} className={`wr-tone-${toneOf(link)}`}>
          <svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
            <Mark link={link} radius={4} />
          </svg>
          <span>{words(link)}</span>
        </span>
      ))}
      <span className="wr-quiet">closer to the centre: a shorter round trip</span>
    </div>
  );
}

const agentsWord = (number: number): string => `${count(number)} ${number === 1 ? "agent" : "agents"}`;
const rtt = (ms: number | null | undefined): string => measured(ms, "ms");

function figures(all: number, access: Access | undefined): string {
  return access?.rtt_ms === null || access?.rtt_ms === undefined
    ? agentsWord(all)
    : `${agentsWord(all)} · ${rtt(access.rtt_ms)}`;
}

/** The name of a relay; one that is not listed any more goes by its region. */
const nameAt = (access: Access | undefined, place?: Place): string =>
  plain(access?.name ?? (place?.region ? `relay ${place.region}` : "a relay that is gone"));

function moved({ from, to, count: number }: Told, byAccess: ReadonlyMap<string, Access>): string {
  return `${agentsWord(number)} moved from ${nameAt(byAccess.get(from))} to ${nameAt(byAccess.get(to))}`;
}

function spoken(place: Place, access: Access | undefined, counts: Counts): string {
  const all = counts.online + counts.suspect + counts.lost;
  const region = place.region === null ? "in a region not known" : `in ${plain(place.region)}`;
  const median = access?.rtt_ms ? `, median round trip ${rtt(access.rtt_ms)}` : "";
  return (
    `${nameAt(access, place)} ${region}: ${words(access?.state ?? "departed").toLowerCase()}, ` +
    `${agentsWord(all)}: ${count(counts.online)} online, ${count(counts.suspect)} suspect, ` +
    `${count(counts.lost)} lost${median}.`
  );
}

function described(
  id: string,
  agents: readonly Agent[],
  byAccess: ReadonlyMap<string, Access>,
  counts: ReadonlyMap<string, Counts>,
): string {
  const agent = agents.find((one) => one.id === id);
  if (!agent) return spoken({ id, region: byAccess.get(id)?.region ?? null }, byAccess.get(id), counts.get(id) ?? NONE);
  const region = byAccess.get(agent.access)?.region;
  return (
    `${plain(agent.name)}${agent.simulated ? " (simulated)" : ""}: ${agent.link}, ` +
    `round trip ${rtt(agent.rttMs)}, at ${nameAt(byAccess.get(agent.access))}${region ? ` in ${plain(region)}` : ""}`
  );
}

/** The order of the arrow keys: each Access, then its agents from the inside out. */
function stopsOf(cells: readonly Cell[], agents: readonly Agent[], seats: Seats, asDots: boolean): readonly string[] {
  const found = new Map<string, Agent[]>();
  for (const { place } of cells) found.set(place.id, []);
  if (asDots) for (const agent of agents) found.get(agent.access)?.push(agent);
  return cells.flatMap(({ place }) => {
    const mine = found.get(place.id) ?? [];
    mine.sort((one, other) => (seats.get(one.id)?.slot ?? 0) - (seats.get(other.id)?.slot ?? 0));
    return [place.id, ...mine.map((one) => one.id)];
  });
}

function next(key: string, stops: readonly string[], now: string | null): string | null {
  const at = now === null ? -1 : stops.indexOf(now);
  const step = key === "ArrowRight" || key === "ArrowDown" ? 1 : key === "ArrowLeft" || key === "ArrowUp" ? -1 : 0;
  if (key === "Home") return stops[0] ?? null;
  if (key === "End") return stops[stops.length - 1] ?? null;
  if (step === 0) return null;
  return stops[Math.min(stops.length - 1, Math.max(0, at + step))] ?? null;
}
