// The second step: a card for each GPU model with its price and how many are free, and how many one takes.
import { Button, Group, NumberInput, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { bytes, count, money } from "../parts/format.ts";
import { Panel } from "../parts/page.tsx";
import { Simulated } from "../parts/state.tsx";
import { Cards } from "./Cards.tsx";
import { type Choice, recipeOf } from "./choice.ts";
import type { Place } from "./places.ts";

interface Props {
  choice: Choice;
  change: (part: Partial<Choice>) => void;
  pick: (place: Place) => void;
  places: readonly Place[];
  place: Place | null;
}

/** So many cards are seen at a glance. */
const SHOWN_MOST = 6;

export function Where({ choice, change, pick, places, place }: Props) {
  const [all, showAll] = useState(false);
  const { needsGpu } = recipeOf(choice.what);
  const fits = places.filter((one) => one.isGpu || !needsGpu);
  const some = fits.filter((one, index) => all || index < SHOWN_MOST || one === place);
  const shown = place && !place.isOffered ? [...some, place] : some;
  return (
    <Panel title="2. Where">
      <Stack gap="sm">
        {fits.length === 0 && (
          <Text size="sm">
            {needsGpu ? "No host of this market has a GPU now." : "No host is connected now."} You can look again later.
          </Text>
        )}
        {fits.length > 0 && place === null && (
          <Text size="sm" role="status" className="wr-tone-warn">
            No real {needsGpu ? "GPU" : "host"} is offered now, so that nothing is chosen. Simulated hosts run nothing:
            choose one only to try how renting goes.
          </Text>
        )}
        {place && !place.isOffered && (
          <Text size="sm" role="alert" className="wr-tone-bad">
            {place.name} is no longer offered. Choose another.
          </Text>
        )}
        <Cards
          label="Hardware"
          value={place?.id ?? ""}
          change={(id) => {
            const picked = shown.find((one) => one.id === id);
            if (picked) pick(picked);
            change({ also: {} });
          }}
          cards={shown.map((one) => ({
            id: one.id,
            name: one.name,
            aside: one.isSimulated && <Simulated />,
            about: <About place={one} />,
          }))}
        />
        {place?.isOwnersOnly && (
          <Text size="sm" role="status">
            {fits.every((one) => one.isOwnersOnly || one.isSimulated)
              ? "No host of this market runs containers now: "
              : "These hosts run no containers: "}
            only their owner can start something there.
          </Text>
        )}
        {some.length < fits.length && (
          <Group>
            <Button variant="subtle" color="gray" onClick={() => showAll(true)}>
              Show {count(fits.length - some.length)} more
            </Button>
          </Group>
        )}
        <Group gap="sm">
          {place?.isGpu && <Count label="GPUs" most={64} value={choice.gpus} change={(gpus) => change({ gpus })} />}
          <Count label="CPUs" most={1024} value={choice.cpus} change={(cpus) => change({ cpus })} />
          {choice.what === "ray" && (
            <Count label="Hosts" most={64} value={choice.hosts} change={(hosts) => change({ hosts })} />
          )}
        </Group>
      </Stack>
    </Panel>
  );
}

function About({ place }: { place: Place }) {
  const unit = place.isGpu ? "GPU" : "CPU";
  if (!place.isOffered) return <span className="wr-tone-bad">No longer offered</span>;
  return (
    <>
      {place.memoryBytes !== null && <span>{bytes(place.memoryBytes)}</span>}
      <span>
        {place.hasDearer && "from "}
        {money(place.price, place.currency)} per {unit} and hour
      </span>
      <span className={place.free > 0 ? "wr-tone-ok" : "wr-tone-warn"}>
        {place.free > 0
          ? `${count(place.free)} of ${count(place.total)} ${place.isGpu ? "" : "hosts "}free`
          : "All are rented now"}
      </span>
      {place.isOwnersOnly && <span>No containers</span>}
    </>
  );
}

interface CountProps {
  label: string;
  most: number;
  value: number;
  change: (value: number) => void;
}

function Count({ label, most, value, change }: CountProps) {
  return (
    <NumberInput
      label={label}
      min={1}
      max={most}
      w={120}
      value={value}
      onChange={(typed) => change(Number(typed) || 1)}
    />
  );
}
