// How a command line names a machine or a job.
import { useQuery } from "@tanstack/react-query";
import { jobs as jobsQuery, me as meQuery } from "../api/queries.ts";
import type { Cluster, Job } from "../api/types.ts";
import { operand } from "../parts/shell.ts";

const RESTS = ["Deleted", "Finished", "Failed"];

/** By its name, which means one's own that goes on; another by its id. */
export function useMachineWord({ id, name, phase, account_id }: Cluster): string {
  const mine = useQuery(meQuery).data?.account.id;
  return account_id === mine && !RESTS.includes(phase) ? operand(name) : id;
}

/** By its name, which means one's newest of it; another by its id. */
export function useJobWord({ id, name, account_id }: Job): string {
  const mine = useQuery(meQuery).data?.account.id;
  const known = useQuery(jobsQuery.first).data?.items ?? [];
  const newest = known.find((one) => one.name === name && one.account_id === account_id);
  return account_id === mine && newest?.id === id ? operand(name) : id;
}
