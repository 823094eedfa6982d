// The list of commands to hosts, and the page of one: its steps, its result, its events.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { command as commandQuery, host as hostQuery } from "../api/queries.ts";
import type { CommandRow } from "../api/types.ts";
import { percent, plain, took, words } from "../parts/format.ts";
import { ObjectHead } from "../parts/ObjectHead.tsx";
import { Facts, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Subject } from "../parts/Subject.tsx";
import { Shape, When } from "../parts/state.tsx";
import { toneOf } from "../parts/states.ts";
import { CommandList, Result } from "./CommandList.tsx";
import { EventList } from "./EventList.tsx";

export function CommandsPage() {
  return (
    <div className="wr-page">
      <PageHead title="Commands" />
      <Panel bare label="Commands">
        <CommandList address />
      </Panel>
    </div>
  );
}

export function CommandPage() {
  const { commandId } = useParams({ from: "/commands/$commandId" });
  const query = useQuery(commandQuery(commandId));
  return (
    <div className="wr-page">
      <Loaded query={query} lines={10}>
        {(row) => <CommandView row={row} />}
      </Loaded>
    </div>
  );
}

function CommandView({ row }: { row: CommandRow }) {
  const host = useQuery(hostQuery(row.host_id));
  return (
    <>
      <ObjectHead up={{ to: "/commands", name: "Commands" }} title={words(row.kind)} state={row.state} id={row.id} />
      {row.error && (
        <div className="wr-note wr-note-bad" style={{ marginBottom: 14 }} role="note">
          <strong>{words(row.state)}</strong>
          <span className="wr-break">{plain(row.error)}</span>
        </div>
      )}
      <div className="wr-columns">
        <div className="wr-stack">
          <Panel title="Result">
            <Result result={row.result} />
          </Panel>
          <Panel title="Events" bare>
            <EventList subject={row.id} />
          </Panel>
        </div>
        <aside className="wr-stack" aria-label="About this command">
          <Panel title="Steps">
            <Way row={row} />
          </Panel>
          <Panel title="About">
            <Facts
              rows={[
                [
                  "Host",
                  <Link key="h" className="wr-link" to="/hosts/$hostId" params={{ hostId: row.host_id }}>
                    {plain(host.data?.name ?? row.host_id)}
                  </Link>,
                ],
                ["About", <Subject key="s" id={row.subject} />],
                ...(row.done_at === null ? [["Progress", percent(row.progress)] as const] : []),
                ["Took", took(row.created_at, row.done_at)],
              ]}
            />
          </Panel>
          <Same method="GET" path={`/commands/${row.id}`} command={`windrow command show ${row.id}`} />
        </aside>
      </div>
    </>
  );
}

/** Queued, sent, the agent's own step, the end: with the time of each that is known. */
function Way({ row }: { row: CommandRow }) {
  const over = row.done_at !== null;
  const steps: readonly (readonly [string, string | null, boolean])[] = [
    ["Queued", row.created_at, true],
    // Nothing of what is over is still to come.
    ...(over && row.sent_at === null ? [] : [["Sent to the host", row.sent_at, row.sent_at !== null] as const]),
    ...(row.step && !over ? [[words(row.step), null, row.sent_at !== null] as const] : []),
    [over ? words(row.state) : "Done", row.done_at, over],
  ];
  const last = steps.reduce((latest, [, , came], index) => (came ? index : latest), 0);
  return (
    <ol className="wr-steps" aria-label="Steps">
      {steps.map(([name, at, came], index) => {
        const tone = !came
          ? "off"
          : index === steps.length - 1
            ? toneOf(row.state)
            : index === last && !over
              ? "busy"
              : "ok";
        return (
          <li key={`${index} ${name}`} aria-current={index === last && !over ? "step" : undefined}>
            <span className={`wr-state wr-tone-${tone}`}>
              <Shape tone={tone} />
            </span>
            <span className={came ? "" : "wr-quiet"}>
              {name}
              {!came && " (not yet)"}
            </span>
            <span className="wr-quiet" style={{ fontSize: 12 }}>
              <When at={at} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
