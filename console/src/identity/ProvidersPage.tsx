// The page of identity providers, for operators: a list; one is added, changed, tested, removed.
import { Button, Checkbox, Group, PasswordInput, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, put, remove } from "../api/client.ts";
import { me as meQuery, providers as providersQuery, signInProviders } from "../api/queries.ts";
import type { Provider, ProviderTested } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { DASH, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Command, Empty, Facts, PageHead, Panel, ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { actions, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { draftOf, groupLines, NEW_PROVIDER, type ProviderDraft, providerCommand, toProvider } from "./providers.ts";

type Kind = "change" | "test" | "remove";
type Asked = { kind: "add" } | { kind: Kind; provider: Provider };
const DEEDS: readonly (readonly [Kind, string])[] = [
  ["test", "Test"],
  ["change", "Change"],
  ["remove", "Remove"],
];

const pathOf = (name: string): string => `/identity-providers/${encodeURIComponent(name || "NAME")}`;

const columnsFor = (operates: boolean, ask: (asked: Asked) => void): readonly Column<Provider>[] => [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "issuer", name: "Issuer", value: (row) => plain(row.issuer) },
  { id: "organisation", name: "Organisation", value: (row) => plain(row.organisation ?? DASH) },
  { id: "creates_users", name: "New users", value: (row) => (row.creates_users ? "Are made" : "None") },
  { id: "groups", name: "Groups", value: (row) => groupLines(row).map(plain).join("; ") || DASH },
  moment("created_at", "Added", (row) => row.created_at),
  ...(operates ? [actions<Provider>((row) => <Deeds provider={row} ask={ask} />)] : []),
];

export function ProvidersPage() {
  const query = useQuery(providersQuery);
  const operates = useQuery(meQuery).data?.roles.includes("operator") ?? false;
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useMemo(() => columnsFor(operates, ask), [operates]);
  const close = () => ask(null);
  const add = (
    <Button leftSection={<PlusIcon />} onClick={() => ask({ kind: "add" })} disabled={!operates}>
      Add a provider
    </Button>
  );
  return (
    <div className="wr-page">
      <PageHead title="Identity providers" actions={add} />
      <Panel bare label="Identity providers">
        <DataTable
          of={["provider", "providers"]}
          columns={columns}
          id={(row) => row.name}
          rows={query.data}
          query={query}
          empty={
            <Empty
              title="No identity provider"
              command="windrow identity-provider add NAME --issuer URL --client-id ID"
            >
              With one, people sign in by their company's OpenID Connect provider, and its groups give them roles.
            </Empty>
          }
        />
      </Panel>
      {asked?.kind === "add" && <SetProvider before={null} close={close} />}
      {asked?.kind === "change" && <SetProvider before={asked.provider} close={close} />}
      {asked?.kind === "test" && <TestProvider provider={asked.provider} close={close} />}
      {asked?.kind === "remove" && <RemoveProvider provider={asked.provider} close={close} />}
    </div>
  );
}

function Deeds({ provider, ask }: { provider: Provider; ask: (asked: Asked) => void }) {
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {DEEDS.map(([kind, label]) => (
        <Button
          key={kind}
          variant="subtle"
          color={kind === "remove" ? "red" : "gray"}
          size="compact-sm"
          onClick={() => ask({ kind, provider })}
          aria-label={`${label}: ${provider.name}`}
        >
          {label}
        </Button>
      ))}
    </Group>
  );
}

function useAfter(): () => void {
  const client = useQueryClient();
  return () => {
    void client.invalidateQueries({ queryKey: providersQuery.queryKey });
    void client.invalidateQueries({ queryKey: signInProviders.queryKey });
  };
}

