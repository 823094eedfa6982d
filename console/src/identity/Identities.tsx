// The identities at providers that the own user is linked with.
import { Button, NativeSelect, PasswordInput, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { IDENTITIES, remove } from "../api/client.ts";
import { identities as identitiesQuery, signInProviders, user as userQuery } from "../api/queries.ts";
import type { LinkedIdentity } from "../api/types.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Empty, Panel, ProblemNote } from "../parts/page.tsx";
import { actions, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { leaveToLink } from "./providerFlow.ts";

const COLUMNS: readonly Column<LinkedIdentity>[] = [
  { id: "provider", name: "Provider", value: (row) => row.provider },
  { id: "label", name: "Known there as", value: (row) => plain(row.label) },
  moment("created_at", "Linked", (row) => row.created_at),
  moment("last_used_at", "Last used", (row) => row.last_used_at),
  actions((row) => <Unlink identity={row} />),
];

/** Not shown while there is no provider. */
export function Identities() {
  const known = useQuery(signInProviders).data ?? [];
  const query = useQuery({ ...identitiesQuery, enabled: known.length > 0 });
  const [asked, ask] = useState(false);
  const free = known.map(({ name }) => name).filter((name) => !query.data?.some((one) => one.provider === name));
  if (known.length === 0) return null;
  return (
    <Panel
      title="Identity providers"
      bare
      actions={
        <Button variant="default" onClick={() => ask(true)} disabled={free.length === 0}>
          Link an identity
        </Button>
      }
    >
      <DataTable
        of={["identity", "identities"]}
        columns={COLUMNS}
        id={(row) => row.provider}
        rows={query.data}
        query={query}
        bare
        empty={
          <Empty title="No identity is linked">
            With one you sign in by {known.map(({ name }) => name).join(", ")}.
          </Empty>
        }
      />
      {asked && <LinkIdentity names={free} close={() => ask(false)} />}
    </Panel>
  );
}

function LinkIdentity({ names, close }: { names: readonly string[]; close: () => void }) {
  const hasPassword = useQuery(userQuery).data?.has_password ?? true;
  const [name, setName] = useState(names[0] ?? "");
  const [password, setPassword] = useState("");
  const act = useMutation({ mutationFn: () => leaveToLink(name, password), gcTime: 0 });
  const isReady = name !== "" && (!hasPassword || password !== "");
  return (
    <FormDialog title="Link an identity" close={close} act={act} ready={isReady} submit="Go to the provider">
      <Text size="sm">You sign in there, and come back here. From then on that identity opens this account.</Text>
      <NativeSelect
        label="Provider"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data={[...names]}
      />
      {hasPassword && (
        <PasswordInput
          label="Present password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          data-autofocus
        />
      )}
    </FormDialog>
  );
}

function Unlink({ identity }: { identity: LinkedIdentity }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: () => remove(`${IDENTITIES}/${encodeURIComponent(identity.provider)}`),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: identitiesQuery.queryKey });
      notifications.show({ message: `${identity.provider} is unlinked` });
    },
  });
  return (
    <>
      <Button
        variant="subtle"
        color="red"
        size="compact-sm"
        loading={act.isPending}
        onClick={() => act.mutate()}
        aria-label={`Unlink: ${identity.provider}`}
      >
        Unlink
      </Button>
      {act.error && <ProblemNote error={act.error} />}
    </>
  );
}
