// The list of events, live, of the whole market or about one thing.
import { Button, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMayOpen } from "../app/PageButton.tsx";
import { plain } from "../parts/format.ts";
import { PageHead, Panel } from "../parts/page.tsx";
import { EventList } from "./EventList.tsx";

export function EventsPage() {
  const { subject } = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const hearsAll = useMayOpen("/events");
  const all = () => void navigate({ to: "/events", search: (now) => ({ ...now, subject: undefined }), replace: true });
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
          subject &&
          hearsAll && (
            <Button variant="default" onClick={all}>
              All events
            </Button>
          )
        }
      />
      <Panel bare label="Events">
        <EventList key={subject ?? ""} subject={subject} follow address />
      </Panel>
    </div>
  );
}
