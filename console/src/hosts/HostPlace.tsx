// A host's country and labels: shown to everybody, changed by those who may act on the host.
import { Button, Group, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { put } from "../api/client.ts";
import { me as meQuery } from "../api/queries.ts";
import type { Host } from "../api/types.ts";
import { mayOperate } from "../identity/rights.ts";
import { plain } from "../parts/format.ts";
import { Panel, ProblemNote } from "../parts/page.tsx";

export function HostPlace({ host }: { host: Host }) {
  const may = mayOperate(useQuery(meQuery).data, host);
  const labels = host.labels.join(" ");
  return (
    <Panel title="Country and labels">
      <Text size="sm" className="wr-break">
        {[host.country ?? "No country said", labels || "no labels"].map(plain).join(", ")}
      </Text>
      {may && <Said key={`${host.country} ${labels}`} host={host} />}
    </Panel>
  );
}

function Said({ host }: { host: Host }) {
  const client = useQueryClient();
  const [country, setCountry] = useState(host.country ?? "");
  const [labels, setLabels] = useState(host.labels.join(" "));
  const say = useMutation({
    mutationFn: () => {
      const place = { country: country.trim().toUpperCase() || null, labels: labels.split(/[\s,]+/).filter(Boolean) };
      return put(`/hosts/${encodeURIComponent(host.id)}/place`, place);
    },
    onSuccess: () => void client.invalidateQueries({ queryKey: ["host", host.id] }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        say.mutate();
      }}
    >
      <Group gap="xs" align="end" mt={8}>
        <TextInput
          label="Country"
          description="Two letters such as DE"
          value={country}
          onChange={(event) => setCountry(event.currentTarget.value)}
        />
        <TextInput
          label="Labels"
          description="disk=nvme, and others that renters can ask for"
          value={labels}
          onChange={(event) => setLabels(event.currentTarget.value)}
        />
        <Button type="submit" variant="default" loading={say.isPending}>
          Set
        </Button>
      </Group>
      {say.error && <ProblemNote error={say.error} />}
    </form>
  );
}
