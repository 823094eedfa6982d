// Below the cards of the first step: the few fields of what runs, with what was saved or used before to choose from.
import { Button, Checkbox, Collapse, Group, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import {
  clusters as clustersQuery,
  jobs as jobsQuery,
  me as meQuery,
  templates as templatesQuery,
} from "../api/queries.ts";
import { FolderPicker } from "../folders/FolderPicker.tsx";
import type { Parcel } from "../folders/reading.ts";
import { plain } from "../parts/format.ts";
import { SecretUses } from "../secrets/SecretUses.tsx";
import { Mounts } from "../volumes/Mounts.tsx";
import { lines } from "../volumes/volumes.ts";
import { type Choice, imageOf, recipeOf } from "./choice.ts";
import type { Place } from "./places.ts";
import { keyName, usedBefore } from "./saved.ts";

/** Errors of fields, by the names that all three forms have. */
export type Faults = Partial<Record<string, string>>;

interface Props {
  choice: Choice;
  change: (part: Partial<Choice>) => void;
  faults: Faults;
  place: Place | null;
  parcel: Parcel | null;
  choose: (parcel: Parcel | null) => void;
}

const MONO = { input: { fontFamily: "var(--mantine-font-family-monospace)" } };

export function Details({ choice, change, faults, place, parcel, choose }: Props) {
  const [more, { toggle }] = useDisclosure(false);
  const me = useQuery(meQuery).data;
  const machines = useQuery(clustersQuery.first).data?.items ?? [];
  const jobs = useQuery(jobsQuery.first).data?.items ?? [];
  const templates = useQuery(templatesQuery).data ?? [];
  const { images, keys } = usedBefore(me?.account.id, machines, jobs, templates);
  const { what } = choice;
  const text = (name: "name" | "command" | "packages" | "model" | "env") => ({
    value: choice[name],
    error: faults[name],
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <Stack gap="sm">
      {recipeOf(what).image && place?.isOwnersOnly && (
        <Text size="sm" className="wr-quiet">
          This host runs no containers, so that {recipeOf(what).name} uses what is installed on it. Python packages can
          be added below.
        </Text>
      )}
      {place?.isSimulated && what !== "job" && (
        <Text size="sm" className="wr-quiet">
          Simulated: nothing really runs there, so that it has no terminal, no SSH and no Jupyter.
        </Text>
      )}
      {what === "job" && <FolderPicker parcel={parcel} change={choose} />}
      {what === "vllm" && (
        <TextInput label="Model" description="Its name at Hugging Face." spellCheck={false} {...text("model")} />
      )}
      {(what === "job" || what === "image") && (
        <Textarea
          label="Command"
          description="Runs without a shell; for pipes or variables write sh -c '…'."
          placeholder="python train.py"
          autosize
          minRows={1}
          maxRows={8}
          styles={MONO}
          spellCheck={false}
          {...text("command")}
        />
      )}
      {what === "ssh" && <SshKeys {...{ choice, change, keys }} error={faults.sshKeys} />}
      {what === "image" && <ImageField {...{ choice, change, faults, place, images }} />}
      <Group>
        <Button variant="default" size="compact-sm" onClick={toggle} aria-expanded={more}>
          {more ? "Fewer options" : "Name, image, secrets and volumes"}
        </Button>
      </Group>
      <Collapse expanded={more}>
        <Stack gap="sm">
          <TextInput label="Name" placeholder="(generated)" {...text("name")} />
          {what !== "image" && <ImageField {...{ choice, change, faults, place, images }} />}
          {what === "job" && (
            <Textarea
              label="Python packages"
              description="Installed before the command, a line each."
              autosize
              minRows={1}
              maxRows={6}
              styles={MONO}
              {...text("packages")}
            />
          )}
          <SecretUses value={choice.secrets} change={(secrets) => change({ secrets })} error={faults.secrets} />
          <Textarea
            label="Environment"
            placeholder={"NAME=value\nOTHER=value"}
            autosize
            minRows={1}
            maxRows={8}
            styles={MONO}
            {...text("env")}
          />
          <Mounts
            value={choice.volumes}
            change={(volumes) => change({ volumes })}
            hosts={what === "ray" ? choice.hosts : 1}
            error={faults.volumes}
          />
        </Stack>
      </Collapse>
    </Stack>
  );
}

type ImageProps = Pick<Props, "choice" | "change" | "faults" | "place"> & { images: readonly string[] };

function ImageField({ choice, change, faults, place, images }: ImageProps) {
  return (
    <Stack gap={6}>
      <TextInput
        label="Container image"
        description="Empty: the host's own."
        placeholder="the host's own"
        spellCheck={false}
        value={imageOf(choice, place)}
        onChange={(event) => change({ image: event.currentTarget.value })}
        error={faults.image}
      />
      <UsedBefore what="image" all={images.map((image) => [image, image])} choose={(image) => change({ image })} />
    </Stack>
  );
}

interface UsedProps {
  what: string;
  all: readonly (readonly [name: string, value: string])[];
  choose: (value: string) => void;
}

function UsedBefore({ what, all, choose }: UsedProps) {
  if (all.length === 0) return null;
  return (
    <Group gap={6} role="group" aria-label={`Used before: ${what}s`}>
      {all.map(([name, value]) => (
        <Button
          key={value}
          size="compact-xs"
          variant="default"
          onClick={() => choose(value)}
          aria-label={`Use the ${what} ${plain(name)}`}
        >
          {plain(name)}
        </Button>
      ))}
    </Group>
  );
}

type KeysProps = Pick<Props, "choice" | "change"> & { error: string | undefined; keys: readonly string[] };

function SshKeys({ choice, change, error, keys }: KeysProps) {
  const { sshKeys: value, isWithoutSsh } = choice;
  const unused = keys.filter((key) => !lines(value).includes(key));
  return (
    <Stack gap={6}>
      <Textarea
        label="SSH keys"
        description="Public keys, a line each, as in ~/.ssh/id_ed25519.pub: who has one logs in."
        placeholder="ssh-ed25519 AAAA… you@home"
        autosize
        minRows={1}
        maxRows={4}
        styles={MONO}
        spellCheck={false}
        value={value}
        error={error}
        disabled={isWithoutSsh}
        onChange={(event) => change({ sshKeys: event.currentTarget.value })}
      />
      <UsedBefore
        what="key"
        all={unused.map((key) => [keyName(key), key])}
        choose={(key) => change({ sshKeys: [...lines(value), key].join("\n"), isWithoutSsh: false })}
      />
      <Checkbox
        label="No SSH: only the terminal in the browser"
        checked={isWithoutSsh}
        onChange={(event) => change({ isWithoutSsh: event.currentTarget.checked })}
      />
    </Stack>
  );
}
