// The page of one alert: how it is, what to do, what is affected, who did what, and where it was sent.
import { Button, Group, Text, Textarea } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { alert as alertQuery, deliveries as deliveriesQuery, me as meQuery } from "../api/queries.ts";
import type { WholeAlert } from "../api/types.ts";
import { count, plain, took, words } from "../parts/format.ts";
import { ObjectHead } from "../parts/ObjectHead.tsx";
import { Empty, Facts, known, Loaded, Panel } from "../parts/page.tsx";
import { Remedy } from "../parts/Remedy.tsx";
import { Actor, Subject } from "../parts/Subject.tsx";
import { Shape, State, When } from "../parts/state.tsx";
import type { Tone } from "../parts/states.ts";
import { moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { AlertActs, Assign, useAlertAct } from "./AlertActs.tsx";
import { hasPage, mayAct, SEVERITY_TONES, STATE_TONES, severityName, silencedBy, stateWords } from "./alerts.ts";
import { DeliveryTable } from "./Deliveries.tsx";
import { useNames } from "./names.ts";

export function AlertPage() {
  const { alertId } = useParams({ from: "/alerts/$alertId" });
  const query = useQuery(alertQuery(alertId));
  return (
    <div className="wr-page">
      <Loaded query={query} lines={10}>
        {(alert) => <Shown alert={alert} />}
      </Loaded>
    </div>
  );
}

function Shown({ alert }: { alert: WholeAlert }) {
  return (
    <>
      <ObjectHead
        up={{ to: "/alerts", name: "Alerts" }}
        title={alert.title}
        state={alert.state}
        tone={STATE_TONES[alert.state]}
        simulated={alert.simulated}
        id={alert.id}
        actions={<AlertActs alert={alert} />}
      />
      <div className="wr-columns">
        <div className="wr-stack">
          <Panel title="What is wrong">
            <Text size="sm" className="wr-break">
              {plain(alert.text || alert.title)}
            </Text>
            {alert.remedy && alert.state !== "resolved" && (
              <Text size="sm" mt="sm" className="wr-break">
                <strong>What to do:</strong> <Remedy text={alert.remedy} />
              </Text>
            )}
          </Panel>
          <Affected alert={alert} />
          <History alert={alert} />
        </div>
        <aside className="wr-stack">
          <Condition alert={alert} />
          <Sent alert={alert} />
        </aside>
      </div>
    </>
  );
}

function Condition({ alert }: { alert: WholeAlert }) {
  const names = useNames();
  const assignee = (
    <Group key="a" gap={6}>
      {alert.assignee ? plain(alert.assignee) : "Nobody"}
      <Assign alert={alert} />
    </Group>
  );
  const severity = <State key="s" state={severityName(alert.severity)} tone={SEVERITY_TONES[alert.severity]} />;
  const when = (at: string | null) => at && <When key={at} at={at} />;
  return (
    <Panel title="State">
      <Text size="sm" mb="sm">
        {alert.state === "silenced" ? <Silenced alert={alert} names={names} /> : stateWords(alert)}
      </Text>
      <Facts
        rows={known([
          ["Severity", severity],
          ["Assignee", assignee],
          ["Since", when(alert.opened_at)],
          ["Fired", when(alert.fired_at)],
          ["Acknowledged", when(alert.acknowledged_at)],
          ["By", alert.acknowledged_by && <Actor key="b" actor={alert.acknowledged_by} names={names} />],
          ["Resolved", when(alert.resolved_at)],
          ["Lasted", alert.resolved_at && took(alert.opened_at, alert.resolved_at)],
          ["Came back", alert.flaps > 1 ? `${count(alert.flaps)} times` : alert.flaps === 1 ? "once" : null],
          ["About", <Thing key="c" id={alert.cause} {...(alert.cause_name ? { name: alert.cause_name } : {})} />],
          [
            "Rule",
            <span key="r" title={plain(alert.rule)}>
              {plain(alert.rule_title)}
            </span>,
          ],
        ])}
      />
    </Panel>
  );
}

function Silenced({ alert, names }: { alert: WholeAlert; names: Record<string, string> }) {
  const by = silencedBy(alert);
  return (
    <>
      It is not told until <When at={alert.silenced_until} />. Silenced by{" "}
      {by ? (
        <Actor actor={by.actor} names={names} />
      ) : (
        <Link className="wr-link wr-underlined" to="/alerts" search={{ tab: "silences" } as never}>
          a silence of its rule or of what it is about
        </Link>
      )}
      {by?.text && `: ${plain(by.text)}`}
    </>
  );
}

/** One thing, with the way to its page where it has one. */
function Thing({ id, name }: { id: string; name?: string }) {
  if (hasPage(id)) return <Subject id={id} name={name} />;
  const text = plain(name ?? id);
  const to = id.startsWith("access_") ? "/regions" : id.startsWith("volume_") ? "/volumes" : null;
  return to ? (
    <Link className="wr-link" to={to} title={plain(id)}>
      {text}
    </Link>
  ) : (
    <span className="wr-break" title={plain(id)}>
      {text}
    </span>
  );
}

type Row = WholeAlert["affected"][number];
const AFFECTED: readonly Column<Row>[] = [
  { id: "name", name: "Name", value: (row) => row.name, cell: (row) => <Thing id={row.id} name={row.name} /> },
  moment("since", "Since", (row) => row.since),
  {
    id: "state",
    name: "State",
    value: (row) => (row.cleared_at ? "resolved" : row.held ? `now: ${row.rule_title}, told with this alert` : "now"),
    cell: (row) => <Cleared row={row} />,
  },
];

function Cleared({ row }: { row: Row }) {
  if (row.cleared_at)
    return (
      <>
        resolved <When at={row.cleared_at} />
      </>
    );
  return row.held ? <>now: {plain(row.rule_title)}, told with this alert</> : "now";
}

function Affected({ alert }: { alert: WholeAlert }) {
  return (
    <Panel title={`Affected (${count(alert.subject_count)} now)`} label="Affected" bare>
      <DataTable
        of={["affected thing", "affected things"]}
        columns={AFFECTED}
        id={(row) => `${row.id} ${row.rule}`}
        rows={alert.affected}
        bare={alert.affected.length < 12}
        empty={<Empty title="Nothing is affected any more" />}
      />
    </Panel>
  );
}

const TONES: Record<string, Tone> = {
  ...{ firing: "bad", escalated: "bad", resolved: "ok", acknowledged: "busy", assigned: "busy" },
};
const SAID: Record<string, string> = {
  firing: "Fired",
  escalated: "Sent again",
  resolved: "Resolved",
  comment: "Comment",
};

function History({ alert }: { alert: WholeAlert }) {
  const names = useNames();
  const roles = useQuery(meQuery).data?.roles ?? [];
  return (
    <Panel title="History" bare>
      {alert.notes.length ? (
        <ol className="wr-lines" data-testid="history">
          {alert.notes.map((note) => (
            <li key={`${note.at} ${note.kind} ${note.text}`} style={{ alignItems: "baseline" }}>
              <span className={`wr-tone-${TONES[note.kind] ?? "off"}`}>
                <Shape tone={TONES[note.kind] ?? "off"} />
              </span>
              <span className="wr-break">
                <strong>{SAID[note.kind] ?? words(note.kind)}</strong>{" "}
                <span className="wr-quiet">
                  <When at={note.at} />
                  {note.actor !== "master" && (
                    <>
                      , <Actor actor={note.actor} names={names} />
                    </>
                  )}
                </span>
                {note.text && <div style={{ whiteSpace: "pre-wrap" }}>{plainLines(note.text)}</div>}
              </span>
            </li>
          ))}
        </ol>
      ) : (
        <Empty title="Nothing was said or done yet">Comments, and what people do with this alert, stand here.</Empty>
      )}
      {mayAct(roles) && <CommentBox alert={alert} />}
    </Panel>
  );
}

const plainLines = (text: string): string => text.split("\n").map(plain).join("\n");

function CommentBox({ alert }: { alert: WholeAlert }) {
  const [text, setText] = useState("");
  const act = useAlertAct(alert, "comment", "");
  const send = () => act.mutate({ text: text.trim() }, { onSuccess: () => setText("") });
  return (
    <div className="wr-panel-body">
      <Textarea
        aria-label="Comment"
        placeholder="What you found, and what you did"
        autosize
        minRows={2}
        maxLength={2000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Group justify="flex-end" mt="xs">
        <Button variant="default" disabled={!text.trim()} loading={act.isPending} onClick={send}>
          Add comment
        </Button>
      </Group>
    </div>
  );
}

function Sent({ alert }: { alert: WholeAlert }) {
  return (
    <Panel title="Sent to" bare>
      <DeliveryTable
        list={deliveriesQuery({ alert: alert.id })}
        isShort
        empty={
          <Empty title="Sent to no channel">
            Its messages are in the inbox under the bell. To have such alerts sent,{" "}
            <Link className="wr-link wr-underlined" to="/alerts" search={{ tab: "channels" } as never}>
              add a channel
            </Link>
            .
          </Empty>
        }
      />
    </Panel>
  );
}
