// Merges the list of agents with the changes that the stream told. Pure.
import type { AgentRow, HostSummary } from "../api/types.ts";
import type { Agent, Link } from "./layout.ts";

const LINKS: Record<string, Link> = { online: "online", suspect: "suspect", lost: "lost" };

/** Of each host the newer of both; those that were never heard have no Access and no dot. */
export function agentsOf(listed: readonly AgentRow[], streamed: Iterable<HostSummary>): Agent[] {
  const found = new Map<string, AgentRow>(listed.map((row) => [row.id, row]));
  for (const host of streamed) {
    const known = found.get(host.id);
    // A retired host is on no list; a stream may have told of it before.
    if (host.admin_state === "retired") found.delete(host.id);
    else if (!known || host.version >= known.version) found.set(host.id, host);
  }
  const agents: Agent[] = [];
  for (const row of found.values()) {
    const link = LINKS[row.link_state];
    if (row.access_id === null || link === undefined) continue;
    agents.push({
      id: row.id,
      name: row.name,
      access: row.access_id,
      link,
      rttMs: row.rtt_ms,
      simulated: row.simulated,
    });
  }
  return agents;
}
