// Whether a machine may be bought where this market has no room: at which backend, how it is chosen, spot or not.
import { Checkbox, NativeSelect, SimpleGrid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { usableBackends } from "../api/queries.ts";
import type { UsableBackend } from "../api/types.ts";
import { amount, plain } from "../parts/format.ts";
import { ANY_BACKEND, type PlaceDraft } from "./place.ts";

interface Props {
  draft: PlaceDraft;
  change: (part: Partial<PlaceDraft>) => void;
  error: string | undefined;
}

const ORDERS = [
  { value: "", label: "This market first" },
  { value: "cost", label: "The lowest price" },
  { value: "speed", label: "The earliest start" },
];

export function ElsewhereFields({ draft, change, error }: Props) {
  const found = useQuery(usableBackends).data;
  if (!found) return null;
  if (found.length === 0 && !draft.backend)
    return (
      <Text size="sm" className="wr-quiet">
        It runs in this market only. An operator can let this project buy machines elsewhere:{" "}
        <span className="wr-mono">windrow backend allow NAME PROJECT</span>
      </Text>
    );
  const known = found.some((one) => one.name === draft.backend) || draft.backend === ANY_BACKEND || !draft.backend;
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <NativeSelect
          label="Where"
          data={[
            { value: "", label: "This market only" },
            { value: ANY_BACKEND, label: "Also bought machines, at any backend" },
            ...found.map(({ name, title }) => ({
              value: name,
              label: `Also bought at ${plain(name)}: ${plain(title)}`,
            })),
            ...(known ? [] : [{ value: draft.backend, label: plain(draft.backend) }]),
          ]}
          value={draft.backend}
          error={error}
          onChange={(event) => change({ backend: event.currentTarget.value })}
        />
        {draft.backend && (
          <NativeSelect
            label="Choose by"
            data={ORDERS}
            value={draft.optimize}
            onChange={(event) => change({ optimize: event.currentTarget.value as PlaceDraft["optimize"] })}
          />
        )}
      </SimpleGrid>
      {draft.backend && (
        <Checkbox
          label="Spot first"
          description="Cheaper, and may be taken back at any time: the work then moves on with its last checkpoint."
          checked={draft.spot}
          onChange={(event) => change({ spot: event.currentTarget.checked })}
        />
      )}
      {draft.backend && <Limits found={found.filter((one) => [one.name, ANY_BACKEND].includes(draft.backend))} />}
    </>
  );
}

/** What this project may spend there, and how far each backend was tried. */
function Limits({ found }: { found: readonly UsableBackend[] }) {
  return (
    <div>
      {found.map((one) => (
        <Text key={one.name} size="sm" className="wr-quiet">
          {plain(one.name)}: at most {spending(one)}. {plain(one.level_text)}
        </Text>
      ))}
    </div>
  );
}

const spending = ({ per_day, in_all, currency }: UsableBackend): string =>
  [
    per_day && `${amount(per_day, 2)} ${plain(currency)} a day`,
    in_all && `${amount(in_all, 2)} ${plain(currency)} in all`,
  ]
    .filter(Boolean)
    .join(", ");
