// The host that would run a machine and the price, or the reasons against it, while its form is filled in.
import { Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { me as meQuery, plan as planQuery } from "../api/queries.ts";
import { Panel, ProblemNote, TYPING_MS, Waiting } from "../parts/page.tsx";
import { Simulated, TestMoney } from "../parts/state.tsx";
import { Fit } from "./Fit.tsx";
import { type Draft, toRequest } from "./request.ts";
import { clusterChange, waitText } from "./ways.ts";

/** Dimmed while it is of another choice than the form's: the quote of this one is asked for. */
export function OfBefore({ is, children }: { is: boolean; children: ReactNode }) {
  return (
    <div aria-busy={is || undefined} style={{ opacity: is ? 0.4 : 1 }}>
      {is && <span className="wr-unseen">Asking for the price of this choice…</span>}
      {children}
    </div>
  );
}

export function Quote({
  draft,
  sound,
  change,
}: {
  draft: Draft;
  sound: boolean;
  change: (part: Partial<Draft>) => void;
}) {
  const [settled] = useDebouncedValue(draft, TYPING_MS);
  const { request } = useMemo(() => toRequest(settled), [settled]);
  const me = useQuery(meQuery);
  const query = useQuery({
    ...planQuery(request),
    placeholderData: keepPreviousData,
    enabled: sound && settled === draft,
  });
  const plan = query.data;
  const isOld = settled !== draft || query.isPlaceholderData;
  return (
    <Panel
      title="Quote"
      actions={
        <>
          {draft.simulated && <Simulated />}
          <TestMoney />
        </>
      }
    >
      <Stack gap="sm">
        {query.error ? (
          <ProblemNote error={query.error} retry={() => void query.refetch()} />
        ) : sound && plan ? (
          <OfBefore is={isOld}>
            <Fit
              plan={plan}
              seconds={request.max_duration_seconds ?? null}
              currency={me.data?.balance.currency ?? ""}
              use={(changes) => change(clusterChange(changes))}
            />
            {plan.refusal && waitText(plan.refusal.is_possible, request.wait_seconds) && (
              <Text size="sm" mt="sm">
                {waitText(plan.refusal.is_possible, request.wait_seconds)}
              </Text>
            )}
          </OfBefore>
        ) : (
          sound && <Waiting />
        )}
        {!sound && (
          <Text size="sm" className="wr-quiet">
            The form is not complete yet.
          </Text>
        )}
      </Stack>
    </Panel>
  );
}
