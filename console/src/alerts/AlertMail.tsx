// The setting of the alerts that a user gets by mail without a channel.
import { SegmentedControl, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { put } from "../api/client.ts";
import { alertMail as query } from "../api/queries.ts";
import type { AlertMail as Level } from "../api/types.ts";
import { Loaded, Panel, ProblemNote } from "../parts/page.tsx";

const LEVELS: readonly { value: Level["level"]; label: string }[] = [
  { value: "none", label: "None" },
  { value: "urgent", label: "Urgent ones" },
  { value: "all", label: "All" },
];

export function AlertMail() {
  const client = useQueryClient();
  const found = useQuery(query);
  const act = useMutation({
    mutationFn: (level: Level["level"]) => put<Level>("/user/alert-mail", { level }),
    onSuccess: (now) => client.setQueryData(query.queryKey, now),
  });
  return (
    <Panel title="Alerts by mail">
      <Loaded query={found} lines={1}>
        {({ level }) => (
          <Stack gap="xs" align="flex-start">
            <SegmentedControl
              aria-label="Alerts by mail"
              value={act.isPending ? act.variables : level}
              onChange={(chosen) => act.mutate(chosen as Level["level"])}
              data={[...LEVELS]}
            />
            <Text size="sm" className="wr-quiet">
              Of your projects, where this market sends mail.{" "}
              <Link className="wr-link wr-underlined" to="/alerts" search={{ tab: "channels" } as never}>
                Channels
              </Link>{" "}
              send alerts to other addresses, webhooks and chats.
            </Text>
            {act.error && <ProblemNote error={act.error} />}
          </Stack>
        )}
      </Loaded>
    </Panel>
  );
}
