// The dialogs of a backend: it is added, checked, capped, swept, stopped and removed.
import { NativeSelect, PasswordInput, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post, put, remove } from "../api/client.ts";
import { backendKinds, backends as query } from "../api/queries.ts";
import type { CloudBackend, CloudFinding, CloudKind, CloudSweep } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { useChange } from "../parts/change.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { count, plain, words } from "../parts/format.ts";
import { ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand } from "../parts/shell.ts";
import { State } from "../parts/state.tsx";
import {
  type BackendDraft,
  backendCommand,
  CAPS,
  type CapsDraft,
  type CapsFaults,
  capLabel,
  capsCommand,
  currencyOf,
  draftOfCaps,
  NO_CAPS,
  renewCommand,
  toBackend,
  toCaps,
  toSecrets,
  withoutSecrets,
} from "./clouds.ts";

interface Of {
  backend: CloudBackend;
  close: () => void;
}

const LISTS = [query, { queryKey: ["purchases"] }];
const pathOf = ({ name }: Pick<CloudBackend, "name">): string => `/backends/${encodeURIComponent(name)}`;

function CapFields({
  draft,
  change,
  faults,
  currency,
}: {
  draft: CapsDraft;
  change: (part: Partial<CapsDraft>) => void;
  faults: CapsFaults;
  currency: string;
}) {
  return (
    <>
      <Text size="sm" fw={600}>
        The most that may be bought
      </Text>
      <SimpleGrid cols={{ base: 2, xs: 3 }} spacing="sm">
        {CAPS.map(([cap, label]) => (
          <TextInput
            key={cap}
            label={capLabel(cap, label, currency)}
            placeholder="no cap"
            inputMode="decimal"
            value={draft[cap]}
            error={faults[cap]}
            onChange={(event) => change({ [cap]: event.currentTarget.value })}
          />
        ))}
        <TextInput
          label="Margin (%)"
          inputMode="numeric"
          value={draft.margin}
          error={faults.margin}
          onChange={(event) => change({ margin: event.currentTarget.value })}
        />
      </SimpleGrid>
      <Text size="xs" className="wr-quiet">
        A cap that is reached refuses new machines; what runs goes on. The margin is added to the cost in the price of
        its hosts.
      </Text>
    </>
  );
}

function SecretFields({
  kind,
  secrets,
  change,
}: {
  kind: CloudKind | undefined;
  secrets: Record<string, string>;
  change: (secrets: Record<string, string>) => void;
}) {
  return kind?.secrets.map((one) => {
    // A password's field has one line, and would join those of a key.
    const Secret = one.name === "private_key" ? Textarea : PasswordInput;
    return (
      <Secret
        key={one.name}
        label={words(one.name)}
        description={plain(one.text)}
        autoComplete="off"
        value={secrets[one.name] ?? ""}
        onChange={(event: { currentTarget: { value: string } }) =>
          change({ ...secrets, [one.name]: event.currentTarget.value })
        }
      />
    );
  });
}