function SetProvider({ before, close }: { before: Provider | null; close: () => void }) {
  const [draft, setDraft] = useState<ProviderDraft>(before === null ? NEW_PROVIDER : draftOf(before));
  const { body, faults } = toProvider(draft);
  const path = pathOf(draft.name);
  const after = useAfter();
  const act = useMutation({ mutationFn: () => put<Provider>(path, body), gcTime: 0, onSuccess: after });
  if (act.data) return <Registered provider={act.data} close={close} />;
  const text = (name: "name" | "issuer" | "clientId" | "organisation" | "domains" | "groupClaim", label: string) => ({
    label,
    value: draft[name],
    error: draft[name] && faults[name],
    autoComplete: "off",
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  return (
    <FormDialog
      title={before === null ? "Add an identity provider" : `Change ${before.name}`}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      submit={before === null ? "Add" : "Change"}
    >
      <TextInput {...text("name", "Name")} description="On the button at sign-in." disabled={before !== null} />
      <TextInput {...text("issuer", "Issuer")} placeholder="https://login.example.org" disabled={before !== null} />
      <TextInput {...text("clientId", "Client id")} />
      <PasswordInput
        label="Client secret"
        description={before?.has_client_secret ? "Empty: the present one stays." : "Empty: it needs none."}
        autoComplete="off"
        value={draft.secret}
        onChange={(event) => setDraft({ ...draft, secret: event.currentTarget.value })}
      />
      <TextInput
        {...text("organisation", "Organisation")}
        description="Its users join it. Empty: linked users alone sign in."
        error={faults.organisation}
        disabled={before !== null}
      />
      <Checkbox
        label="Make a user at the first sign-in"
        checked={draft.createsUsers}
        onChange={(event) => setDraft({ ...draft, createsUsers: event.currentTarget.checked })}
      />
      <TextInput {...text("domains", "Mail domains")} description="Only verified addresses there become users." />
      <Textarea
        label="Groups"
        description="A line for each: ml=lab:renter,viewer or admins=org_admin. No other group gives a role."
        autosize
        minRows={2}
        value={draft.groups}
        error={faults.groups}
        onChange={(event) => setDraft({ ...draft, groups: event.currentTarget.value })}
      />
      <TextInput {...text("groupClaim", "Claim with the groups")} />
      <Checkbox
        label="It may lie on this machine or in its network"
        checked={draft.isPrivate}
        onChange={(event) => setDraft({ ...draft, isPrivate: event.currentTarget.checked })}
      />
      <Same
        method="PUT"
        path={path}
        body={{ ...body, ...(body.client_secret && { client_secret: "..." }) }}
        command={providerCommand(draft.name, body)}
      />
    </FormDialog>
  );
}

function Registered({ provider, close }: { provider: Provider; close: () => void }) {
  return (
    <Dialog onClose={close} title={`${provider.name} is set`}>
      <Stack gap="sm">
        <Text size="sm">Register this address at the provider, as a redirect URI:</Text>
        <Command text={provider.redirect_uri} label="redirect URI" />
        <Group justify="flex-end">
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

function TestProvider({ provider, close }: { provider: Provider; close: () => void }) {
  const path = `${pathOf(provider.name)}/test`;
  const query = useQuery({
    queryKey: ["provider test", provider.name],
    queryFn: () => post<ProviderTested>(path),
    gcTime: 0,
    retry: false,
  });
  return (
    <Dialog onClose={close} title={`Test ${provider.name}`} size="lg">
      <Stack gap="sm">
        {query.error && <ProblemNote error={query.error} retry={() => void query.refetch()} />}
        {query.isPending && <Waiting />}
        {query.data && (
          <Facts
            rows={[
              ["It answers as", plain(query.data.issuer)],
              ["Sign-in page", plain(query.data.authorization_endpoint)],
              ["Takes codes at", plain(query.data.token_endpoint)],
              ["Tells who it is at", plain(query.data.userinfo_endpoint ?? DASH)],
              ["Keys", `${query.data.keys} at ${plain(query.data.jwks_uri)}`],
              ["Sends its issuer with codes", query.data.sends_issuer ? "Yes" : "No"],
              ["Redirect URI to register", plain(provider.redirect_uri)],
            ]}
          />
        )}
        <Same method="POST" path={path} body={{}} command={`windrow identity-provider test ${provider.name}`} />
      </Stack>
    </Dialog>
  );
}

function RemoveProvider({ provider, close }: { provider: Provider; close: () => void }) {
  const after = useAfter();
  const act = useMutation({
    mutationFn: () => remove(pathOf(provider.name)),
    onSuccess: () => {
      after();
      notifications.show({ message: `${provider.name} is removed` });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Remove ${provider.name}`}
      name={provider.name}
      button="Remove"
      act={act}
      close={close}
      text="Nobody signs in by it any more. Its users stay with their roles. Without a password they need a link."
    >
      <Same
        method="DELETE"
        path={pathOf(provider.name)}
        command={`windrow identity-provider rm ${provider.name} --yes`}
      />
    </ConfirmByName>
  );
}
