// Where hosts of a cluster or a job have to be, and how good.
import { Checkbox, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { Panel } from "../parts/page.tsx";
import type { PlaceDraft } from "./place.ts";

interface Props {
  draft: PlaceDraft;
  change: (part: Partial<PlaceDraft>) => void;
  faults: Partial<Record<keyof PlaceDraft, string>>;
}

export function PlaceFields({ draft, change, faults }: Props) {
  const field = (name: Exclude<keyof PlaceDraft, "verified">) => ({
    value: draft[name],
    error: faults[name],
    placeholder: "any",
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <Panel title="Place">
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
          <TextInput label="Region" {...field("region")} />
          <TextInput label="Near a region" description="eu-1, or eu-1:20 for 20 ms." {...field("near")} />
          <TextInput label="Country" description="As owners say, such as DE." {...field("country")} />
          <TextInput label="Provider" description="A project." {...field("provider")} />
          <TextInput label="Labels" description="Hosts with all of these." {...field("labels")} />
          <TextInput label="Bandwidth from (Mbit/s)" inputMode="numeric" {...field("minBandwidth")} />
          <TextInput label="Reliability from (%)" inputMode="numeric" {...field("minReliability")} />
        </SimpleGrid>
        <Checkbox
          label="Only hosts whose hardware was checked"
          checked={draft.verified}
          onChange={(event) => change({ verified: event.currentTarget.checked })}
        />
      </Stack>
    </Panel>
  );
}
