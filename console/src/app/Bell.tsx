// The bell in the head: how many messages of alerts are unread, and the last of them. What alerts change is read again
// here, for every page.
import { ActionIcon, Popover } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { hearsAll, unreadText } from "../alerts/bell.ts";
import { onEvents } from "../api/feed.ts";
import { ALERT_KEYS, inbox as inboxQuery } from "../api/queries.ts";
import type { Me } from "../api/types.ts";
import { BellIcon } from "../parts/icons.tsx";
import { Waiting } from "../parts/page.tsx";

const Inbox = lazy(async () => ({ default: (await import("../alerts/Inbox.tsx")).Inbox }));
/** Alerts come in bursts. */
const SETTLE_MS = 300;

export function Bell({ me }: { me: Me }) {
  useFollowed(hearsAll(me.roles) ? undefined : me.account.id);
  const unread = useQuery(inboxQuery).data?.unread ?? 0;
  const [opened, setOpened] = useState(false);
  const close = () => setOpened(false);
  return (
    <Popover
      opened={opened}
      onChange={setOpened}
      position="bottom-end"
      width="min(400px, calc(100vw - 16px))"
      shadow="md"
      trapFocus
      returnFocus
    >
      <Popover.Target>
        <ActionIcon
          className="wr-bell"
          onClick={() => setOpened((now) => !now)}
          aria-label={unread ? `Messages: ${unread} unread` : "Messages"}
        >
          <BellIcon />
          {unread > 0 && (
            <span className="wr-unread" aria-hidden="true">
              {unreadText(unread)}
            </span>
          )}
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown p={0} aria-label="Messages">
        <Suspense fallback={<Waiting />}>
          <Inbox close={close} />
        </Suspense>
      </Popover.Dropdown>
    </Popover>
  );
}

/** Reads the inbox and the alerts again when one of them changes. */
function useFollowed(subject: string | undefined) {
  const client = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const again = () => {
      timer ??= setTimeout(() => {
        timer = null;
        for (const queryKey of ALERT_KEYS) void client.invalidateQueries({ queryKey });
      }, SETTLE_MS);
    };
    const end = onEvents(subject, { heard: (event) => event.kind.startsWith("alert.") && again(), opened: again });
    return () => {
      end();
      if (timer) clearTimeout(timer);
    };
  }, [client, subject]);
}
