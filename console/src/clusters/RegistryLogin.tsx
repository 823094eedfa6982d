// The fields for the login of a private image's registry.
import { PasswordInput, SimpleGrid, Text, TextInput } from "@mantine/core";
import type { Cluster } from "../api/types.ts";
import type { LoginDraft } from "./request.ts";

interface Props {
  draft: LoginDraft;
  change: (part: Partial<LoginDraft>) => void;
  faults: Partial<Record<keyof LoginDraft, string>>;
}

export function RegistryLogin({ draft, change, faults }: Props) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <TextInput
        label="Registry user"
        description="Of a private image; only its host can read the login."
        placeholder="none"
        autoComplete="off"
        value={draft.registryUser}
        error={faults.registryUser}
        onChange={(event) => change({ registryUser: event.currentTarget.value })}
      />
      <PasswordInput
        label="Registry password"
        description="Or a token; it is never shown again."
        placeholder="none"
        autoComplete="new-password"
        value={draft.registryPassword}
        error={faults.registryPassword}
        onChange={(event) => change({ registryPassword: event.currentTarget.value })}
      />
    </SimpleGrid>
  );
}

/** The same of a cluster that was made before: where new hosts pull its image. */
export function LoginAgain({
  cluster,
  draft,
  setDraft,
  faults,
}: {
  cluster: Cluster;
  draft: LoginDraft;
  setDraft: (draft: LoginDraft) => void;
  faults: Props["faults"];
}) {
  return (
    <>
      {cluster.needs_login && (
        <Text size="sm">Its image was pulled with a registry&apos;s login, which is kept nowhere: give it again.</Text>
      )}
      {cluster.request.image !== null && (
        <RegistryLogin draft={draft} change={(part) => setDraft({ ...draft, ...part })} faults={faults} />
      )}
    </>
  );
}
