// The list of the account's machines. Switches add ended machines and the Master's test rentals.

import { Button, Group, Switch } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { clustersAndTests, clusters as clustersQuery } from "../api/queries.ts";
import type { Cluster } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { amount, count, listed, perHour, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, PageHead, Panel } from "../parts/page.tsx";
import { TestMoney } from "../parts/state.tsx";
import { figure, identity, moment, Named, simulated, state } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import { kindName } from "./kinds.ts";

const hostsOf = (row: Cluster) => row.workloads.filter((work) => work.is_member).map((work) => work.host_name);

const COLUMNS: readonly Column<Cluster>[] = [
  {
    id: "name",
    name: "Name",
    width: "220px",
    value: (row) => row.name,
    cell: (row) => (
      <Named isSimulated={row.request.simulated}>
        <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: row.id }}>
          {plain(row.name)}
        </Link>
      </Named>
    ),
  },
  state(
    "Phase",
    (row) => row.phase,
    (row) => row.problem ?? row.reason,
    { id: "phase" },
  ),
  {
    id: "kind",
    name: "Kind",
    value: (row) => row.kind,
    facet: true,
    facetName: kindName,
    cell: (row) => kindName(row.kind),
  },
  {
    id: "hosts",
    name: "Runs on",
    value: (row) => hostsOf(row).join(" "),
    cell: (row) => <span className="wr-break">{listed(hostsOf(row))}</span>,
  },
  {
    id: "tier",
    name: "Tier",
    value: (row) => row.tier,
    facet: true,
    facetName: plain,
    cell: (row) => <span className="wr-nowrap">{plain(row.tier)}</span>,
  },
  figure("price_per_hour", "Price", (row) => row.price_per_hour, perHour),
  figure(
    "cost_so_far",
    "Cost so far",
    (row) => row.cost_so_far,
    (cost) => amount(cost),
  ),
  moment("created_at", "Created", (row) => row.created_at),
  moment("ended_at", "Ended", (row) => row.ended_at),
  simulated((row) => row.request.simulated),
  identity((row) => row.id, { optional: true }),
];

/** As the command has it; one that is stopped can be started again. */
const ENDED: ReadonlySet<string> = new Set(["deleted", "finished", "failed"]);

export function ClustersPage() {
  const [withEnded, showEnded] = useState(false);
  const [withTests, showTests] = useState(false);
  const list = usePaged(withTests ? clustersAndTests : clustersQuery, (row) => row.id);
  const rows = withEnded ? list.rows : list.rows?.filter((row) => !ENDED.has(row.phase.toLowerCase()));
  const hidden = (list.rows?.length ?? 0) - (rows?.length ?? 0);
  const make = (
    <PageButton to="/new" icon={<PlusIcon />}>
      New machine
    </PageButton>
  );
  return (
    <div className="wr-page">
      <PageHead title="Machines" beside={<TestMoney />} actions={make} />
      <Group gap="sm" mb="sm" className="wr-no-print">
        <Switch label="Show ended" checked={withEnded} onChange={(event) => showEnded(event.currentTarget.checked)} />
        <Switch
          label="Show acceptance tests of hosts"
          checked={withTests}
          onChange={(event) => showTests(event.currentTarget.checked)}
        />
      </Group>
      <Panel bare label="Machines">
        <DataTable
          of={["machine", "machines"]}
          columns={COLUMNS}
          {...list}
          rows={rows}
          address
          empty={
            hidden ? (
              <Empty
                title="Nothing runs or waits"
                action={
                  <Button variant="default" onClick={() => showEnded(true)}>
                    Show {count(hidden)} ended
                  </Button>
                }
              >
                All machines of this list have ended.
              </Empty>
            ) : (
              <Empty title="Nothing rented yet" command="windrow run -- python -c 'print(6 * 7)'" action={make}>
                A machine is a rented host, or a part of one, with your command on it or your shell. Create one here, or
                from a terminal:
              </Empty>
            )
          }
        />
      </Panel>
    </div>
  );
}
