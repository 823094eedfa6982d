// The host that would run a machine and the price, or the reasons against it, while its form is filled in.
import { Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { me as meQuery, plan as planQuery } from "../api/queries.ts";
import { Panel, ProblemNote, TYPING_MS, Waiting } from "../parts/page.tsx";
import { TestMoney } from "../parts/state.tsx";
import { Fit } from "./Fit.tsx";
import { type Draft, toRequest } from "./request.ts";
import { clusterChange } from "./ways.ts";

interface Held<T> {
  draft: T;
  /** That was shown when it was pressed; undefined: none. */
  price: string | null | undefined;
}

/**
 * Holds a press of the form around the panel while the price of what the form says is being asked. It goes on by itself
 * once the price is there, unless that is higher than the one that was shown.
 */
function useHeld<T>(draft: T, isAsked: boolean, price: string | null | undefined) {
  const panel = useRef<HTMLDivElement>(null);
  const [held, hold] = useState<Held<T> | null>(null);
  const [dearer, setDearer] = useState<T | null>(null);
  useEffect(() => {
    const form = panel.current?.closest("form");
    if (!isAsked || !form) return;
    const pressed = (event: Event) => {
      event.preventDefault();
      event.stopPropagation();
      hold({ draft, price });
    };
    form.addEventListener("submit", pressed, true);
    return () => form.removeEventListener("submit", pressed, true);
  }, [draft, isAsked, price]);
  useEffect(() => {
    if (held === null || isAsked) return;
    hold(null);
    if (held.draft !== draft) return; // changed after it was pressed
    if (price && held.price && Number(price) > Number(held.price)) setDearer(draft);
    else panel.current?.closest("form")?.requestSubmit();
  }, [held, draft, isAsked, price]);
  return { panel, isDearer: dearer === draft };
}

interface QuotePanelProps<T> {
  draft: T;
  /** The price of the draft is on its way; what is shown is of an earlier one. */
  isAsked: boolean;
  price: string | null | undefined;
  children: ReactNode;
}

/** A quote, dimmed while it is asked anew; the form around waits for it. */
export function QuotePanel<T>({ draft, isAsked, price, children }: QuotePanelProps<T>) {
  const { panel, isDearer } = useHeld(draft, isAsked, price);
  const isOld = isAsked && price !== undefined;
  return (
    <div ref={panel}>
      <Panel
        title="Quote"
        actions={
          <Group gap="xs">
            {isOld && (
              <Text size="xs" className="wr-quiet">
                asking anew…
              </Text>
            )}
            <TestMoney />
          </Group>
        }
      >
        <div aria-busy={isAsked} style={isOld ? { opacity: 0.4 } : undefined}>
          {children}
        </div>
        {isDearer && (
          <Text size="sm" role="alert" className="wr-tone-bad" mt="sm">
            It costs more than what was shown. Press again to start it at this price.
          </Text>
        )}
      </Panel>
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
  const isAsked = sound && !query.error && (settled !== draft || query.isPlaceholderData || !plan);
  return (
    <QuotePanel draft={draft} isAsked={isAsked} price={plan?.price_per_hour}>
      <Stack gap="sm">
        {query.error ? (
          <ProblemNote error={query.error} retry={() => void query.refetch()} />
        ) : plan ? (
          <Fit
            plan={plan}
            seconds={request.max_duration_seconds ?? null}
            currency={me.data?.balance.currency ?? ""}
            use={(changes) => change(clusterChange(changes))}
          />
        ) : (
          sound && <Waiting />
        )}
        {!sound && (
          <Text size="sm" className="wr-quiet">
            The form is not complete yet.
          </Text>
        )}
      </Stack>
    </QuotePanel>
  );
}
