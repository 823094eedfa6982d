// The jobs around one job in columns: its predecessors to the left, its successors to the right. Pure.
import type { Job } from "../api/types.ts";

export interface GraphNode {
  id: string;
  name: string;
  /** Null for a job that is not among those that are known. */
  state: string | null;
  column: number;
  row: number;
}

export interface GraphEdge {
  from: string;
  to: string;
}

export interface JobGraph {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  columns: number;
  rows: number;
  /** More jobs are connected than are drawn. */
  cut: boolean;
}

/** Beyond this a drawing says less than the list. */
export const NODES_MOST = 60;

/** All jobs that are connected with this one, each to the right of everything that it comes after. */
export function graphOf(job: Job, known: readonly Job[]): JobGraph {
  const jobs = new Map(known.map((one) => [one.id, one]));
  jobs.set(job.id, job);
  const before = (id: string): readonly string[] => jobs.get(id)?.request.after ?? [];
  const after = new Map<string, string[]>();
  for (const one of jobs.values())
    for (const id of one.request.after) after.set(id, [...(after.get(id) ?? []), one.id]);
  const found = new Set([job.id]);
  let cut = false;
  for (const id of found) {
    for (const other of [...before(id), ...(after.get(id) ?? [])]) {
      if (found.has(other)) continue;
      if (found.size >= NODES_MOST) cut = true;
      else found.add(other);
    }
  }
  const columns = new Map<string, number>();
  const column = (id: string): number => {
    const held = columns.get(id);
    if (held !== undefined) return held;
    columns.set(id, 0); // no job can come after itself; if one ever did, this ends it
    const made =
      Math.max(
        -1,
        ...before(id)
          .filter((one) => found.has(one))
          .map(column),
      ) + 1;
    columns.set(id, made);
    return made;
  };
  const rows = new Map<number, number>();
  const nodes = [...found].sort().map((id): GraphNode => {
    const at = column(id);
    const row = rows.get(at) ?? 0;
    rows.set(at, row + 1);
    const one = jobs.get(id);
    return { id, name: one?.name ?? id, state: one?.state ?? null, column: at, row };
  });
  const edges = [...found].flatMap((to) =>
    before(to)
      .filter((from) => found.has(from))
      .map((from) => ({ from, to })),
  );
  return { nodes, edges, columns: Math.max(0, ...rows.keys()) + 1, rows: Math.max(0, ...rows.values()), cut };
}
