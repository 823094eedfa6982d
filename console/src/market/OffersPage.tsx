// Pricing: every tier with its price, which providers and operators set here.
import { Button, Text, TextInput, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { address, put, remove } from "../api/client.ts";
import { me as meQuery, offers as offersQuery, prices as pricesQuery } from "../api/queries.ts";
import type { Offer, Price as PriceElsewhere } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { amount, bytes, count, DASH, listed, perHour, plain } from "../parts/format.ts";
import { Empty, Facts, PageHead, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { TestMoney } from "../parts/state.tsx";
import { showUndo } from "../parts/undo.tsx";
import { events, figure, Named, simulated } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { changeText, classOf, timesOf, timesText } from "./shop.ts";

/** What is counted: a host of a processor tier has one share of its processors. */
function rentable({ tier, unit, total }: Offer): string {
  const noun = unit === "processor" ? "host" : tier.includes(":") ? "slice" : "GPU";
  return total === 1 ? noun : `${noun}s`;
}

const columnsFor = (mayPrice: boolean, elsewhere: ReadonlyMap<string, number>): readonly Column<Offer>[] => [
  {
    id: "tier",
    name: "Tier",
    value: (row) => row.tier,
    cell: (row) => (
      <Named isSimulated={row.simulated}>
        <strong>{plain(row.tier)}</strong>
      </Named>
    ),
  },
  figure("free", "Free", (row) => row.free, count),
  figure("total", "Of", (row) => row.total, count, { cell: (row) => `${count(row.total)} ${rentable(row)}` }),
  figure("hosts", "Hosts", (row) => row.hosts, count),
  figure("min_memory_bytes", "Memory from", (row) => row.min_memory_bytes, bytes),
  { id: "runtimes", name: "Runtimes", value: (row) => row.runtimes.join(" "), cell: (row) => <Runtimes offer={row} /> },
  figure("suggestion", "Suggestion", (row) => row.suggestion, perHour, { cell: (row) => <Suggestion offer={row} /> }),
  {
    id: "elsewhere",
    name: "Elsewhere from",
    number: true,
    value: (row) => elsewhere.get(classOf(row)) ?? null,
    cell: (row) => <Elsewhere offer={row} from={elsewhere.get(classOf(row))} />,
  },
  figure(
    "price_per_hour",
    "Price per hour",
    (row) => row.price_per_hour,
    perHour,
    mayPrice ? { cell: (row) => <Price offer={row} /> } : {},
  ),
  { id: "unit", name: "Unit", value: (row) => row.unit, optional: true },
  { id: "currency", name: "Currency", value: (row) => row.currency, optional: true },
  simulated((row) => row.simulated),
  events(
    (row) => `tier ${plain(row.tier)}`,
    (row) => `tier/${row.tier}`,
  ),
];

export function OffersPage() {
  const query = useQuery(offersQuery);
  const me = useQuery(meQuery);
  const mayPrice = me.data?.roles.some((role) => role === "operator" || role === "provider") ?? false;
  const prices = useQuery(pricesQuery).data;
  const columns = useMemo(() => columnsFor(mayPrice, lowest(prices ?? [])), [mayPrice, prices]);
  return (
    <div className="wr-page">
      <PageHead
        title="Pricing"
        beside={<TestMoney />}
        actions={
          <>
            <PageButton to="/shop" isQuiet>
              GPUs & prices
            </PageButton>
            <PageButton to="/prices" isQuiet>
              Prices elsewhere
            </PageButton>
          </>
        }
      />
      <Panel bare label="Offers">
        <DataTable
          of={["offer", "offers"]}
          columns={columns}
          id={(row) => `${row.tier} ${row.simulated}`}
          rows={query.data}
          query={query}
          address
          empty={
            <Empty
              title="Nothing is offered yet"
              command="windrow offer ls"
              action={<PageButton to="/join">Add a host</PageButton>}
            >
              Each host is put in a tier by what was measured; each tier has one price per hour. Offers appear with the
              first host.
            </Empty>
          }
        />
      </Panel>
      <Text size="sm" className="wr-quiet" mt="sm">
        Price per GPU and hour (CPU tiers: per CPU). A change applies to new rentals only.
      </Text>
    </div>
  );
}

function Runtimes({ offer }: { offer: Offer }) {
  return (
    <>
      {listed(offer.runtimes)}
      {offer.container_users && (
        <div className="wr-quiet">
          {offer.container_users === "own" ? "containers have users of their own" : "containers share the host's users"}
        </div>
      )}
      {offer.notes.map((note) => (
        <div key={note} className="wr-quiet">
          {plain(note)}
        </div>
      ))}
    </>
  );
}

function Suggestion({ offer }: { offer: Offer }) {
  const shown = perHour(offer.suggestion);
  return offer.suggestion_reason ? (
    <Tooltip label={offer.suggestion_reason} multiline maw={360}>
      <span tabIndex={0}>{shown}</span>
    </Tooltip>
  ) : (
    shown
  );
}

/** Of each GPU the lowest price on demand that is still believed. */
function lowest(prices: readonly PriceElsewhere[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const { gpu, kind, state, price_per_gpu_hour } of prices) {
    if (kind !== "on-demand" || state !== "current") continue;
    found.set(gpu, Math.min(found.get(gpu) ?? Number.POSITIVE_INFINITY, Number(price_per_gpu_hour)));
  }
  return found;
}

function Elsewhere({ offer, from }: { offer: Offer; from: number | undefined }) {
  if (from === undefined) return DASH;
  return (
    <Link className="wr-link" to="/prices" search={{ gpu: classOf(offer), kind: "on-demand", state: "current" }}>
      {perHour(String(from))}
    </Link>
  );
}

/** From this many times on, dearer or cheaper, a change is asked about: it may be a slip of the keyboard. */
const A_LOT = 2;

const pathOf = ({ tier }: Offer) => `/offers/${tier.split("/").map(encodeURIComponent).join("/")}`;

function Price({ offer }: { offer: Offer }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button
        variant="default"
        onClick={open}
        aria-label={`${perHour(offer.price_per_hour)}: change the price of ${offer.tier}`}
      >
        {perHour(offer.price_per_hour)}
      </Button>
      {opened && <PriceDialog offer={offer} close={close} />}
    </>
  );
}

function PriceDialog({ offer, close }: { offer: Offer; close: () => void }) {
  const client = useQueryClient();
  const before = offer.asked ?? offer.price_per_hour;
  const [text, setText] = useState(amount(before, 8).replace(/,/g, ""));
  const [isAsked, setAsked] = useState(false);
  const reread = () => {
    for (const key of ["offers", "machine-types", "gpus", "hosts"]) void client.invalidateQueries({ queryKey: [key] });
  };
  const undo = async (isSet: string) => {
    // Only what this dialog has set; who changed it since is told in the refusal.
    await (offer.asked === null
      ? remove(address(pathOf(offer), { if_asked: isSet }))
      : put(pathOf(offer), { price_per_hour: offer.asked, if_asked: isSet })
    ).finally(reread);
    notifications.show({ message: `The price of ${plain(offer.tier)} is as it was before` });
  };
  const act = useMutation({
    mutationFn: async () => {
      await put(pathOf(offer), { price_per_hour: text.trim() });
      return text.trim();
    },
    onSuccess: (isSet) => {
      reread();
      close();
      showUndo(`The price of ${plain(offer.tier)} is set`, () => undo(isSet));
    },
  });
  const isValid = /^\d+(\.\d{1,8})?$/.test(text.trim());
  const isLot = isValid && timesOf(before, text) >= A_LOT;
  const set = {
    ...act,
    mutate: () => (isLot && !isAsked ? setAsked(true) : act.mutate()),
  };
  return (
    <FormDialog
      title={`Price of ${plain(offer.tier)}`}
      close={close}
      act={set}
      ready={isValid}
      submit={isLot && isAsked ? `Set ${text.trim()} anyway` : "Set"}
    >
      <TextInput
        label={`Price per hour of ${offer.tier}`}
        description={offer.unit === "processor" ? "Of one CPU" : "Of one GPU"}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAsked(false);
        }}
        error={!isValid && "An amount of money, such as 2.50"}
        data-autofocus
        inputMode="decimal"
      />
      {isValid && <Changes offer={offer} before={before} after={text.trim()} />}
      {isLot && isAsked && (
        <div className="wr-note wr-note-bad" role="alert">
          {timesText(before, text)}. Is {text.trim()} what you mean?
        </div>
      )}
      <Same
        method="PUT"
        path={`/offers/${offer.tier}`}
        body={{ price_per_hour: text.trim() }}
        command={`windrow offer set ${quoted(offer.tier)} ${quoted(text.trim())}`}
      />
    </FormDialog>
  );
}

/** What another price means, before it is set. */
function Changes({ offer, before, after }: { offer: Offer; before: string; after: string }) {
  const roles = useQuery(meQuery).data?.roles ?? [];
  return (
    <Facts
      rows={[
        [
          "Now",
          offer.asked === null ? `${perHour(before)}, the lowest offered` : `${perHour(offer.asked)}, set before`,
        ],
        ["Change", changeText(before, after)],
        ["Suggestion", perHour(offer.suggestion)],
        [
          "For",
          roles.includes("provider")
            ? "your own hosts, new rentals only"
            : "all hosts whose owner sets no price, new rentals only",
        ],
      ]}
    />
  );
}
