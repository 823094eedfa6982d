// What GPU machines cost at other providers: the cheapest of each, with the date of its price.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { prices as pricesQuery } from "../api/queries.ts";
import type { Price } from "../api/types.ts";
import { DASH, perHour, plain } from "../parts/format.ts";
import { Empty, PageHead, Panel } from "../parts/page.tsx";
import { figure, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

const machine = ({ gpu, gpu_count, vcpu }: Price) => (gpu_count > 0 ? `${gpu_count} × ${gpu}` : `${vcpu ?? "?"} vCPU`);

const COLUMNS: readonly Column<Price>[] = [
  { id: "gpu", name: "GPUs", value: machine, facet: (row) => row.gpu, facetName: plain },
  { id: "provider", name: "Provider", value: (row) => row.provider, facet: true, facetName: plain },
  { id: "offer", name: "Offer", value: (row) => row.offer, cell: (row) => plain(row.offer) },
  { id: "kind", name: "Kind", value: (row) => row.kind, facet: true },
  figure(
    "price_per_gpu_hour",
    "USD per GPU",
    (row) => Number(row.price_per_gpu_hour),
    (cost) => perHour(String(cost)),
  ),
  figure(
    "price_per_hour",
    "USD in all",
    (row) => Number(row.price_per_hour),
    (cost) => perHour(String(cost)),
  ),
  { id: "place", name: "Place", value: (row) => row.zone ?? row.region ?? "any" },
  { id: "as_of", name: "Price of", value: (row) => row.as_of, cell: (row) => row.as_of ?? "unknown date" },
  state(
    "State",
    (row) => row.state,
    (row) => row.reason,
  ),
  { id: "source", name: "Source", value: (row) => row.source, optional: true },
  { id: "company", name: "Company", value: (row) => `${row.company}, ${row.seat}`, optional: true },
  { id: "country", name: "Country of the data centre", value: (row) => row.country ?? DASH, optional: true },
  { id: "billed_in", name: "Billed in", value: (row) => row.billed_in, optional: true },
  figure("minimum_seconds", "Shortest use billed, s", (row) => row.minimum_seconds, String, { optional: true }),
];

export function PricesPage() {
  const query = useQuery(pricesQuery);
  return (
    <div className="wr-page">
      <PageHead title="Prices elsewhere" />
      <Panel bare label="Prices elsewhere">
        <DataTable
          of={["price", "prices"]}
          columns={COLUMNS}
          id={(row) => row.id}
          rows={query.data}
          query={query}
          address
          empty={
            <Empty title="No prices" command="windrow price --compare">
              The price book of this Master is empty.
            </Empty>
          }
        />
      </Panel>
      <Text size="sm" className="wr-quiet" mt="sm">
        The cheapest of each provider, by GPU and kind. These are published prices of the day that is shown, and no
        offers of this market; one that is expired is too old to count on.
      </Text>
    </div>
  );
}
