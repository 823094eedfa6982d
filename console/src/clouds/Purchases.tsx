// Tables of bought machines, living and ended, and the dialogs that buy and end one.
import { Button, NativeSelect, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { post } from "../api/client.ts";
import {
  people as accountsQuery,
  backends as backendsQuery,
  cloudOffers,
  endedPurchases,
  livingPurchases,
  me as meQuery,
} from "../api/queries.ts";
import type { CloudBackend, CloudPurchase } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { amount, DASH, duration, plain, shortId, words } from "../parts/format.ts";
import { Empty, Panel, ProblemNote, TYPING_MS } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand, quoted } from "../parts/shell.ts";
import { State } from "../parts/state.tsx";
import { actions, figure, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import {
  machineOf,
  offerNote,
  offerText,
  type PurchaseDraft,
  purchaseCommand,
  purchaseReason,
  purchaseTone,
  toPurchase,
} from "./clouds.ts";
import { Forecasts } from "./Forecasts.tsx";

const LISTS = [backendsQuery, { queryKey: ["purchases"] }];

const money = (
  id: string,
  name: string,
  of: (row: CloudPurchase) => string,
  rest: Partial<Column<CloudPurchase>> = {},
): Column<CloudPurchase> =>
  figure(id, name, of, (text) => amount(text, 2), {
    cell: (row) => <span className="wr-nowrap">{`${amount(of(row), 2)} ${plain(row.currency)}`}</span>,
    ...rest,
  });

const columnsFor = (
  isLiving: boolean,
  end: ((row: CloudPurchase) => void) | null,
): readonly Column<CloudPurchase>[] => [
  {
    id: "state",
    name: "State",
    value: (row) => row.state,
    facet: true,
    facetName: words,
    cell: (row) => <State state={row.state} tone={purchaseTone(row.state)} reason={purchaseReason(row)} />,
  },
  {
    id: "machine",
    name: "Machine",
    value: machineOf,
    cell: (row) => (
      <>
        <span className="wr-nowrap">{machineOf(row)}</span>
        <br />
        <span className="wr-quiet wr-nowrap">{words(row.kind)}</span>
      </>
    ),
  },
  {
    id: "place",
    name: "Place",
    value: (row) => row.backend,
    facet: true,
    cell: (row) => (
      <>
        {plain(row.backend)}
        <br />
        <span className="wr-quiet wr-nowrap">{plain(row.zone ?? row.region)}</span>
      </>
    ),
  },
  { id: "account", name: "Project", value: (row) => row.account ?? row.account_id, facet: true, facetName: plain },
  {
    id: "host",
    name: "Host",
    value: (row) => row.host ?? row.host_id,
    cell: (row) =>
      row.host_id ? (
        <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: row.host_id }}>
          {row.host === null ? shortId(row.host_id) : plain(row.host)}
        </Link>
      ) : (
        <span className="wr-quiet">none</span>
      ),
    optional: !isLiving,
  },
  {
    id: "for",
    name: "Bought for",
    value: (row) => row.for_name ?? row.for_id,
    cell: (row) => <BoughtFor purchase={row} />,
  },
  money("price", "Per hour", (row) => row.price_per_hour, { optional: !isLiving }),
  figure(
    "forecast",
    "Forecast",
    (row) => row.forecast,
    (text) => amount(text, 2),
    { optional: isLiving },
  ),
  money("spent", isLiving ? "Owed so far" : "Cost", (row) => row.spent),
  money("reserved", "At most", (row) => row.reserved, { optional: true }),
  figure(
    "paid",
    "Paid by work",
    (row) => row.paid,
    (text) => amount(text, 2),
    { optional: isLiving },
  ),
  figure(
    "idle",
    "Idle",
    (row) => row.idle_seconds,
    (idle) => (idle ? duration(idle) : DASH),
  ),
  { ...moment<CloudPurchase>("created_at", "Bought", (row) => row.created_at), optional: true },
  isLiving ? moment("ends_at", "Ends", (row) => row.ends_at) : moment("ended_at", "Ended", (row) => row.ended_at),
  {
    id: "reason",
    name: "Why",
    value: (row) => row.reason,
    cell: (row) => <span className="wr-break">{plain(row.reason)}</span>,
    optional: isLiving,
  },
  { id: "offer", name: "Offer", value: (row) => row.offer, optional: true },
  { id: "machine_id", name: "Provider's id", value: (row) => row.machine_id, optional: true },
  identity((row) => row.id, { optional: true }),
  ...(end
    ? [
        actions<CloudPurchase>((row) => (
          <Button
            variant="subtle"
            color="red"
            size="compact-sm"
            disabled={row.state === "ending"}
            onClick={() => end(row)}
            aria-label={`End ${machineOf(row)} of ${plain(row.account ?? row.account_id)}`}
          >
            End
          </Button>
        )),
      ]
    : []),
];

function BoughtFor({ purchase: { for_id, for_name } }: { purchase: CloudPurchase }) {
  if (!for_id) return <span className="wr-quiet">an operator</span>;
  const name = for_name === null ? null : plain(for_name);
  const link = for_id.startsWith("job_") ? (
    <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: for_id }}>
      {name ?? "a job"}
    </Link>
  ) : (
    <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: for_id }}>
      {name ?? "a machine"}
    </Link>
  );
  return (
    <>
      {link}
      <br />
      <span className="wr-quiet wr-mono wr-nowrap" title={for_id}>
        {shortId(for_id)}
      </span>
    </>
  );
}

