// The field for the volumes of a cluster or a job.
import { useQuery } from "@tanstack/react-query";
import { me as meQuery, volumes as volumesQuery } from "../api/queries.ts";
import { NamedLines } from "../parts/NamedLines.tsx";
import { unnamed, withMount } from "./volumes.ts";

interface Props {
  value: string;
  change: (volumes: string) => void;
  error: string | undefined;
  hosts: number;
}

export function Mounts({ hosts, ...props }: Props) {
  const rents = useQuery(meQuery).data?.roles.includes("renter") ?? false;
  const known = useQuery({ ...volumesQuery, enabled: rents }).data;
  return (
    <NamedLines
      {...props}
      label="Volumes"
      description="One per line, NAME:/path; :ro makes it read-only. Volumes outlive the work."
      placeholder="data:/data"
      of={["volume", "/volumes"]}
      none={known?.length === 0}
      unused={unnamed(known ?? [], props.value)}
      withOne={(name) => withMount(props.value, name, hosts)}
    />
  );
}
