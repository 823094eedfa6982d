// A host's machine as the host itself reports it, field by field.
import { useQuery } from "@tanstack/react-query";
import { hostFacts } from "../api/queries.ts";
import { fieldText } from "../parts/format.ts";
import { Facts, Loaded, Panel } from "../parts/page.tsx";

export function HostSays({ hostId }: { hostId: string }) {
  const query = useQuery(hostFacts(hostId));
  return (
    <Loaded query={query} lines={4}>
      {(said) => (
        <>
          {said.groups.map((group) => (
            <Panel key={group.name} title={group.name}>
              <Facts
                rows={group.fields.map((one) => [
                  one.label,
                  <span
                    key={one.name}
                    title={`${one.name}, read from ${one.read}`}
                    data-field={one.name}
                    className="wr-break"
                  >
                    {fieldText(one.value, one.unit)}
                  </span>,
                ])}
              />
            </Panel>
          ))}
        </>
      )}
    </Loaded>
  );
}
