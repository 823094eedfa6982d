// The host that would run a job now and the price, or why it would wait.
import { Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { jobPlan } from "../api/queries.ts";
import { QuotePanel } from "../clusters/Quote.tsx";
import { Refusal } from "../clusters/Refusal.tsx";
import { jobChange } from "../clusters/ways.ts";
import { perHour, plain } from "../parts/format.ts";
import { ProblemNote, TYPING_MS, Waiting } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { type JobDraft, toJob } from "./jobs.ts";

export function JobQuote({
  draft,
  sound,
  change,
}: {
  draft: JobDraft;
  sound: boolean;
  change: (part: Partial<JobDraft>) => void;
}) {
  const [settled] = useDebouncedValue(draft, TYPING_MS);
  const { request } = useMemo(() => toJob(settled), [settled]);
  const query = useQuery({
    ...jobPlan(request),
    placeholderData: keepPreviousData,
    enabled: sound && settled === draft,
  });
  const plan = query.data;
  const isAsked = sound && !query.error && (settled !== draft || query.isPlaceholderData || !plan);
  return (
    <QuotePanel draft={draft} isAsked={isAsked} price={plan?.price_per_hour}>
      {!sound ? (
        <Text size="sm" className="wr-quiet">
          {draft.command.trim()
            ? "The form is not complete yet."
            : "Choose files, write a command or paste a program first."}
        </Text>
      ) : query.error ? (
        <ProblemNote error={query.error} retry={() => void query.refetch()} />
      ) : !plan ? (
        <Waiting />
      ) : plan.fits ? (
        <Stack gap={4}>
          <State state="Fits now" tone="ok" />
          <Text fw={650}>{perHour(plan.price_per_hour)}</Text>
          <Text size="sm">{plan.placement.map((place) => plain(place.host_name)).join(", ")}</Text>
        </Stack>
      ) : (
        <Stack gap="sm">
          {plan.refusal && !plan.refusal.is_possible ? (
            <State state="Cannot run as it is" tone="bad" />
          ) : (
            <State state="Waits in the queue" tone="busy" />
          )}
          {plan.refusal && <Refusal refusal={plan.refusal} use={(changes) => change(jobChange(changes))} />}
        </Stack>
      )}
    </QuotePanel>
  );
}
