// The lists of API tokens and join tokens, which are made and revoked here.
import { Button, Checkbox, Group, NativeSelect, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import { joinTokens as joinTokensQuery, me as meQuery, tokens as tokensQuery } from "../api/queries.ts";
import type { JoinTokenRow, TokenMade, TokenRow } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain, words } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { TokenShown } from "../parts/ShownOnce.tsx";
import { operand } from "../parts/shell.ts";
import { actions, events, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { limitsColumn, MoreLimits, SetLimits, useLimits } from "./Limits.tsx";
import { isEmpty, limitWords, NO_LIMITS, toLimits } from "./limits.ts";
import { roleName, roleNames } from "./roles.ts";

const LIVES: readonly (readonly [string, string])[] = [
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["7776000", "90 days"],
];

type Ask = (token: TokenRow) => void;
type Limits = ReturnType<typeof useLimits>;

const columnsFor = (limits: Limits, limit: Ask, revoke: Ask): readonly Column<TokenRow>[] => [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "roles", name: "Roles", value: (row) => row.roles.join(" "), cell: (row) => roleNames(row.roles) },
  limitsColumn(limits, (row) => row.id),
  moment("created_at", "Created", (row) => row.created_at),
  moment("last_used_at", "Last used", (row) => row.last_used_at, "never"),
  moment("expires_at", "Expires", (row) => row.expires_at),
  identity((row) => row.id),
  events(
    (row) => `token ${plain(row.name)}`,
    (row) => row.id,
  ),
  actions((row) => (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        onClick={() => limit(row)}
        aria-label={`Limits: ${plain(row.name)}`}
      >
        Limits
      </Button>
      <Button
        variant="subtle"
        color="red"
        size="compact-sm"
        onClick={() => revoke(row)}
        aria-label={`Revoke ${row.name}`}
      >
        Revoke
      </Button>
    </Group>
  )),
];

const JOIN_COLUMNS: readonly Column<JoinTokenRow>[] = [
  { id: "role", name: "For", value: (row) => row.role, cell: (row) => words(row.role) },
  moment("created_at", "Made", (row) => row.created_at),
  moment("expires_at", "Expires", (row) => row.expires_at),
  identity((row) => row.id),
  events(
    (row) => `join token ${plain(row.id)}`,
    (row) => row.id,
  ),
  actions((row) => <RevokeJoin token={row} />),
];

export function TokensPage() {
  const query = useQuery(tokensQuery);
  const mayJoin = useQuery(meQuery).data?.roles.some((role) => role === "operator" || role === "provider") ?? false;
  const joins = useQuery({ ...joinTokensQuery, enabled: mayJoin });
  const [making, setMaking] = useState(false);
  const [revoking, revoke] = useState<TokenRow | null>(null);
  const [limited, limit] = useState<TokenRow | null>(null);
  const limits = useLimits();
  const columns = useMemo(() => columnsFor(limits, limit, revoke), [limits]);
  return (
    <div className="wr-page">
      <PageHead
        title="Tokens"
        actions={
          <Button leftSection={<PlusIcon />} onClick={() => setMaking(true)}>
            New token
          </Button>
        }
      />
      <div className="wr-stack">
        <Panel title="API tokens" bare>
          <DataTable
            of={["token", "tokens"]}
            columns={columns}
            id={(row) => row.id}
            rows={query.data}
            query={query}
            address
            empty={
              <Empty title="No tokens" command="windrow token add laptop">
                A token lets a program or a person act for you. Its secret is shown once.
              </Empty>
            }
          />
        </Panel>
        {mayJoin && (
          <Panel title="Join tokens" bare>
            <DataTable
              of={["join token", "join tokens"]}
              columns={JOIN_COLUMNS}
              id={(row) => row.id}
              rows={joins.data}
              query={joins}
              bare
              empty={
                <Empty title="No join tokens" command="windrow token add --join">
                  A join token lets one host join, once, within 15 minutes.
                </Empty>
              }
            />
          </Panel>
        )}
      </div>
      {making && <NewToken close={() => setMaking(false)} />}
      {limited && <SetLimits spender={{ kind: "token", ...limited }} close={() => limit(null)} />}
      {revoking && <Revoke token={revoking} close={() => revoke(null)} />}
    </div>
  );
}

