// The list of the project's secrets, which are set and deleted here. No value is ever shown.
import { Button, FileInput, PasswordInput, SegmentedControl, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { put, remove } from "../api/client.ts";
import { me as meQuery, secrets as secretsQuery } from "../api/queries.ts";
import type { Secret, SecretDeleted } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { DASH, plain, words } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Command, Empty, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { actions, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import {
  asSecretCommand,
  BLANK_SECRET,
  BYTES_MOST,
  KINDS,
  type SecretDraft,
  type SecretFaults,
  type SecretKind,
  shownSecret,
  toSecret,
} from "./secrets.ts";

type Ask = (secret: Secret) => void;

const columnsFor = (mayChange: boolean, replace: Ask, ask: Ask): readonly Column<Secret>[] => [
  {
    id: "name",
    name: "Name",
    value: (row) => row.name,
    cell: (row) => <span className="wr-mono">{plain(row.name)}</span>,
  },
  { id: "kind", name: "Kind", value: (row) => row.kind, cell: (row) => words(row.kind), facet: true },
  {
    id: "used_by",
    name: "Used by",
    value: (row) => row.used_by.map((user) => user.name).join(" "),
    cell: (row) => <Users secret={row} />,
  },
  moment("updated_at", "Updated", (row) => row.updated_at),
  moment("last_used_at", "Last used", (row) => row.last_used_at, "never"),
  ...(mayChange
    ? [
        actions<Secret>((row) => (
          <>
            <Button variant="subtle" onClick={() => replace(row)} aria-label={`Replace the secret ${plain(row.name)}`}>
              Replace
            </Button>
            <Button
              variant="subtle"
              color="red"
              onClick={() => ask(row)}
              aria-label={`Delete the secret ${plain(row.name)}`}
            >
              Delete
            </Button>
          </>
        )),
      ]
    : []),
];

export function SecretsPage() {
  const query = useQuery(secretsQuery);
  const mayChange = useQuery(meQuery).data?.roles.some((role) => role === "renter" || role === "admin") ?? false;
  const [setting, set] = useState<SecretDraft | null>(null);
  const [deleting, setDeleting] = useState<Secret | null>(null);
  const columns = useMemo(
    () =>
      columnsFor(
        mayChange,
        (row) => set({ ...BLANK_SECRET, name: row.name, kind: row.kind as SecretKind }),
        setDeleting,
      ),
    [mayChange],
  );
  return (
    <div className="wr-page">
      <PageHead
        title="Secrets"
        actions={
          mayChange && (
            <Button leftSection={<PlusIcon />} onClick={() => set(BLANK_SECRET)}>
              New secret
            </Button>
          )
        }
      />
      <Panel bare label="Secrets">
        <DataTable
          of={["secret", "secrets"]}
          columns={columns}
          id={(row) => row.name}
          rows={query.data}
          query={query}
          address
          empty={<None />}
        />
      </Panel>
      {setting && <SetSecret begin={setting} close={() => set(null)} />}
      {deleting && <DeleteAsked secret={deleting} close={() => setDeleting(null)} />}
    </div>
  );
}

function None() {
  return (
    <>
      <Empty title="No secrets" command="windrow secret set HF_TOKEN">
        A secret is a value that jobs and machines get by name. Nobody reads it back.
      </Empty>
      <Stack gap="xs" pb={28} px="md" maw={620} mx="auto">
        <Text size="sm" className="wr-quiet">
          Then name it in the form of a machine or a job, or by command:
        </Text>
        <Command text="windrow job submit --secret HF_TOKEN -- python train.py" label="command that uses it" />
      </Stack>
    </>
  );
}

function Users({ secret }: { secret: Secret }) {
  if (secret.used_by.length === 0) return <>{DASH}</>;
  return (
    <Stack gap={2}>
      {secret.used_by.map((user) => (
        <Text key={user.id} inherit>
          {words(user.kind)}{" "}
          {user.kind === "job" ? (
            <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: user.id }}>
              {plain(user.name)}
            </Link>
          ) : user.kind === "cluster" ? (
            <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: user.id }}>
              {plain(user.name)}
            </Link>
          ) : (
            plain(user.name)
          )}
          {user.is_waiting && " (waits)"}
        </Text>
      ))}
    </Stack>
  );
}

