// The part of the forms of a machine and of a job that says in which image it runs, with what of the project.
import { NativeSelect, SimpleGrid, Stack, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { Panel } from "../parts/page.tsx";
import { SecretUses } from "../secrets/SecretUses.tsx";
import { Mounts } from "../volumes/Mounts.tsx";
import { RegistryLogin } from "./RegistryLogin.tsx";
import type { Draft } from "./request.ts";

type TextField = "image" | "runtime" | "entrypoint" | "env";
type ImageDraft = Pick<Draft, TextField | "registryUser" | "registryPassword" | "volumes" | "secrets">;

interface Props {
  draft: ImageDraft;
  change: (part: Partial<ImageDraft>) => void;
  faults: Partial<Record<keyof ImageDraft, string>>;
  hosts: number;
  /** Below the login of the image's registry. */
  children?: ReactNode;
}

export function ImagePanel({ draft, change, faults, hosts, children }: Props) {
  const text = (name: TextField) => ({
    value: draft[name],
    error: faults[name],
    spellCheck: false,
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <Panel title="Image and storage">
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm" style={{ alignItems: "end" }}>
          <TextInput
            label="Container image"
            description="Empty: your own host runs the command directly; other hosts use their default image."
            placeholder="none"
            {...text("image")}
          />
          <NativeSelect
            label="Runtime"
            description="Processes run on your own hosts only."
            data={[
              { value: "", label: "whichever fits" },
              { value: "process", label: "process" },
              { value: "docker", label: "docker" },
            ]}
            {...text("runtime")}
          />
        </SimpleGrid>
        {(draft.image || draft.entrypoint) && (
          <TextInput
            label="Entrypoint"
            description="Program in place of the image's own; '' for none, so that the command runs by itself."
            placeholder="the image's own"
            {...text("entrypoint")}
          />
        )}
        {(draft.image || draft.registryUser || draft.registryPassword) && (
          <RegistryLogin draft={draft} change={change} faults={faults} />
        )}
        {children}
        <Mounts value={draft.volumes} change={(volumes) => change({ volumes })} hosts={hosts} error={faults.volumes} />
        <SecretUses value={draft.secrets} change={(secrets) => change({ secrets })} error={faults.secrets} />
        <Textarea
          label="Environment"
          placeholder={"NAME=value\nOTHER=value"}
          autosize
          minRows={1}
          maxRows={8}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          {...text("env")}
        />
      </Stack>
    </Panel>
  );
}
