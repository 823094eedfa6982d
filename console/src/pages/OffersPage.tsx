// What can be rented and for how much; those who own hosts set the price here.
import { Button, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { put } from "../api/client.ts";
import { me as meQuery, offers as offersQuery } from "../api/queries.ts";
import type { Offer } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { amount, bytes, count, DASH, listed, perHour, plain } from "../format.ts";
import { CsvButton } from "../parts/Csv.tsx";
import { Empty, Loaded, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Simulated, TestMoney } from "../parts/state.tsx";
import { quoted } from "../request.ts";

const COLUMNS: readonly CsvColumn<Offer>[] = [
  { name: "tier", value: (row) => row.tier },
  { name: "simulated", value: (row) => row.simulated },
  { name: "unit", value: (row) => row.unit },
  { name: "free", value: (row) => row.free },
  { name: "total", value: (row) => row.total },
  { name: "hosts", value: (row) => row.hosts },
  { name: "min_memory_bytes", value: (row) => row.min_memory_bytes },
  { name: "price_per_hour", value: (row) => row.price_per_hour },
  { name: "suggestion", value: (row) => row.suggestion },
  { name: "currency", value: (row) => row.currency },
];

export function OffersPage() {
  const query = useQuery(offersQuery);
  const me = useQuery(meQuery);
  const mayPrice = me.data?.roles.some((role) => role === "operator" || role === "provider") ?? false;
  return (
    <div className="wr-page">
      <PageHead
        title="Offers"
        beside={<TestMoney />}
        actions={
          <CsvButton
            of="the offers"
            name="windrow-offers"
            columns={COLUMNS}
            rows={() => query.data ?? []}
            disabled={!query.data?.length}
          />
        }
      />
      <Panel bare label="Offers">
        <Loaded query={query}>
          {(offers) =>
            offers.length === 0 ? (
              <Empty
                title="Nothing is offered yet"
                command="windrow offer ls"
                action={
                  <Button component={Link} to="/join">
                    Join a host
                  </Button>
                }
              >
                Each host is put in a tier by what was measured; each tier has one price per hour. Offers appear with
                the first host.
              </Empty>
            ) : (
              <div className="wr-scroll">
                <table className="wr-table">
                  <thead>
                    <tr>
                      <th>Tier</th>
                      <th className="num">Free</th>
                      <th className="num">Of</th>
                      <th className="num">Hosts</th>
                      <th className="num">Memory from</th>
                      <th>Runtimes</th>
                      <th className="num">Suggestion</th>
                      <th className="num">Price per hour</th>
                      <th>Events</th>
                      <th>
                        <span className="wr-unseen">Rent</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {offers.map((offer) => (
                      <Row key={`${offer.tier} ${offer.simulated}`} offer={offer} mayPrice={mayPrice} />
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Loaded>
      </Panel>
      <Text size="sm" className="wr-quiet" mt="sm">
        A price is per GPU, or per processor in cpu tiers, and is frozen for a cluster when it is created: changing it
        here touches only what is rented later.
      </Text>
    </div>
  );
}

function Row({ offer, mayPrice }: { offer: Offer; mayPrice: boolean }) {
  return (
    <tr>
      <td>
        <strong>{plain(offer.tier)}</strong>
        {offer.simulated && (
          <>
            {" "}
            <Simulated />
          </>
        )}
      </td>
      <td className="num">{count(offer.free)}</td>
      <td className="num">{count(offer.total)}</td>
      <td className="num">{count(offer.hosts)}</td>
      <td className="num">{bytes(offer.min_memory_bytes)}</td>
      <td>
        {listed(offer.runtimes)}
        {offer.container_users && (
          <div className="wr-quiet">
            {offer.container_users === "own"
              ? "containers have users of their own"
              : "containers share the host's users"}
          </div>
        )}
        {offer.notes.map((note) => (
          <div key={note} className="wr-quiet">
            {plain(note)}
          </div>
        ))}
      </td>
      <td className="num">
        {offer.suggestion_reason ? (
          <Tooltip label={offer.suggestion_reason} multiline maw={360}>
            <span tabIndex={0}>{perHour(offer.suggestion)}</span>
          </Tooltip>
        ) : (
          perHour(offer.suggestion)
        )}
      </td>
      <td className="num">{mayPrice ? <Price offer={offer} /> : perHour(offer.price_per_hour)}</td>
      <td>
        <Link
          className="wr-link"
          to="/events"
          search={{ subject: `tier/${offer.tier}` }}
          aria-label={`Events of tier ${plain(offer.tier)}`}
        >
          Events
        </Link>
      </td>
      <td>
        <Link
          className="wr-link"
          to="/clusters/new"
          search={{
            tier: offer.tier,
            hardware: offer.tier.startsWith("cpu") ? "cpu" : "gpu",
            ...(offer.simulated ? { simulated: "true" } : {}),
          }}
        >
          Rent
        </Link>
      </td>
    </tr>
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
