// The field for the volumes of a cluster or a job.
import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { me as meQuery, volumes as volumesQuery } from "../api/queries.ts";
import { unnamed, withMount } from "./volumes.ts";

const OFFERED_MOST = 12;

interface Props {
  value: string;
  change: (volumes: string) => void;
  hosts: number;
  error: string | undefined;
}

export function Mounts({ value, change, hosts, error }: Props) {
  const rents = useQuery(meQuery).data?.roles.includes("renter") ?? false;
  const known = useQuery({ ...volumesQuery, enabled: rents }).data;
  const offered = unnamed(known ?? [], value).slice(0, OFFERED_MOST);
  return (
    <Stack gap={6}>
      <Textarea
        label="Volumes"
        description="One per line, NAME:/path; :ro makes it read-only. Volumes outlive the work."
        placeholder="data:/data"
        autosize
        minRows={1}
        maxRows={8}
        value={value}
        error={error}
        onChange={(event) => change(event.currentTarget.value)}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      {offered.length > 0 && (
        <Group gap={6} role="group" aria-label="Your volumes">
          {offered.map((name) => (
            <Button
              key={name}
              size="compact-xs"
              variant="default"
              onClick={() => change(withMount(value, name, hosts))}
              aria-label={`Add the volume ${name}`}
            >
              {name}
            </Button>
          ))}
        </Group>
      )}
      {known?.length === 0 && (
        <Text size="xs" className="wr-quiet">
          You have none yet.{" "}
          <Link className="wr-link" to="/volumes">
            Make one
          </Link>
        </Text>
      )}
    </Stack>
  );
}