export function Living({ operates }: { operates: boolean }) {
  const found = useQuery(livingPurchases);
  const [ended, end] = useState<CloudPurchase | null>(null);
  const columns = useMemo(() => columnsFor(true, operates ? end : null), [operates]);
  return (
    <Panel title="Purchases" bare>
      <DataTable
        of={["purchase", "purchases"]}
        columns={columns}
        id={(row) => row.id}
        rows={found.data}
        query={found}
        empty={
          <Empty title="Nothing is bought now" command="windrow backend offers NAME --gpu a10g --spot">
            A machine that you buy joins as a host of the project that it is for, and nobody else's work runs on it.
          </Empty>
        }
      />
      {ended && <EndPurchase purchase={ended} close={() => end(null)} />}
    </Panel>
  );
}

const ENDED = columnsFor(false, null);

export function Ended() {
  const { rows, query, older, id } = usePaged(endedPurchases, (row) => row.id);
  return (
    <Stack gap="md">
      {rows && rows.length > 0 && <Forecasts purchases={rows} />}
      <Panel bare label="Ended purchases">
        <DataTable
          of={["purchase", "ended purchases"]}
          columns={ENDED}
          id={id}
          rows={rows}
          query={query}
          older={older}
          address
          empty={<Empty title="No purchase has ended yet" />}
        />
      </Panel>
    </Stack>
  );
}

const KINDS = [
  { value: "", label: "any" },
  { value: "spot", label: "Spot" },
  { value: "on-demand", label: "On demand" },
];

export function Buy({ backends, close }: { backends: readonly CloudBackend[]; close: () => void }) {
  const [draft, setDraft] = useState<PurchaseDraft>({
    backend: backends[0]?.name ?? "",
    offer: "",
    account: "",
    hours: "8",
  });
  const [gpu, setGpu] = useState("");
  const [kind, setKind] = useState("");
  const [settled] = useDebouncedValue(gpu.trim(), TYPING_MS);
  const wanted = { ...(settled ? { gpu: settled, gpus: 1 } : {}), ...(kind ? { kind } : {}) };
  const offers = useQuery(cloudOffers(draft.backend, wanted));
  const accounts = useQuery(accountsQuery).data ?? [];
  const own = useQuery(meQuery).data?.account.id ?? "";
  const offer = offers.data?.find((one) => one.offer === draft.offer) ?? offers.data?.[0];
  const { body, faults, most } = toPurchase({ ...draft, offer: offer?.offer ?? "" }, offer);
  const change = (part: Partial<PurchaseDraft>) => setDraft({ ...draft, ...part });
  const act = useChange(() => post("/purchases", body), { lists: LISTS, said: "The machine is asked for", close });
  const told = faultsOf(act.error);
  return (
    <FormDialog
      title="Buy a machine"
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={["hours", "account", "offer"]}
      submit="Buy"
    >
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <NativeSelect
          label="Backend"
          data={backends.map((one) => ({ value: one.name, label: plain(one.name) }))}
          value={draft.backend}
          onChange={(event) => change({ backend: event.currentTarget.value, offer: "" })}
          data-autofocus
        />
        <TextInput label="GPU" placeholder="any" value={gpu} onChange={(event) => setGpu(event.currentTarget.value)} />
        <NativeSelect label="Sold as" data={KINDS} value={kind} onChange={(e) => setKind(e.currentTarget.value)} />
      </SimpleGrid>
      {offers.error ? (
        <ProblemNote error={offers.error} retry={() => void offers.refetch()} />
      ) : (
        <NativeSelect
          label="Offer, the cheapest first"
          data={(offers.data ?? []).map((one) => ({ value: one.offer, label: offerText(one) }))}
          description={offer ? offerNote(offer) : offers.data && "Nothing that fits can be had there now."}
          value={offer?.offer ?? ""}
          error={told.offer}
          disabled={!offers.data?.length}
          onChange={(event) => change({ offer: event.currentTarget.value })}
        />
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NativeSelect
          label="For the project"
          data={accounts.map((one) => ({ value: one.id, label: plain(one.name) }))}
          value={draft.account || own}
          error={told.account}
          onChange={(event) => change({ account: event.currentTarget.value })}
        />
        <TextInput
          label="Ended after (hours)"
          inputMode="decimal"
          value={draft.hours}
          error={told.hours ?? faults.hours}
          onChange={(event) => change({ hours: event.currentTarget.value })}
        />
      </SimpleGrid>
      <Text size="sm" data-testid="most">
        Real money: about {most} if it is kept for all of that time. Only this project's work runs on it.
      </Text>
      <Same method="POST" path="/purchases" body={body} command={purchaseCommand(body)} />
    </FormDialog>
  );
}

function EndPurchase({ purchase, close }: { purchase: CloudPurchase; close: () => void }) {
  const [reason, setReason] = useState("");
  const path = `/purchases/${encodeURIComponent(purchase.id)}/end`;
  const act = useChange(() => post(path, { reason }), { lists: LISTS, said: "Its end is asked for", close });
  const flag = reason ? ` --reason ${quoted(reason)}` : "";
  return (
    <FormDialog title={`End ${machineOf(purchase)}`} close={close} act={act} ready submit="End the purchase" danger>
      <Text size="sm">
        What runs on it ends now. It is paid for until {plain(purchase.backend)} says that it is gone.
      </Text>
      <TextInput
        label="Reason"
        maxLength={300}
        autoComplete="off"
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        data-autofocus
      />
      <Same
        method="POST"
        path={path}
        body={{ reason }}
        command={`windrow purchase end ${operand(purchase.id)} --yes${flag}`}
      />
    </FormDialog>
  );
}
