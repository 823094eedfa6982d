// What a person has to look after: open alerts, then what no alert says, with the place where each is mended.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { isSaid } from "../alerts/alerts.ts";
import { attention as attentionQuery } from "../api/queries.ts";
import type { Affected, Attention } from "../api/types.ts";
import { count, plain, sentence } from "../parts/format.ts";
import { LinkButton } from "../parts/LinkButton.tsx";
import { Loaded, Panel } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";
import { Shape, Simulated, When } from "../parts/state.tsx";
import type { Tone } from "../parts/states.ts";
import { placeOf, wayOf, wayTo } from "./home.ts";
import { AlertLines, AllAlerts, useOpenAlerts } from "./OpenAlerts.tsx";

const BAD = ["faulty", "offline", "no_relay", "relay", "quarantined"];
const toneOf = (group: Attention): Tone => (group.severity === "page" || BAD.includes(group.kind) ? "bad" : "warn");

export function Needs({ calm, own = false }: { calm: string; own?: boolean }) {
  const query = useQuery(attentionQuery(own));
  const { alerts = [], all = [] } = useOpenAlerts(own ? "provide" : "operate");
  const groups = query.data?.items.filter((group) => !isSaid(group, all)) ?? [];
  const found = alerts.length + groups.length;
  return (
    <Panel
      title={found ? `Needs attention (${found})` : "Needs attention"}
      label="Needs attention"
      actions={all.length > 0 && <AllAlerts silenced={all.length - alerts.length} />}
      bare
    >
      <Loaded query={query} lines={2}>
        {() =>
          found ? (
            <ul className="wr-needs">
              <AlertLines alerts={alerts} />
              {groups.map((group) => (
                <Need key={group.kind} group={group} />
              ))}
            </ul>
          ) : (
            <p className="wr-calm wr-tone-ok">
              <Shape tone="ok" /> <span>{calm}</span>
            </p>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Need({ group }: { group: Attention }) {
  const { label, ...way } = wayOf(group);
  const shown = group.affected;
  const more = group.count - shown.length;
  const said = [...new Set(shown.map((one) => one.detail).filter(Boolean))];
  return (
    <li>
      <span className={`wr-tone-${toneOf(group)}`}>
        <Shape tone={toneOf(group)} />
      </span>
      <div>
        <strong className={`wr-tone-${toneOf(group)}`}>{plain(group.title)}</strong>
        <span className="wr-need-of">
          {shown.map((one) => (
            <Place key={placeOf(one)} one={one} />
          ))}
          {more > 0 && <span className="wr-quiet">and {count(more)} more</span>}
        </span>
        {said.length > 0 && <div className="wr-break">{said.slice(0, 2).map(sentence).join(" · ")}</div>}
        <div className="wr-quiet wr-break">
          <Remedy text={group.remedy} />
        </div>
      </div>
      <LinkButton {...way} aria-label={`${label}: ${plain(group.title)}`}>
        {label}
      </LinkButton>
    </li>
  );
}

function Place({ one }: { one: Affected }) {
  const way = wayTo(one);
  if (!way) return null;
  const { label: _, ...to } = way;
  return (
    <span>
      <Link className="wr-link wr-underlined" {...to}>
        {placeOf(one)}
      </Link>
      {one.rented && " (rented)"}
      {one.since && (
        <span className="wr-quiet">
          {" "}
          <When at={one.since} />
        </span>
      )}
      {one.simulated && (
        <>
          {" "}
          <Simulated />
        </>
      )}
    </span>
  );
}