function SetSecret({ begin, close }: { begin: SecretDraft; close: () => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(begin);
  const [tried, setTried] = useState(false);
  const change = (part: Partial<SecretDraft>) => setDraft((before) => ({ ...before, ...part }));
  const { name, request, faults } = toSecret(draft);
  const sound = Object.keys(faults).length === 0;
  const path = `/secrets/${encodeURIComponent(name)}`;
  const set = useMutation({
    mutationFn: () => put<Secret>(path, request),
    gcTime: 0, // what was sent has the value
    onSuccess: () => {
      notifications.show({ message: `${plain(name)} is set` });
      void client.invalidateQueries({ queryKey: ["secrets"] });
      close();
    },
  });
  return (
    <Dialog onClose={close} title={begin.name ? `Replace ${plain(begin.name)}` : "New secret"}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (sound) set.mutate();
        }}
        noValidate
      >
        <Stack gap="sm">
          <TextInput
            label="Name"
            placeholder="HF_TOKEN"
            autoComplete="off"
            value={draft.name}
            disabled={begin.name !== ""}
            error={tried ? faults.name : undefined}
            onChange={(event) => change({ name: event.currentTarget.value })}
            data-autofocus={begin.name === "" || undefined}
          />
          <SegmentedControl
            aria-label="Kind"
            value={draft.kind}
            onChange={(kind) => change({ kind: kind as SecretKind, text: "", bytes: null })}
            data={KINDS.map(({ value, label }) => ({ value, label }))}
          />
          <Value draft={draft} change={change} faults={tried ? faults : {}} />
          {set.error && <ProblemNote error={set.error} />}
          <Same
            method="PUT"
            path={`/secrets/${name || "NAME"}`}
            body={shownSecret(draft.kind)}
            command={asSecretCommand(name, draft.kind)}
          />
          <DialogFoot close={close} loading={set.isPending}>
            Set secret
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

interface ValueProps {
  draft: SecretDraft;
  change: (part: Partial<SecretDraft>) => void;
  faults: SecretFaults;
}

function Value({ draft, change, faults }: ValueProps) {
  const shared = {
    label: "Value",
    description: KINDS.find((one) => one.value === draft.kind)?.hint,
    error: faults.value,
  };
  const typed = (event: { currentTarget: { value: string } }) => change({ text: event.currentTarget.value });
  if (draft.kind === "file")
    return (
      <FileInput
        {...shared}
        placeholder="Choose a file"
        onChange={(file) => {
          if (!file || file.size > BYTES_MOST) change({ bytes: file && "large" });
          else void file.arrayBuffer().then((buffer) => change({ bytes: new Uint8Array(buffer) }));
        }}
      />
    );
  if (draft.kind === "registry_login")
    return <PasswordInput {...shared} autoComplete="off" value={draft.text} onChange={typed} />;
  return (
    <Textarea
      {...shared}
      autoComplete="off"
      spellCheck={false}
      autosize
      minRows={2}
      maxRows={8}
      value={draft.text}
      onChange={typed}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
    />
  );
}

function DeleteAsked({ secret, close }: { secret: Secret; close: () => void }) {
  const client = useQueryClient();
  const path = `/secrets/${encodeURIComponent(secret.name)}`;
  const waiting = secret.used_by.filter((user) => user.is_waiting).map((user) => plain(user.name));
  const act = useMutation({
    mutationFn: () => remove<SecretDeleted>(path),
    onSuccess: ({ warning }) => {
      notifications.show({ message: warning ? plain(warning) : `${plain(secret.name)} is deleted` });
      void client.invalidateQueries({ queryKey: ["secrets"] });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Delete ${plain(secret.name)}`}
      name={secret.name}
      button="Delete secret"
      act={act}
      close={close}
      text={
        waiting.length > 0
          ? `What waits for its value will fail: ${waiting.join(", ")}.`
          : "Work that runs keeps the value that it was given."
      }
    >
      <Same method="DELETE" path={path} command={`windrow secret rm ${secret.name} --yes`} />
    </ConfirmByName>
  );
}
