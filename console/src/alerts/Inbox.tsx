// The last messages of alerts, under the bell.
import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { post } from "../api/client.ts";
import { inbox as inboxQuery } from "../api/queries.ts";
import type { InboxMessage } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Empty, Loaded } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";
import { Shape, Simulated, When } from "../parts/state.tsx";
import { MESSAGE_WORDS, messageTone, severityName, subjectsText } from "./alerts.ts";

export function Inbox({ close }: { close: () => void }) {
  const client = useQueryClient();
  const query = useQuery(inboxQuery);
  const last = query.data?.items[0]?.number ?? 0;
  const read = useMutation({
    mutationFn: () => post<{ unread: number }>("/inbox/read", { number: last }),
    onSuccess: () => void client.invalidateQueries({ queryKey: inboxQuery.queryKey }),
    onError: (failure) => notifications.show({ color: "red", message: failure.message }),
  });
  return (
    <>
      <div className="wr-inbox-head">
        <strong>Messages</strong>
        {(query.data?.unread ?? 0) > 0 && (
          <Button variant="subtle" size="compact-sm" loading={read.isPending} onClick={() => read.mutate()}>
            Mark all read
          </Button>
        )}
      </div>
      <Loaded query={query} lines={4}>
        {({ items, read_number }) =>
          items.length ? (
            <ul className="wr-inbox" aria-label="Last messages">
              {items.map((one) => (
                <Message key={one.id} message={one} isUnread={one.number > read_number} close={close} />
              ))}
            </ul>
          ) : (
            <Empty title="No messages">
              What needs you is told here: a host that is lost, a job that failed, a budget that is nearly used up. Add
              a channel to have it sent by mail or to a chat.
            </Empty>
          )
        }
      </Loaded>
      <div className="wr-inbox-foot">
        <Link className="wr-link" to="/alerts" onClick={close}>
          All alerts
        </Link>
        <Link className="wr-link" to="/alerts" search={{ tab: "channels" } as never} onClick={close}>
          Channels
        </Link>
      </div>
    </>
  );
}

function Message({ message, isUnread, close }: { message: InboxMessage; isUnread: boolean; close: () => void }) {
  const tone = messageTone(message);
  return (
    <li data-unread={isUnread || undefined}>
      <span className={`wr-tone-${tone}`}>
        <Shape tone={tone} />
      </span>
      <div>
        <Link
          className="wr-link wr-underlined wr-break"
          to="/alerts/$alertId"
          params={{ alertId: message.alert_id }}
          onClick={close}
        >
          {MESSAGE_WORDS[message.kind] + plain(message.title)}
        </Link>
        {message.simulated && (
          <>
            {" "}
            <Simulated />
          </>
        )}
        <div className="wr-quiet">
          {message.kind !== "resolved" && `${severityName(message.severity)} · `}
          <When at={message.at} />
          {message.subject_count > 1 && ` · ${subjectsText(message)}`}
          {isUnread && <span className="wr-unseen">, unread</span>}
        </div>
        {message.remedy && message.kind !== "resolved" && (
          <div className="wr-break">
            <Remedy text={message.remedy} />
          </div>
        )}
      </div>
    </li>
  );
}
