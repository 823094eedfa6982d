// What runs without me: jobs that wait, run and have run.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { jobs as jobsQuery } from "../api/queries.ts";
import type { Job } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { amount, DASH, plain } from "../format.ts";
import { CsvButton } from "../parts/Csv.tsx";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Simulated, State, TestMoney, When } from "../parts/state.tsx";

const COLUMNS: readonly CsvColumn<Job>[] = [
  { name: "id", value: (row) => row.id },
  { name: "name", value: (row) => row.name },
  { name: "array_index", value: (row) => row.array_index },
  { name: "state", value: (row) => row.state },
  { name: "exit_code", value: (row) => row.exit_code },
  { name: "attempts", value: (row) => row.attempts.length },
  { name: "cost_so_far", value: (row) => row.cost_so_far },
  { name: "created_at", value: (row) => row.created_at },
  { name: "ended_at", value: (row) => row.ended_at },
];

export function JobsPage() {
  const query = useQuery(jobsQuery);
  const items = query.data?.items ?? [];
  const make = (
    <Button component={Link} to="/jobs/new" leftSection={<PlusIcon />}>
      New job
    </Button>
  );
  return (
    <div className="wr-page">
      <PageHead
        title="Jobs"
        beside={<TestMoney />}
        actions={
          <>
            <CsvButton
              of="the jobs"
              name="windrow-jobs"
              columns={COLUMNS}
              rows={() => items}
              disabled={items.length === 0}
            />
            {make}
          </>
        }
      />
      <Panel bare label="Jobs">
        <Loaded query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No jobs yet" command="windrow job submit -- python train.py" action={make}>
                A job waits for a place, runs, keeps its log and files here, and lets go; you need not stay. Submit the
                folder you are in from a terminal, or a command alone here:
              </Empty>
            ) : (
              <div className="wr-scroll">
                <table className="wr-table">
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>State</th>
                      <th className="num">Exit code</th>
                      <th className="num">Attempts</th>
                      <th className="num">Cost so far</th>
                      <th>Submitted</th>
                      <th>Ended</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((job) => (
                      <Row key={job.id} job={job} />
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}

function Row({ job }: { job: Job }) {
  return (
    <tr>
      <td>
        <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: job.id }}>
          {plain(job.name)}
          {job.request.array_size > 0 && ` [${job.array_index}]`}
        </Link>
        {job.request.simulated && (
          <>
            {" "}
            <Simulated />
          </>
        )}
      </td>
      <td>
        <State state={job.state} reason={job.reason} />
      </td>
      <td className="num">{job.exit_code ?? DASH}</td>
      <td className="num">{job.attempts.length}</td>
      <td className="num">{amount(job.cost_so_far, 2, 6)}</td>
      <td>
        <When at={job.created_at} />
      </td>
      <td>
        <When at={job.ended_at} />
      </td>
    </tr>
  );
}
