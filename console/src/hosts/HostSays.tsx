// A host's machine as the host itself reports it, field by field.
import { useQuery } from "@tanstack/react-query";
import { hostFacts } from "../api/queries.ts";
import { FieldGroups } from "../parts/FieldGroups.tsx";
import { Loaded } from "../parts/page.tsx";

export function HostSays({ hostId }: { hostId: string }) {
  const query = useQuery(hostFacts(hostId));
  return (
    <Loaded query={query} lines={4}>
      {({ groups }) => (
        <FieldGroups groups={groups} by="this host" said={(one) => `${one.name}, read from ${one.read}`} />
      )}
    </Loaded>
  );
}
