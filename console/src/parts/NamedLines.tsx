// The field for what work uses by its name, such as volumes: a line each, with buttons for what the project has.
import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { Link } from "@tanstack/react-router";

const OFFERED_MOST = 12;

interface NamedLinesProps {
  value: string;
  change: (lines: string) => void;
  error: string | undefined;
  label: string;
  description: string;
  placeholder: string;
  /** The word for one, and the page with all of them. */
  of: readonly ["secret", "/secrets"] | readonly ["volume", "/volumes"];
  /** True: the project has none. */
  none: boolean;
  /** Names that are not in a line yet. */
  unused: readonly string[];
  /** The same lines and this one. */
  withOne: (name: string) => string;
}

export function NamedLines({ value, change, error, of, none, unused, withOne, ...words }: NamedLinesProps) {
  const [one, page] = of;
  return (
    <Stack gap={6}>
      <Textarea
        {...words}
        autosize
        minRows={1}
        maxRows={8}
        value={value}
        error={error}
        onChange={(event) => change(event.currentTarget.value)}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      {unused.length > 0 && (
        <Group gap={6} role="group" aria-label={`Your ${one}s`}>
          {unused.slice(0, OFFERED_MOST).map((name) => (
            <Button
              key={name}
              size="compact-xs"
              variant="default"
              onClick={() => change(withOne(name))}
              aria-label={`Add the ${one} ${name}`}
            >
              {name}
            </Button>
          ))}
        </Group>
      )}
      {none && (
        <Text size="xs" className="wr-quiet">
          The project has no {one} yet.{" "}
          <Link className="wr-link" to={page}>
            Add a {one}
          </Link>
        </Text>
      )}
    </Stack>
  );
}
