// The page of alerts in tabs: open alerts, history, rules, silences, channels.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { alerts as alertsQuery, me as meQuery } from "../api/queries.ts";
import type { Alert } from "../api/types.ts";
import { took } from "../parts/format.ts";
import { Empty, PageHead, Panel } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Tabbed } from "../parts/Tabbed.tsx";
import { actions, identity, moment, Named, simulated } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import { AlertActs } from "./AlertActs.tsx";
import { mayAct, SEVERITY_TONES, STATE_TONES, severityName, subjectsText } from "./alerts.ts";
import { Channels } from "./Channels.tsx";
import { Maintenance } from "./Maintenance.tsx";
import { Rules } from "./Rules.tsx";
import { SilencedAlerts, Silences } from "./Silences.tsx";

export function AlertsPage() {
  return (
    <div className="wr-page">
      <Tabbed
        head={<PageHead title="Alerts" />}
        tabs={[
          { value: "open", name: "Open", content: <Open /> },
          { value: "history", name: "History", content: <Past /> },
          { value: "rules", name: "Rules", content: <Rules /> },
          { value: "silences", name: "Silences", content: <Quiet /> },
          { value: "channels", name: "Channels", content: <Channels /> },
        ]}
      />
    </div>
  );
}

/** What is not told: silences, and maintenance. */
function Quiet() {
  return (
    <div className="wr-stack">
      <Silences />
      <SilencedAlerts />
      <Maintenance />
    </div>
  );
}

const WHAT: readonly Column<Alert>[] = [
  {
    id: "severity",
    name: "Severity",
    width: 110,
    value: (row) => row.severity,
    facet: true,
    facetName: severityName,
    cell: (row) => <State state={severityName(row.severity)} tone={SEVERITY_TONES[row.severity]} />,
  },
  {
    id: "title",
    name: "Alert",
    value: (row) => row.title,
    cell: (row) => (
      <Named isSimulated={row.simulated}>
        <Link className="wr-link wr-break" to="/alerts/$alertId" params={{ alertId: row.id }}>
          <span className="wr-name">{row.title}</span>
        </Link>
      </Named>
    ),
  },
  { id: "subjects", name: "Affected", value: subjectsText },
];

const MORE: readonly Column<Alert>[] = [
  { id: "assignee", name: "Assignee", value: (row) => row.assignee, facet: (row) => row.assignee ?? "Nobody" },
  { id: "rule", name: "Rule", value: (row) => row.rule, facet: true, optional: true },
  { id: "flaps", name: "Came back", value: (row) => row.flaps, number: true, optional: true },
  simulated((row) => row.simulated),
  identity((row) => row.id, { optional: true }),
];

const openColumns = (acts: boolean): readonly Column<Alert>[] => [
  ...WHAT,
  { ...moment<Alert>("since", "Since", (row) => row.opened_at), width: 96 },
  {
    id: "state",
    name: "State",
    width: 130,
    value: (row) => row.state,
    facet: true,
    cell: (row) => <State state={row.state} tone={STATE_TONES[row.state]} />,
  },
  ...MORE,
  ...(acts ? [actions<Alert>((row) => <AlertActs alert={row} isSmall />)] : []),
];

const PAST_COLUMNS: readonly Column<Alert>[] = [
  ...WHAT,
  moment("resolved", "Resolved", (row) => row.resolved_at),
  { id: "lasted", name: "Lasted", value: (row) => took(row.opened_at, row.resolved_at) },
  ...MORE,
];

function Open() {
  const roles = useQuery(meQuery).data?.roles;
  const columns = useMemo(() => openColumns(mayAct(roles ?? [])), [roles]);
  const list = usePaged(alertsQuery("open"), (row) => row.id);
  return (
    <Panel label="Open alerts" bare>
      <DataTable
        of={["alert", "alerts"]}
        columns={columns}
        {...list}
        address
        empty={
          <Empty
            title="No open alerts"
            command="windrow alert rule add hot --metric gpu_temperature_celsius --above 80 --for 5m"
          >
            Nothing needs you now. Built-in rules watch hosts, GPUs, jobs and money. Add one of your own under Rules, or
            by:
          </Empty>
        }
      />
    </Panel>
  );
}

function Past() {
  const list = usePaged(alertsQuery("resolved"), (row) => row.id);
  return (
    <Panel label="Alerts that are over" bare>
      <DataTable
        of={["past alert", "past alerts"]}
        columns={PAST_COLUMNS}
        {...list}
        address
        empty={
          <Empty title="No alert is over yet" command="windrow alert ls --state all">
            An alert is kept here once what it told of has been gone for a while.
          </Empty>
        }
      />
    </Panel>
  );
}
