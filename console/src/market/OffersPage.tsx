// The list of offers; providers and operators set prices here.
import { Button, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { put } from "../api/client.ts";
import { me as meQuery, offers as offersQuery, prices as pricesQuery } from "../api/queries.ts";
import type { Offer, Price as PriceElsewhere } from "../api/types.ts";
import { PageButton, useMayOpen } from "../app/PageButton.tsx";
import { quoted } from "../clusters/request.ts";
import { amount, bytes, count, DASH, listed, perHour, plain } from "../parts/format.ts";
import { Empty, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { TestMoney } from "../parts/state.tsx";
import { actions, events, figure, Named, simulated } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

/** What is counted: a host of a processor tier has one share of its processors. */
function rentable({ tier, unit, total }: Offer): string {
  const noun = unit === "processor" ? "host" : tier.includes(":") ? "slice" : "GPU";
  return total === 1 ? noun : `${noun}s`;
}

/** Its GPU, or `cpu`: "h100" of h100/A. A slice has none that others sell. */
const classOf = ({ tier }: Offer) => tier.split("/")[0] ?? tier;

const columnsFor = (
  mayPrice: boolean,
  mayRent: boolean,
  elsewhere: ReadonlyMap<string, number>,
): readonly Column<Offer>[] => [
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
  ...(mayRent ? [RENT] : []),
];

const RENT: Column<Offer> = actions((row) => (
  <Link
    className="wr-link"
    to="/clusters/new"
    search={{
      tier: row.tier,
      hardware: row.tier.startsWith("cpu") ? "cpu" : "gpu",
      ...(row.simulated ? { simulated: "true" } : {}),
    }}
  >
    Rent
  </Link>
));

export function OffersPage() {
  const query = useQuery(offersQuery);
  const me = useQuery(meQuery);
  const mayPrice = me.data?.roles.some((role) => role === "operator" || role === "provider") ?? false;
  const mayRent = useMayOpen("/clusters/new");
  const prices = useQuery(pricesQuery).data;
  const columns = useMemo(() => columnsFor(mayPrice, mayRent, lowest(prices ?? [])), [mayPrice, mayRent, prices]);
  return (
    <div className="wr-page">
      <PageHead
        title="GPUs & prices"
        beside={<TestMoney />}
        actions={
          <PageButton to="/prices" isQuiet>
            Prices elsewhere
          </PageButton>
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
        Price per GPU and hour (CPU tiers: per processor). A change applies to new rentals only.
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

function Price({ offer }: { offer: Offer }) {
  const client = useQueryClient();
  const [text, setText] = useState<string | null>(null);
  const change = useMutation({
    mutationFn: (price: string) =>
      put(`/offers/${offer.tier.split("/").map(encodeURIComponent).join("/")}`, { price_per_hour: price }),
    onSuccess: () => {
      notifications.show({ message: `The price of ${plain(offer.tier)} is set` });
      setText(null);
      for (const key of ["offers", "gpus", "hosts"]) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  if (text === null)
    return (
      <Button
        variant="default"
        onClick={() => setText(amount(offer.price_per_hour, 2, 6).replace(DASH, ""))}
        aria-label={`${perHour(offer.price_per_hour)}: change the price of ${offer.tier}`}
      >
        {perHour(offer.price_per_hour)}
      </Button>
    );
  const valid = /^\d+(\.\d{1,8})?$/.test(text.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (valid) change.mutate(text.trim());
      }}
    >
      <Group gap={6} justify="flex-end" wrap="nowrap">
        <TextInput
          size="xs"
          w={92}
          aria-label={`Price per hour of ${offer.tier}`}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          error={!valid}
          autoFocus
          inputMode="decimal"
        />
        <Button type="submit" disabled={!valid} loading={change.isPending}>
          Set
        </Button>
        <Button variant="subtle" color="gray" onClick={() => setText(null)}>
          Cancel
        </Button>
      </Group>
      {change.error && <ProblemNote error={change.error} />}
      <Same
        method="PUT"
        path={`/offers/${offer.tier}`}
        body={{ price_per_hour: text.trim() }}
        command={`windrow offer set ${quoted(offer.tier)} ${quoted(text.trim())}`}
      />
    </form>
  );
}
