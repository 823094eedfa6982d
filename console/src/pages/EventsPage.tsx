// All that happened in this installation, or to one thing, live; the search is in the address.
import { Button, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { plain } from "../format.ts";
import { EventList, type EventSearch } from "../parts/EventList.tsx";
import { PageHead, Panel } from "../parts/page.tsx";

export function EventsPage() {
  const words = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const subject = words.subject;
  const search: EventSearch = { q: words.q ?? "", kind: words.kind ?? "" };
  const go = (next: Record<string, string | undefined>) =>
    void navigate({ to: "/events", search: next as never, replace: true });
  return (
    <div className="wr-page">
      <PageHead
        title="Events"
        beside={
          subject && (
            <Text size="sm" className="wr-quiet wr-break">
              about <span className="wr-mono">{plain(subject)}</span>
            </Text>
          )
        }
        actions={
          subject && (
            <Button variant="default" onClick={() => go({ q: search.q, kind: search.kind })}>
              All events
            </Button>
          )
        }
      />
      <Panel bare label="Events">
        <EventList
          key={subject ?? ""}
          subject={subject}
          follow
          search={search}
          onSearch={(next) => go({ subject, ...next })}
        />
      </Panel>
    </div>
  );
}
