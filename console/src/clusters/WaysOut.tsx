// Changes that would let a request fit: the market is asked about each single one.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { post } from "../api/client.ts";
import type { ClusterPlan } from "../api/types.ts";
import { perHour, plain } from "../parts/format.ts";
import type { Way } from "./ways.ts";

interface Props<D> {
  ways: readonly Way<D>[];
  path: "/clusters/plan" | "/jobs/plan";
  /** The request with one change. */
  changed: (change: Partial<D>) => unknown;
  use: (change: Partial<D>) => void;
}

/** An answer is as good as the plan beside it, which is asked again this often. */
const FRESH_MS = 15_000;

export function WaysOut<D>({ ways, path, changed, use }: Props<D>) {
  const requests = ways.map((way) => changed(way.change));
  const answers = useQueries({
    queries: requests.map((request) => ({
      queryKey: ["way out", path, request],
      queryFn: () => post<ClusterPlan>(path, request),
      staleTime: FRESH_MS,
      retry: false,
    })),
  });
  const fitting = ways.flatMap((way, index) =>
    answers[index]?.data?.fits ? [{ way, plan: answers[index].data }] : [],
  );
  if (!fitting.length)
    return answers.some((one) => one.isPending) ? null : (
      <Text size="sm">No single change makes it fit. Ask for less, or wait until a host is free.</Text>
    );
  return (
    <Stack gap={4} data-testid="ways">
      <Text size="sm" fw={600}>
        It would fit:
      </Text>
      {fitting.map(({ way, plan }) => (
        <Group key={way.words} gap="xs" justify="space-between" wrap="nowrap">
          <Text size="sm">
            {way.words}: {plain(plan.placement[0]?.host_name)}, {perHour(plan.price_per_hour)}
          </Text>
          <Button
            variant="default"
            size="compact-xs"
            style={{ flexShrink: 0 }}
            onClick={() => use(way.change)}
            aria-label={`Change the request: ${way.words}`}
          >
            Change
          </Button>
        </Group>
      ))}
    </Stack>
  );
}
