// A host's default image: shown to everybody, changed by those who may act on the host.
import { Button, Group, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { put } from "../api/client.ts";
import { me as meQuery } from "../api/queries.ts";
import type { Host } from "../api/types.ts";
import { mayOperate } from "../identity/rights.ts";
import { plain } from "../parts/format.ts";
import { Panel, ProblemNote } from "../parts/page.tsx";

export function DefaultImage({ host }: { host: Host }) {
  const may = mayOperate(useQuery(meQuery).data, host);
  return (
    <Panel title="Default image">
      <Text size="sm" className="wr-break" data-testid="default-image">
        {host.default_image ? plain(host.default_image) : "None: renters name an image."}
      </Text>
      {may && <Chosen key={host.default_image ?? ""} host={host} />}
    </Panel>
  );
}

function Chosen({ host }: { host: Host }) {
  const client = useQueryClient();
  const [image, setImage] = useState(host.default_image ?? "");
  const choose = useMutation({
    mutationFn: () => put(`/hosts/${encodeURIComponent(host.id)}/default-image`, { image: image.trim() || null }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["host", host.id] }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        choose.mutate();
      }}
    >
      <Group gap="xs" align="end" mt={8}>
        <TextInput
          label="Image"
          description="Runs where a request names none. You offer it to everybody; empty: none."
          value={image}
          onChange={(event) => setImage(event.currentTarget.value)}
        />
        <Button type="submit" variant="default" loading={choose.isPending}>
          Set
        </Button>
      </Group>
      {choose.error && <ProblemNote error={choose.error} />}
    </form>
  );
}
