// How a command line names a machine or a job.
import { useQuery } from "@tanstack/react-query";
import { jobs as jobsQuery, me as meQuery } from "../api/queries.ts";
import type { Cluster, Job } from "../api/types.ts";
import { called } from "../parts/shell.ts";

const RESTS = ["Deleted", "Finished", "Failed"];

/** By its name, which means one's own that goes on; another by its id. */
export function useMachineWord(cluster: Cluster): string {
  const mine = useQuery(meQuery).data?.account.id;
  return cluster.account_id === mine && !RESTS.includes(cluster.phase) ? called(cluster) : cluster.id;
}

/** By its name, which means one's newest of it; another by its id. */
export function useJobWord(job: Job): string {
  const mine = useQuery(meQuery).data?.account.id;
  const known = useQuery(jobsQuery.first).data?.items ?? [];
  const newest = known.find((one) => one.name === job.name && one.account_id === mine);
  return newest?.id === job.id ? called(job) : job.id;
}
