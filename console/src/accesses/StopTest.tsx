// The dialog that kills an Access as a test on a development market, and the result of the test.
import { Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../api/client.ts";
import { accessStop } from "../api/queries.ts";
import type { Access, StopTest } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { count, DASH, duration, percent, plain } from "../parts/format.ts";
import { Facts, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { Meter, State, When } from "../parts/state.tsx";

export function StopGuard({ access, others, close }: { access: Access; others: readonly Access[]; close: () => void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const name = plain(access.stop_name);
  const act = useMutation({
    mutationFn: () =>
      post<StopTest>(`/accesses/${encodeURIComponent(access.id)}/stop`, { confirm: access.stop_name, reason }),
    onSuccess: (begun) => {
      client.setQueryData(accessStop(access.id).queryKey, begun);
      void client.invalidateQueries({ queryKey: ["accesses"] });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Stop ${name} as a test`}
      name={access.stop_name}
      button="Stop it"
      act={act}
      close={close}
      text={
        others.length === 0
          ? "No other relay serves: this will be refused, since its agents could go nowhere."
          : "Its process is killed at once (SIGKILL), without a word to its " +
            `${count(access.agents)} agents, and starts again after a moment. They find another ` +
            "relay; open logs, shells and copies through it end. Then the log is searched for " +
            "every acknowledged sample."
      }
    >
      <TextInput
        label="Reason"
        description="Kept in the audit record."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        maxLength={300}
      />
      <Same
        method="POST"
        path={`/accesses/${access.id}/stop`}
        body={{ confirm: access.stop_name, reason }}
        command={`windrow access stop ${access.id} --yes --reason ${quoted(reason)}`}
      />
    </ConfirmByName>
  );
}

/** The latest test of an Access: how it goes, then what it came to. */
export function StopPanel({ access }: { access: Access }) {
  const query = useQuery(accessStop(access.id));
  const found = query.data;
  if (!found) return query.error ? <ProblemNote error={query.error} /> : null;
  const ratio = found.agents === 0 ? 1 : found.back / found.agents;
  return (
    <Panel title={`Test: ${plain(found.name)} was stopped`}>
      <Stack gap="sm" data-testid="stop-test">
        <div role="status">
          <Outcome found={found} />
        </div>
        <Facts
          rows={[
            ["Asked", <When key="at" at={found.asked_at} />],
            [
              "Agents back",
              <Group key="b" gap="sm">
                <span>
                  {count(found.back)} of {count(found.agents)}, {count(found.elsewhere)} of them at another relay
                </span>
                <Meter ratio={ratio} text={percent(ratio)} label="Agents that are back" />
              </Group>,
            ],
            ["Longest without connection", duration(found.away_s)],
            [
              "Longest gap in traffic",
              found.counted
                ? `${duration(found.counted.longest_gap_s)} between two batches of one agent; before the ` +
                  `kill usually ${duration(found.counted.usual_gap_s)}`
                : DASH,
            ],
            [
              "Acknowledged samples",
              found.counted
                ? `${count(found.counted.acked_samples)} in ${count(found.counted.acked_batches)} batches`
                : DASH,
            ],
            [
              "Acknowledged samples lost",
              found.counted ? (
                <strong key="l" data-testid="lost">
                  {count(found.counted.lost_samples)}
                </strong>
              ) : (
                DASH
              ),
            ],
            ["Evidence lost", found.counted ? count(found.counted.lost_evidence) : DASH],
          ]}
        />
        {found.problem && (
          <Text size="sm" role="alert">
            {plain(found.problem)}
          </Text>
        )}
        <details>
          <summary>How this was counted</summary>
          <Text size="sm" mt={4}>
            {found.how}
          </Text>
        </details>
      </Stack>
    </Panel>
  );
}

function Outcome({ found }: { found: StopTest }) {
  if (found.phase === "running") {
    return found.back < found.agents ? (
      <State state={`${found.agents - found.back} of ${found.agents} agents look for another relay`} tone="busy" />
    ) : (
      <State state="All agents are back: waiting until each has sent anew" tone="busy" />
    );
  }
  if (found.phase === "unfinished")
    return <State state="Not every agent was back and had sent anew in two minutes" tone="bad" />;
  const lost = (found.counted?.lost_samples ?? 0) + (found.counted?.lost_evidence ?? 0);
  return lost === 0 ? (
    <State state="No acknowledged sample was lost" tone="ok" />
  ) : (
    <State state="Acknowledged samples were lost" tone="bad" />
  );
}
