// The field for the secrets of a cluster or a job.
import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { me as meQuery, secrets as secretsQuery } from "../api/queries.ts";
import { lines } from "../volumes/volumes.ts";
import { unusedSecrets } from "./secrets.ts";

const OFFERED_MOST = 12;

interface Props {
  value: string;
  change: (secrets: string) => void;
  error: string | undefined;
}

export function SecretUses({ value, change, error }: Props) {
  const rents = useQuery(meQuery).data?.roles.includes("renter") ?? false;
  const known = useQuery({ ...secretsQuery, enabled: rents }).data;
  const offered = unusedSecrets(known ?? [], value).slice(0, OFFERED_MOST);
  return (
    <Stack gap={6}>
      <Textarea
        label="Secrets"
        description="One per line, NAME or NAME=VARIABLE. Only the host that runs the work is given the values."
        placeholder="HF_TOKEN"
        autosize
        minRows={1}
        maxRows={8}
        value={value}
        error={error}
        onChange={(event) => change(event.currentTarget.value)}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      {offered.length > 0 && (
        <Group gap={6} role="group" aria-label="Your secrets">
          {offered.map((name) => (
            <Button
              key={name}
              size="compact-xs"
              variant="default"
              onClick={() => change([...lines(value), name].join("\n"))}
              aria-label={`Add the secret ${name}`}
            >
              {name}
            </Button>
          ))}
        </Group>
      )}
      {known?.length === 0 && (
        <Text size="xs" className="wr-quiet">
          The project has none yet.{" "}
          <Link className="wr-link" to="/secrets">
            Set one
          </Link>
        </Text>
      )}
    </Stack>
  );
}
