// The list of the account's jobs.

import { Link } from "@tanstack/react-router";
import { jobs as jobsQuery } from "../api/queries.ts";
import type { Job } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { placeWord } from "../clusters/elsewhere.ts";
import { amount, count, plain, sentence } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, PageHead, Panel } from "../parts/page.tsx";
import { TestMoney } from "../parts/state.tsx";
import { figure, identity, moment, Named, simulated, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";

const whereOf = (row: Job) => placeWord(row.attempts.at(-1)?.place);

const COLUMNS: readonly Column<Job>[] = [
  {
    id: "name",
    name: "Name",
    width: "220px",
    value: (row) => row.name,
    cell: (row) => (
      <Named isSimulated={row.request.simulated}>
        <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: row.id }}>
          {plain(row.name)}
          {row.request.array_size > 0 && `[${row.array_index}]`}
        </Link>
        {whereOf(row) && <div className="wr-quiet">{whereOf(row)}</div>}
      </Named>
    ),
  },
  state(
    "State",
    (row) => row.state,
    (row) => row.reason,
  ),
  {
    id: "reason",
    name: "Reason",
    value: (row) => row.reason,
    cell: (row) => <span className="wr-break">{sentence(row.reason)}</span>,
  },
  figure("exit_code", "Exit code", (row) => row.exit_code, count),
  figure("attempts", "Attempts", (row) => row.attempts.length, count),
  figure(
    "cost_so_far",
    "Cost so far",
    (row) => row.cost_so_far,
    (cost) => amount(cost),
  ),
  moment("created_at", "Submitted", (row) => row.created_at),
  moment("ended_at", "Ended", (row) => row.ended_at),
  { id: "where", name: "Bought at", value: whereOf, optional: true },
  figure("array_index", "Array index", (row) => row.array_index, count, { optional: true }),
  simulated((row) => row.request.simulated),
  identity((row) => row.id, { optional: true }),
];

export function JobsPage() {
  const list = usePaged(jobsQuery, (row) => row.id);
  const make = (
    <PageButton to="/new" search={{ what: "job" }} icon={<PlusIcon />}>
      New job
    </PageButton>
  );
  return (
    <div className="wr-page">
      <PageHead title="Jobs" beside={<TestMoney />} actions={make} />
      <Panel bare label="Jobs">
        <DataTable
          of={["job", "jobs"]}
          columns={COLUMNS}
          {...list}
          address
          empty={
            <Empty title="No jobs yet" command="windrow job submit -- python train.py" action={make}>
              Jobs wait for a free host, run to the end, and keep log and results. You can close the browser. Submit a
              folder from a terminal, or a command alone here:
            </Empty>
          }
        />
      </Panel>
    </div>
  );
}
