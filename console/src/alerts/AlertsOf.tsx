// The open alerts about one thing, on its page.
import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { alertsOf } from "../api/queries.ts";
import { plain } from "../parts/format.ts";
import { Shape, State, When } from "../parts/state.tsx";
import { SEVERITY_TONES, STATE_TONES, severityName } from "./alerts.ts";

/** cause: the id that groups them, as of a host or of a job's submission. */
export function AlertsOf({ cause }: { cause: string }) {
  const open = useQuery(alertsOf(cause)).data?.items ?? [];
  if (open.length === 0) return null;
  return (
    <Stack gap={6} mb={12} component="section" aria-label="Open alerts">
      {open.map(({ id, severity, state, title, opened_at }) => (
        <div key={id} className={`wr-note ${severity === "page" && state === "firing" ? "wr-note-bad" : ""}`}>
          <span className={`wr-tone-${SEVERITY_TONES[severity]}`}>
            <Shape tone={SEVERITY_TONES[severity]} />
          </span>
          <Link className="wr-link wr-break" to="/alerts/$alertId" params={{ alertId: id }}>
            Alert: {plain(title)}
          </Link>
          <span className="wr-quiet">
            {severityName(severity)} · <When at={opened_at} />
          </span>
          {state !== "firing" && <State state={state} tone={STATE_TONES[state]} />}
        </div>
      ))}
    </Stack>
  );
}
