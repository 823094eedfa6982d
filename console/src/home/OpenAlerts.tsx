// The open alerts of one home, before what else needs attention.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ofProduct, SEVERITY_TONES, STATE_TONES, subjectsText } from "../alerts/alerts.ts";
import { openAlerts } from "../api/queries.ts";
import type { Alert } from "../api/types.ts";
import type { Product } from "../app/pages.ts";
import { count, plain } from "../parts/format.ts";
import { LinkButton } from "../parts/LinkButton.tsx";
import { Panel } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";
import { Shape, Simulated, State, When } from "../parts/state.tsx";

/** So many stand on a home, the urgent first; the rest are on the page of alerts. */
const SHOWN_MOST = 8;

/**
 * Those of a product's home, the urgent first, without what is silenced; undefined: they were not read yet, or cannot
 * be. all: with those.
 */
export function useOpenAlerts(product: Product) {
  const query = useQuery(openAlerts(product !== "operate"));
  const all = query.data && ofProduct(query.data.items, product);
  const isUrgent = (one: Alert) => Number(one.severity === "page" && one.state === "firing");
  const told = all?.filter((one) => one.state !== "silenced");
  return { all, alerts: told?.toSorted((one, other) => isUrgent(other) - isUrgent(one)), isPending: query.isPending };
}

export function AlertLines({ alerts }: { alerts: readonly Alert[] }) {
  const more = alerts.length - SHOWN_MOST;
  return (
    <>
      {alerts.slice(0, SHOWN_MOST).map((one) => (
        <Line key={one.id} alert={one} />
      ))}
      {more > 0 && (
        <li>
          <Link className="wr-link" to="/alerts">
            {count(more)} more open alerts
          </Link>
        </li>
      )}
    </>
  );
}

function Line({ alert }: { alert: Alert }) {
  const tone = SEVERITY_TONES[alert.severity];
  const way = { to: "/alerts/$alertId", params: { alertId: alert.id } } as const;
  return (
    <li>
      <span className={`wr-tone-${tone}`}>
        <Shape tone={tone} />
      </span>
      <div>
        <Link className={`wr-link wr-underlined wr-break wr-tone-${tone}`} {...way}>
          <strong>{plain(alert.title)}</strong>
        </Link>
        <span className="wr-need-of">
          {alert.subject_count > 1 && <span className="wr-break">{subjectsText(alert)}</span>}
          <span className="wr-quiet">
            <When at={alert.opened_at} />
          </span>
          {alert.state !== "firing" && <State state={alert.state} tone={STATE_TONES[alert.state]} />}
          {alert.assignee && <span className="wr-quiet">{plain(alert.assignee)} looks after it</span>}
          {alert.simulated && <Simulated />}
        </span>
        <div className="wr-quiet wr-break">
          <Remedy text={alert.remedy ?? alert.text} />
        </div>
      </div>
      <LinkButton {...way} aria-label={`Open the alert: ${plain(alert.title)}`}>
        Open
      </LinkButton>
    </li>
  );
}

export const AllAlerts = ({ silenced }: { silenced: number }) => (
  <Link className="wr-link" to="/alerts">
    All alerts{silenced > 0 && ` (${count(silenced)} silenced)`}
  </Link>
);

/** On a home that has no other list of troubles: only while there are any. */
export function OpenAlerts({ product }: { product: Product }) {
  const { alerts, all = [] } = useOpenAlerts(product);
  if (!alerts?.length) return null;
  return (
    <Panel
      title={`Needs attention (${count(alerts.length)})`}
      label="Needs attention"
      actions={<AllAlerts silenced={all.length - alerts.length} />}
      bare
    >
      <ul className="wr-needs">
        <AlertLines alerts={alerts} />
      </ul>
    </Panel>
  );
}
