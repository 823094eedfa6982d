// The quote for a request: host and price, or the reasons why no host fits.
import { Group, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ClusterPlan } from "../api/types.ts";
import { amount, perHour, plain } from "../parts/format.ts";
import { Facts } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Refusal } from "./Refusal.tsx";
import type { clusterChange } from "./ways.ts";

interface Props {
  plan: ClusterPlan;
  seconds: number | null;
  currency: string;
  /** Applies the changes of a way to the form beside it. */
  use?: (changes: Parameters<typeof clusterChange>[0]) => void;
}

export function Fit({ plan, seconds, currency, use }: Props) {
  return (
    <Stack gap="sm" aria-live="polite" data-testid="plan">
      {plan.fits ? (
        <>
          <Group justify="space-between" align="baseline">
            <State state="Fits" tone="ok" />
            <Text fw={650} size="xl">
              {perHour(plan.price_per_hour)}{" "}
              <Text span size="xs" className="wr-quiet">
                {currency}
              </Text>
            </Text>
          </Group>
          <Facts
            rows={[
              ...plan.placement.map(
                (place) =>
                  [
                    plain(place.tier),
                    <Link
                      key={place.host_id}
                      className="wr-link"
                      to="/hosts/$hostId"
                      params={{ hostId: place.host_id }}
                    >
                      {plain(place.host_name)}
                    </Link>,
                  ] as const,
              ),
              ...plan.placement
                .filter((place) => place.note)
                .map((place) => ["Note", `${plain(place.host_name)}: ${plain(place.note)}`] as const),
              ...(seconds === null || plan.price_per_hour === null
                ? []
                : [
                    [
                      "In all",
                      `at most ${amount(((Number(plan.price_per_hour) * seconds) / 3600).toFixed(6))} ${currency}`,
                    ] as const,
                  ]),
              [
                "Reserved first",
                `${amount(plan.hold)} ${currency}: 15 minutes, renewed while it runs; what is not used comes back`,
              ],
              ["Balance", `${amount(plan.balance)} ${currency}`],
            ]}
          />
        </>
      ) : (
        <State state="No host fits" tone="bad" />
      )}
      {plan.refusal && <Refusal refusal={plan.refusal} {...(use ? { use } : {})} />}
    </Stack>
  );
}
