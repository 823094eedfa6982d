// Where hosts of a cluster or a job have to be, and how good.
import { Checkbox, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { Panel } from "../parts/page.tsx";
import { ElsewhereFields } from "./ElsewhereFields.tsx";
import type { PlaceDraft, PlaceFaults, PlaceText } from "./place.ts";

interface Props {
  draft: PlaceDraft;
  change: (part: Partial<PlaceDraft>) => void;
  faults: PlaceFaults;
}

export function PlaceFields({ draft, change, faults }: Props) {
  const field = (name: PlaceText) => ({
    value: draft[name],
    error: faults[name],
    placeholder: "any",
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <Panel title="Place">
      <Stack gap="sm">
        <ElsewhereFields draft={draft} change={change} error={faults.backend} />
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
          <TextInput label="Region" {...field("region")} />
          <TextInput label="Near" description="A region or a volume; eu-1:20 is 20 ms." {...field("near")} />
          <TextInput label="Country" description="As owners say, such as DE." {...field("country")} />
          <TextInput label="Provider" description="A project." {...field("provider_id")} />
          <TextInput label="Labels" description="Hosts with all of these." {...field("labels")} />
          <TextInput label="Bandwidth from (Mbit/s)" {...field("min_bandwidth_mbps")} />
          <TextInput label="Reliability from (%)" {...field("min_reliability_percent")} />
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