/** Worthless after one use or 15 minutes anyway, and soon made anew: revoked without asking back. */
function RevokeJoin({ token }: { token: JoinTokenRow }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => remove(`/join-tokens/${encodeURIComponent(token.id)}`),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["join-tokens"] }),
  });
  return (
    <>
      <Button
        variant="subtle"
        color="red"
        loading={revoke.isPending}
        onClick={() => revoke.mutate()}
        aria-label={`Revoke join token ${plain(token.id)}`}
      >
        Revoke
      </Button>
      {revoke.error && <ProblemNote error={revoke.error} />}
    </>
  );
}

function NewToken({ close }: { close: () => void }) {
  const me = useQuery(meQuery);
  const client = useQueryClient();
  const mine = me.data?.roles ?? [];
  const [name, setName] = useState("");
  const [roles, setRoles] = useState<string[]>(mine);
  const [life, setLife] = useState("2592000");
  const [draft, setDraft] = useState(NO_LIMITS);
  const { body: limits, faults } = toLimits(draft);
  const body = { name: name.trim(), roles, expires_in_s: Number(life), ...(isEmpty(limits) ? {} : { limits }) };
  const make = useMutation({
    mutationFn: () => post<TokenMade>("/tokens", body),
    gcTime: 0,
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["tokens"] });
      void client.invalidateQueries({ queryKey: ["limits"] });
    },
  });
  if (make.data) return <TokenShown title="Your token" token={make.data.token} close={close} />;
  return (
    <FormDialog
      title="New token"
      close={close}
      act={make}
      ready={body.name !== "" && roles.length > 0 && Object.keys(faults).length === 0}
      fields={["name"]}
      submit="Make token"
    >
      <TextInput
        label="Name"
        description="What it is for."
        value={name}
        error={faultsOf(make.error).name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <Checkbox.Group label="Roles" value={roles} onChange={setRoles}>
        <Group mt={4}>
          {mine.map((role) => (
            <Checkbox key={role} value={role} label={roleName(role)} />
          ))}
        </Group>
      </Checkbox.Group>
      <NativeSelect
        label="Valid for"
        value={life}
        onChange={(event) => setLife(event.currentTarget.value)}
        data={LIVES.map(([value, label]) => ({ value, label }))}
      />
      <MoreLimits draft={draft} change={setDraft} faults={faults} />
      <Same
        method="POST"
        path="/tokens"
        body={body}
        command={[
          "windrow token add",
          ...roles.map((role) => `--role ${role}`),
          `--days ${Number(life) / 86_400}`,
          ...limitWords(limits),
          ...(body.name ? [operand(body.name)] : []),
        ].join(" ")}
      />
    </FormDialog>
  );
}

function Revoke({ token, close }: { token: TokenRow; close: () => void }) {
  const client = useQueryClient();
  const me = useQuery(meQuery);
  const act = useMutation({
    mutationFn: () => remove(`/tokens/${encodeURIComponent(token.id)}`),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["tokens"] });
      void client.invalidateQueries({ queryKey: ["me"] });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Revoke ${plain(token.name)}`}
      name={token.name}
      button="Revoke"
      act={act}
      close={close}
      text={
        <>
          Whatever uses it is refused from now on.
          {me.data?.token.id === token.id && (
            <strong> It is the one you are signed in with: you will be signed out.</strong>
          )}
        </>
      }
    >
      <Same method="DELETE" path={`/tokens/${token.id}`} command={`windrow token rm ${token.id}`} />
    </ConfirmByName>
  );
}
