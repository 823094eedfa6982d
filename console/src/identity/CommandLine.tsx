// The line that installs the command `windrow` on the reader's own machine, from this Master.
import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { cli as cliQuery } from "../api/queries.ts";
import { Command } from "../parts/page.tsx";
import { installLine } from "./account.ts";

/** Nothing where the Master serves no HTTPS. invitation: the secret of one that the line accepts. */
export function CommandLine({ invitation, children }: { invitation?: string; children: ReactNode }) {
  const cli = useQuery(cliQuery).data;
  if (!cli?.command) return null;
  return (
    <Stack gap="xs">
      <Text size="sm">{children}</Text>
      <Command text={installLine(cli.command, cli.url, invitation)} label="line that installs windrow" />
      <Text size="sm" className="wr-quiet">
        {cli.this_machine_only && "This Master listens on loopback: the line works on its own machine only. "}
        It needs Linux or macOS with curl and Python 3.11 or newer, no rights of root, and takes everything from this
        Master, whose key it checks.
      </Text>
    </Stack>
  );
}