export function AddBackend({ close }: { close: () => void }) {
  const kinds = useQuery(backendKinds).data ?? [];
  const [draft, setDraft] = useState<BackendDraft>({ ...NO_CAPS, name: "", kind: "", settings: {}, secrets: {} });
  const kind = kinds.find((one) => one.kind === (draft.kind || kinds[0]?.kind));
  const { body, faults } = toBackend({ ...draft, kind: kind?.kind ?? "" }, kind);
  const change = (part: Partial<BackendDraft>) => setDraft({ ...draft, ...part });
  const act = useChange(() => post("/backends", body), {
    lists: LISTS,
    said: `${plain(body.name)} is added: check it before you buy`,
    close,
  });
  const told = faultsOf(act.error);
  const shown = (name: string, value: string | undefined) => told[name] ?? (value ? faults[name] : undefined);
  const setting = (one: CloudKind["settings"][number]) => (
    <TextInput
      key={one.name}
      label={words(one.name)}
      description={plain(one.text)}
      placeholder={one.default ?? ""}
      autoComplete="off"
      value={draft.settings[one.name] ?? ""}
      onChange={(event) => change({ settings: { ...draft.settings, [one.name]: event.currentTarget.value } })}
    />
  );
  return (
    <FormDialog
      title="Add a backend"
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={["name", "kind", "per_day", "per_hour", "in_all"]}
      submit="Add the backend"
    >
      <NativeSelect
        label="Kind"
        description={kind && plain(kind.level_text)}
        data={kinds.map((one) => ({ value: one.kind, label: plain(one.title) }))}
        value={kind?.kind ?? ""}
        error={told.kind}
        onChange={(event) => change({ kind: event.currentTarget.value, settings: {}, secrets: {} })}
        data-autofocus
      />
      <TextInput
        label="Name"
        placeholder="aws"
        autoComplete="off"
        value={draft.name}
        error={shown("name", draft.name)}
        onChange={(event) => change({ name: event.currentTarget.value })}
      />
      {kind?.settings.filter((one) => one.required).map(setting)}
      <SecretFields kind={kind} secrets={draft.secrets} change={(secrets) => change({ secrets })} />
      {kind?.settings.some((one) => !one.required) && (
        <details className="wr-details">
          <summary>More settings</summary>
          <Stack gap="sm" mt="xs">
            {kind.settings.filter((one) => !one.required).map(setting)}
          </Stack>
        </details>
      )}
      <CapFields
        draft={draft}
        change={change}
        faults={Object.fromEntries(CAPS.map(([cap]) => [cap, shown(cap, draft[cap])]))}
        currency={currencyOf(draft, kind)}
      />
      <Same method="POST" path="/backends" body={withoutSecrets(body)} command={backendCommand(body)} />
    </FormDialog>
  );
}

export function SetCaps({ backend, close }: Of) {
  const [draft, setDraft] = useState(() => draftOfCaps(backend));
  const { caps, margin, faults } = toCaps(draft);
  const path = `${pathOf(backend)}/caps`;
  const body = { ...caps, currency: backend.caps.currency, margin_percent: margin };
  const act = useChange(() => put(path, body), { lists: LISTS, said: `Caps of ${plain(backend.name)} are set`, close });
  return (
    <FormDialog
      title={`Caps of ${plain(backend.name)}`}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={["per_day", "per_hour", "in_all"]}
      submit="Set the caps"
    >
      <CapFields
        draft={draft}
        change={(part) => setDraft({ ...draft, ...part })}
        faults={{ ...faultsOf(act.error), ...faults }}
        currency={backend.caps.currency}
      />
      <Same method="PUT" path={path} body={body} command={capsCommand(backend.name, caps, margin)} />
    </FormDialog>
  );
}

export function RenewBackend({ backend, close }: Of) {
  const kind = useQuery(backendKinds).data?.find((one) => one.kind === backend.kind);
  const [given, setGiven] = useState<Record<string, string>>({});
  const { body, ready } = toSecrets(given, kind);
  const path = `${pathOf(backend)}/secrets`;
  const said = `${plain(backend.name)} uses these credentials from now on: check it`;
  const act = useChange(() => put(path, body), { lists: LISTS, said, close });
  return (
    <FormDialog
      title={`New credentials for ${plain(backend.name)}`}
      close={close}
      act={act}
      ready={ready}
      submit="Use these credentials"
    >
      <Text size="sm">
        Of the same account: they have to show the machines that were bought there. What runs goes on.
      </Text>
      <SecretFields kind={kind} secrets={given} change={setGiven} />
      <Same method="PUT" path={path} body={withoutSecrets(body)} command={renewCommand(backend.name, body.secrets)} />
    </FormDialog>
  );
}

export function CheckBackend({ backend, close }: Of) {
  const path = `${pathOf(backend)}/check`;
  const client = useQueryClient();
  const check = useQuery({
    queryKey: ["backend check", backend.name],
    queryFn: async () => {
      const found = await post<{ findings: CloudFinding[] }>(path, {});
      void client.invalidateQueries({ queryKey: query.queryKey });
      return found.findings;
    },
    gcTime: 0,
    retry: false,
  });
  return (
    <Dialog onClose={close} title={`Check of ${plain(backend.name)}`} size="lg">
      <Stack gap="sm">
        <Text size="sm">Asks the provider with your credentials, and buys nothing.</Text>
        {check.error && <ProblemNote error={check.error} retry={() => void check.refetch()} />}
        {check.isPending && <Waiting />}
        {check.data && <Findings findings={check.data} />}
        <Same method="POST" path={path} body={{}} command={`windrow backend check ${operand(backend.name)}`} />
      </Stack>
    </Dialog>
  );
}

