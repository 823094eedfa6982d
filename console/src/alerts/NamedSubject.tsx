// A thing by its name, where only its id is told.
import { useQuery } from "@tanstack/react-query";
import { cluster, host, job } from "../api/queries.ts";
import { Subject } from "../parts/Subject.tsx";

export function NamedSubject({ id }: { id: string }) {
  const hostName = useQuery({ ...host(id), enabled: id.startsWith("host_"), retry: false, refetchInterval: false }).data
    ?.name;
  const machineName = useQuery({
    ...cluster(id),
    enabled: id.startsWith("cluster_"),
    retry: false,
    refetchInterval: false,
  }).data?.name;
  const jobName = useQuery({ ...job(id), enabled: id.startsWith("job_"), retry: false, refetchInterval: false }).data
    ?.name;
  return <Subject id={id} name={hostName ?? machineName ?? jobName} />;
}
