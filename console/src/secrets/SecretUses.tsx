// The field for the secrets of a cluster or a job.
import { useQuery } from "@tanstack/react-query";
import { me as meQuery, secrets as secretsQuery } from "../api/queries.ts";
import { NamedLines } from "../parts/NamedLines.tsx";
import { lines } from "../volumes/volumes.ts";
import { unusedSecrets } from "./secrets.ts";

interface Props {
  value: string;
  change: (secrets: string) => void;
  error: string | undefined;
}

export function SecretUses(props: Props) {
  const rents = useQuery(meQuery).data?.roles.includes("renter") ?? false;
  const known = useQuery({ ...secretsQuery, enabled: rents }).data;
  return (
    <NamedLines
      {...props}
      label="Secrets"
      description="One per line, NAME or NAME=VARIABLE. Only the host that runs the work is given the values."
      placeholder="HF_TOKEN"
      of={["secret", "/secrets"]}
      none={known?.length === 0}
      unused={unusedSecrets(known ?? [], props.value)}
      withOne={(name) => [...lines(props.value), name].join("\n")}
    />
  );
}
