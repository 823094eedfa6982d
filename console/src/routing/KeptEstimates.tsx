// The estimates that were kept: what was expected of each, and what its job has cost.
import { Link } from "@tanstack/react-router";
import { keptEstimates } from "../api/queries.ts";
import type { KeptEstimate } from "../api/types.ts";
import { amount, DASH, plain } from "../parts/format.ts";
import { Empty, Panel } from "../parts/page.tsx";
import { moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";

const COLUMNS: readonly Column<KeptEstimate>[] = [
  moment("at", "Kept", (row) => row.at),
  { id: "backend", name: "Place", value: (row) => row.backend ?? "none", facet: true },
  { id: "estimate", name: "Expected cost, USD", value: (row) => rangeOf(row.cost_estimate) },
  {
    id: "job",
    name: "Job",
    value: (row) => row.job_id,
    cell: (row) =>
      row.job_id ? (
        <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: row.job_id }}>
          {plain(row.job_state ?? "forgotten")}
        </Link>
      ) : (
        <span className="wr-quiet">none</span>
      ),
  },
  { id: "cost", name: "Cost, USD", value: (row) => (row.cost === null ? DASH : amount(row.cost, 2)) },
  { id: "held", name: "In range", value: (row) => (row.held === null ? DASH : row.held ? "yes" : "no"), facet: true },
];

/** An expected cost with the range of 8 of 10 runs. */
export const rangeOf = (cost: KeptEstimate["cost_estimate"]): string =>
  cost?.total == null ? DASH : `${amount(cost.total, 2)} (${amount(cost.low, 2)} to ${amount(cost.high, 2)})`;

export function KeptEstimates() {
  const list = usePaged(keptEstimates, (row) => row.route_id);
  return (
    <Panel title="Kept estimates" label="Kept estimates" bare>
      <DataTable
        of={["estimate", "estimates"]}
        columns={COLUMNS}
        {...list}
        empty={
          <Empty title="No kept estimates" command="windrow job submit --optimize cost --hours 1 -- ./train">
            A job that is started from a place above is set beside what it was expected to cost.
          </Empty>
        }
      />
    </Panel>
  );
}
