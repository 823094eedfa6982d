// The jobs that wait for a place, and why.
import { type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Job, Page } from "../api/types.ts";
import { count, plain } from "../parts/format.ts";
import { Loaded, Panel } from "../parts/page.tsx";
import { When } from "../parts/state.tsx";

const SHOWN_MOST = 5;

interface WaitingJobsProps {
  query: UseQueryOptions<Page<Job>>;
  title: string;
  empty: string;
}

export function WaitingJobs({ query: options, title, empty }: WaitingJobsProps) {
  const query = useQuery(options);
  const waiting = (query.data?.items ?? []).filter((job) => job.state === "Queued");
  return (
    <Panel
      title={waiting.length ? `${title} (${count(waiting.length)})` : title}
      label={title}
      actions={
        <Link className="wr-link" to="/jobs">
          All jobs
        </Link>
      }
      bare
    >
      <Loaded query={query} lines={2}>
        {() =>
          waiting.length ? (
            <ul className="wr-lines wr-lines-tight">
              {waiting.slice(0, SHOWN_MOST).map((job) => (
                <li key={job.id}>
                  <span className="wr-quiet wr-lines-when">
                    <When at={job.created_at} />
                  </span>
                  <span className="wr-break">
                    <Link className="wr-link wr-underlined" to="/jobs/$jobId" params={{ jobId: job.id }}>
                      {plain(job.name)}
                    </Link>
                    {job.reason && <span className="wr-quiet"> {plain(job.reason)}</span>}
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <p className="wr-calm wr-quiet">{empty}</p>
          )
        }
      </Loaded>
    </Panel>
  );
}