function Findings({ findings }: { findings: readonly CloudFinding[] }) {
  return (
    <dl className="wr-facts">
      {findings.map((one) => (
        <div key={one.what} style={{ display: "contents" }}>
          <dt>
            <State state={one.what} tone={one.good ? "ok" : "bad"} />
          </dt>
          <dd className="wr-break">
            {plain(one.said)}
            {one.way_out && <div className="wr-quiet">{plain(one.way_out)}</div>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function SweepBackend({ backend, close }: Of) {
  const path = `${pathOf(backend)}/sweep`;
  const [market, setMarket] = useState("");
  const client = useQueryClient();
  const body = { market_id: market.trim() || null };
  const act = useMutation({
    mutationFn: () => post<CloudSweep>(path, body),
    onSuccess: () => LISTS.map(({ queryKey }) => client.invalidateQueries({ queryKey })),
  });
  const flag = body.market_id ? ` --market ${operand(body.market_id)}` : "";
  return (
    <FormDialog title={`Sweep ${plain(backend.name)}`} close={close} act={act} ready submit="Sweep">
      <Text size="sm">
        Ends all at the provider that carries this market's id and belongs to no living purchase. Machines of other
        markets, and those without a tag, are never touched. It also runs by itself every 5 minutes.
      </Text>
      <TextInput
        label="Another market of yours that is gone"
        placeholder="its id; empty: this market"
        value={market}
        autoComplete="off"
        onChange={(event) => setMarket(event.currentTarget.value)}
      />
      {act.data && <Swept sweep={act.data} />}
      <Same method="POST" path={path} body={body} command={`windrow backend sweep ${operand(backend.name)}${flag}`} />
    </FormDialog>
  );
}

function Swept({ sweep }: { sweep: CloudSweep }) {
  return (
    <Stack gap={4} role="status">
      <Text size="sm" fw={600}>
        {count(sweep.ended.length)} ended, {count(sweep.left_alone.length)} left alone
        {sweep.unknown.length > 0 && `, ${count(sweep.unknown.length)} could not be ended`}.
      </Text>
      {[...sweep.unknown, ...sweep.ended].map((one) => (
        <Text key={one.id} size="sm" className="wr-break">
          <span className="wr-mono">{plain(one.id)}</span> {plain(one.said)}
        </Text>
      ))}
    </Stack>
  );
}

export function StopAll({ backend, close }: Of) {
  const path = `${pathOf(backend)}/stop-all`;
  const said = `All that is bought at ${plain(backend.name)} will end`;
  const act = useChange(() => post(path, {}), { lists: LISTS, said, close });
  return (
    <ConfirmByName
      title={`Stop all of ${plain(backend.name)}`}
      name={backend.name}
      button="Stop all"
      act={act}
      close={close}
      text={`${count(backend.owed.living)} purchases end now, whatever runs on them. The cap of machines becomes 0.`}
    >
      <Same method="POST" path={path} body={{}} command={`windrow backend stop-all ${operand(backend.name)} --yes`} />
    </ConfirmByName>
  );
}

export function RemoveBackend({ backend, close }: Of) {
  const act = useChange(() => remove(pathOf(backend)), {
    lists: LISTS,
    said: `${plain(backend.name)} is removed`,
    close,
  });
  return (
    <ConfirmByName
      title={`Remove ${plain(backend.name)}`}
      name={backend.name}
      button="Remove the backend"
      act={act}
      close={close}
      text="Its credentials are forgotten. Refused while something bought there is not surely gone."
    >
      <Same method="DELETE" path={pathOf(backend)} command={`windrow backend rm ${operand(backend.name)} --yes`} />
    </ConfirmByName>
  );
}
