// What I rent and rented.
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clusters as clustersQuery } from "../api/queries.ts";
import type { Cluster } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { amount, DASH, perHour, plain, words } from "../format.ts";
import { CsvButton } from "../parts/Csv.tsx";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Simulated, State, TestMoney, When } from "../parts/state.tsx";

const COLUMNS: readonly CsvColumn<Cluster>[] = [
  { name: "id", value: (row) => row.id },
  { name: "name", value: (row) => row.name },
  { name: "phase", value: (row) => row.phase },
  { name: "kind", value: (row) => row.kind },
  { name: "simulated", value: (row) => row.request.simulated },
  {
    name: "hosts",
    value: (row) =>
      row.workloads
        .filter((work) => work.is_member)
        .map((work) => work.host_name)
        .join(" "),
  },
  { name: "tier", value: (row) => row.tier },
  { name: "price_per_hour", value: (row) => row.price_per_hour },
  { name: "cost_so_far", value: (row) => row.cost_so_far },
  { name: "created_at", value: (row) => row.created_at },
  { name: "ended_at", value: (row) => row.ended_at },
];

export function ClustersPage() {
  const query = useQuery(clustersQuery);
  const items = query.data?.items ?? [];
  const make = (
    <Button component={Link} to="/clusters/new" leftSection={<PlusIcon />}>
      New cluster
    </Button>
  );
  return (
    <div className="wr-page">
      <PageHead
        title="Clusters"
        beside={<TestMoney />}
        actions={
          <>
            <CsvButton
              of="the clusters"
              name="windrow-clusters"
              columns={COLUMNS}
              rows={() => items}
              disabled={items.length === 0}
            />
            {make}
          </>
        }
      />
      <Panel bare label="Clusters">
        <Loaded query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="Nothing rented yet" command="windrow run -- python -c 'print(6 * 7)'" action={make}>
                A cluster is one or more slots with your command running on them. Create one here, or from a terminal:
              </Empty>
            ) : (
              <div className="wr-scroll">
                <table className="wr-table">
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>Phase</th>
                      <th>Kind</th>
                      <th>Runs on</th>
                      <th>Tier</th>
                      <th className="num">Price</th>
                      <th className="num">Cost so far</th>
                      <th>Created</th>
                      <th>Ended</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((cluster) => (
                      <Row key={cluster.id} cluster={cluster} />
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}

function Row({ cluster }: { cluster: Cluster }) {
  return (
    <tr>
      <td>
        <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: cluster.id }}>
          {plain(cluster.name)}
        </Link>
        {cluster.request.simulated && (
          <>
            {" "}
            <Simulated />
          </>
        )}
      </td>
      <td>
        <State state={cluster.phase} reason={cluster.reason} />
      </td>
      <td>{words(cluster.kind)}</td>
      <td className="wr-break">
        {cluster.workloads
          .filter((work) => work.is_member)
          .map((work) => plain(work.host_name))
          .join(", ") || DASH}
      </td>
      <td>{plain(cluster.tier)}</td>
      <td className="num">{perHour(cluster.price_per_hour)}</td>
      <td className="num">{amount(cluster.cost_so_far, 2, 6)}</td>
      <td>
        <When at={cluster.created_at} />
      </td>
      <td>
        <When at={cluster.ended_at} />
      </td>
    </tr>
  );
}
