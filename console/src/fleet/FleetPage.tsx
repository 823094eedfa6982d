// The fleet page: totals, and the live table of every GPU and every host without GPUs, or of hosts.
import { Button, SegmentedControl, Text } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo } from "react";
import { PageButton } from "../app/PageButton.tsx";
import { USES } from "../parts/Bars.tsx";
import { count, percent } from "../parts/format.ts";
import { JoinIcon } from "../parts/icons.tsx";
import { Empty, Figure, PageHead } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { FLEET_COLUMNS } from "./columns.tsx";
import { useFleet } from "./feed.ts";
import { fleetMatcher } from "./filter.ts";
import { HostTable } from "./HostTable.tsx";
import type { FleetRow } from "./rows.ts";
import { Views } from "./Views.tsx";

const SEARCH_HELP =
  "Type a name, model, tier, region or state. You can also compare: util>80 temp>=75 " +
  "mem>=40 used<10 (GiB) power>300 price<2.";

export function FleetPage() {
  const { fleet, loading, error, live, again } = useFleet();
  const navigate = useNavigate();
  const rows = useDeferredValue(fleet.rows);
  // What was read is drawn a moment later: until then there are no rows, which is not the same as no hosts.
  const isRead = !loading && (rows.length > 0 || (!error && fleet.rows.length === 0));
  const { view } = useSearch({ from: "/fleet" });
  const open = (row: FleetRow) =>
    void (row.kind === "gpu"
      ? navigate({ to: "/gpus/$gpuId", params: { gpuId: row.key } })
      : navigate({ to: "/hosts/$hostId", params: { hostId: row.hostId } }));
  const query = { error, refetch: again };
  const empty = (
    <Empty
      title="No hosts yet"
      command="windrow token add --join"
      action={<PageButton to="/join">Add a host by one line</PageButton>}
    >
      A host appears here seconds after its agent joins. On the Master's machine, <code>windrow up</code> joins that
      very machine; for another, make a join token here or with:
    </Empty>
  );
  return (
    <div className="wr-page-full">
      <PageHead
        title="Fleet"
        beside={<Liveness live={live} loading={loading} />}
        actions={
          <>
            <SegmentedControl
              size="xs"
              aria-label="Rows"
              value={view === "hosts" ? "hosts" : "gpus"}
              onChange={(next) =>
                void navigate({ to: "/fleet", search: next === "hosts" ? { view: next } : {}, replace: true })
              }
              data={[
                { value: "gpus", label: "GPUs" },
                { value: "hosts", label: "Hosts" },
              ]}
            />
            <Views />
            <Button component={Link} to="/fleet/map" variant="default">
              Map
            </Button>
            <PageButton to="/join" icon={<JoinIcon />} isQuiet>
              Add a host
            </PageButton>
          </>
        }
      />
      <Totals rows={rows} hosts={fleet.hostCount} known={!loading && (error === null || rows.length > 0)} />
      {view === "hosts" ? (
        <HostTable rows={isRead ? rows : undefined} fleet={fleet} query={query} empty={empty} />
      ) : (
        <DataTable
          of={["GPU or host", "fleet"]}
          columns={FLEET_COLUMNS}
          id={(row) => row.key}
          rows={isRead ? rows : undefined}
          query={query}
          address
          match={fleetMatcher}
          help={SEARCH_HELP}
          placeholder="Filter: words, util>80, mem>=40 …"
          open={open}
          empty={empty}
        />
      )}
    </div>
  );
}

function Liveness({ live, loading }: { live: boolean; loading: boolean }) {
  if (loading) return null;
  return (
    <Text size="xs" component="span">
      <State state={live ? "Live" : "Not live"} tone={live ? "ok" : "warn"} />
    </Text>
  );
}

/** known: the fleet was read; before that there is nothing to count, which is not zero. */
function Totals({ rows, hosts, known }: { rows: readonly FleetRow[]; hosts: number; known: boolean }) {
  const sums = useMemo(() => {
    const cards = rows.filter((row) => row.kind === "gpu");
    const busy = cards.filter((row) => row.use !== null);
    return {
      cards: cards.length,
      in: USES.map(([use, name]) => [name, cards.filter((row) => row.state === use).length] as const),
      use: busy.length ? busy.reduce((sum, row) => sum + (row.use ?? 0), 0) / busy.length : null,
      simulated: new Set(rows.filter((row) => row.simulated).map((row) => row.hostId)).size,
    };
  }, [rows]);
  const shown = (n: number) => count(known ? n : null);
  return (
    <div className="wr-figures" data-testid="totals">
      <Figure
        label="hosts"
        value={shown(hosts)}
        note={sums.simulated ? `${count(sums.simulated)} simulated` : undefined}
      />
      <Figure label="GPUs" value={shown(sums.cards)} />
      {sums.in.map(([name, found]) => (
        <Figure key={name} label={name.toLowerCase()} value={shown(found)} />
      ))}
      <Figure label="mean GPU use" value={percent(sums.use)} />
    </div>
  );
}
