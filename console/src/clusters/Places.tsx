// The places elsewhere that were tried for a job or machine: each with its price, what became of it, and why.
import type { Try } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Empty, Panel } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { boughtText, tryPrice, trySays, tryTone } from "./elsewhere.ts";

const COLUMNS: readonly Column<Try>[] = [
  {
    id: "place",
    name: "Place",
    value: (row) => row.place,
    cell: (row) => (
      <>
        <span className="wr-nowrap">{plain(row.place)}</span>
        <br />
        <span className="wr-quiet wr-nowrap">{boughtText(row)}</span>
      </>
    ),
  },
  {
    id: "state",
    name: "State",
    value: (row) => row.state,
    cell: (row) => <State state={row.state} tone={tryTone(row.state)} />,
  },
  { id: "price", name: "Per hour", value: tryPrice, cell: (row) => <span className="wr-nowrap">{tryPrice(row)}</span> },
  { id: "said", name: "Why", value: trySays, cell: (row) => <span className="wr-break">{trySays(row)}</span> },
  moment("at", "When", (row) => row.at),
];

interface PlacesProps {
  /** null where it may run in this market only. */
  readonly tries: readonly Try[] | null;
  readonly backend: string | null;
  /** Why it waits, where the Master says so. */
  readonly reason?: string | null;
}

export function Places({ tries, backend, reason = null }: PlacesProps) {
  if (tries === null) return null;
  return (
    <Panel title="Places" bare>
      <DataTable
        of={["place", "places"]}
        columns={COLUMNS}
        id={(row) => String(row.number)}
        rows={tries}
        bare
        empty={
          <Empty title="Nothing was bought for it">
            {backend && backend !== "any" ? plain(backend) : "A backend"} is asked for a machine where this market has
            no room.{reason === null ? "" : ` Now: ${plain(reason)}.`}
          </Empty>
        }
      />
    </Panel>
  );
}
