// The login of a private image's registry, as a form asks for it.
import { PasswordInput, SimpleGrid, TextInput } from "@mantine/core";
import type { LoginDraft } from "../request.ts";

interface Props {
  draft: LoginDraft;
  change: (part: Partial<LoginDraft>) => void;
  faults: Partial<Record<keyof LoginDraft, string>>;
}

export function RegistryLogin({ draft, change, faults }: Props) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <TextInput label="Registry user" description="Of a private image; only its host can read the login." placeholder="none" autoComplete="off" value={draft.registryUser} error={faults.registryUser} onChange={(event) => change({ registryUser: event.currentTarget.value })} />
      <PasswordInput label="Registry password" description="Or a token; it is never shown again." placeholder="none" autoComplete="new-password" value={draft.registryPassword} error={faults.registryPassword} onChange={(event) => change({ registryPassword: event.currentTarget.value })} />
    </SimpleGrid>
  );
}
