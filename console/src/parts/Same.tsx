// The request of a form as a command of `windrow` and of curl. A token is always a variable, never a value.
import { Button, Collapse, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { callOf } from "../clusters/request.ts";
import { Command } from "./page.tsx";

interface SameProps {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** After /api/v1, or whole from /api on. */
  path: string;
  body?: unknown;
  /** The line of `windrow`. */
  command?: string | undefined;
}

export function Same({ method, path, body, command }: SameProps) {
  const [opened, { toggle }] = useDisclosure(false);
  return (
    <div>
      <Button variant="subtle" color="gray" onClick={toggle} aria-expanded={opened}>
        Show API and CLI call
      </Button>
      <Collapse expanded={opened}>
        <Stack gap="xs" mt="xs">
          {command && <Command text={command} label="windrow command" />}
          <Command text={callOf(method, path, body, window.location.origin)} label="HTTP call" />
        </Stack>
      </Collapse>
    </div>
  );
}
