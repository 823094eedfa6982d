// The whole fleet, live: every card and every host without cards, filtered and sorted by what the address says.
import { Badge, Button, Group, Menu, Text } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import type { CsvColumn } from "../csv.ts";
import { FleetTable } from "../fleet/FleetTable.tsx";
import { useFleet } from "../fleet/feed.ts";
import {
  EVERYTHING,
  FACETS,
  type Facet,
  type FleetFilter,
  filterFromSearch,
  matcher,
  searchFromFilter,
  tally,
  toggled,
} from "../fleet/filter.ts";
import type { FleetRow } from "../fleet/rows.ts";
import { count, percent, plain, words } from "../format.ts";
import { CsvButton } from "../parts/Csv.tsx";
import { FilterBox } from "../parts/FilterBox.tsx";
import { ChevronIcon, JoinIcon } from "../parts/icons.tsx";
import { Empty, Figure, PageHead, ProblemNote, Waiting } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";

const FACET_NAMES: Record<Facet, string> = {
  kind: "Kind",
  link: "Host link",
  slot: "Slot",
  region: "Region",
  tier: "Tier",
  simulated: "Real or simulated",
};
const VALUE_NAMES: Record<string, string> = { gpu: "GPU", cpu: "CPU host", none: "None" };

const FLEET_CSV: readonly CsvColumn<FleetRow>[] = [
  { name: "id", value: (row) => row.key },
  { name: "host_id", value: (row) => row.hostId },
  { name: "host", value: (row) => row.host },
  { name: "simulated", value: (row) => row.simulated },
  { name: "hardware", value: (row) => row.model },
  { name: "tier", value: (row) => row.tier },
  { name: "region", value: (row) => row.region },
  { name: "host_link", value: (row) => row.link },
  { name: "slot", value: (row) => row.slot },
  { name: "cluster_id", value: (row) => row.clusterId },
  { name: "utilization_ratio", value: (row) => row.use },
  { name: "memory_used_bytes", value: (row) => row.memoryUsedBytes },
  { name: "memory_bytes", value: (row) => row.memoryBytes },
  { name: "temperature_celsius", value: (row) => row.temperature },
  { name: "power_watts", value: (row) => row.power },
  { name: "price_per_hour", value: (row) => row.price },
  { name: "at", value: (row) => row.at },
];

const SEARCH_HELP =
  "Words match host, hardware, tier, region, state or id. Comparisons: util>80 temp>=75 " +
  "mem>=40 used<10 (GiB) power>300 price<2.";

export function FleetPage() {
  const { fleet, loading, error, live, again } = useFleet();
  const search = useSearch({ from: "/fleet" });
  const navigate = useNavigate({ from: "/fleet" });
  const filter = useMemo(() => filterFromSearch(search), [search]);
  const apply = (next: FleetFilter) => void navigate({ to: "/fleet", search: searchFromFilter(next), replace: true });

  const deferred = useDeferredValue(fleet.rows);
  const rows = useMemo(() => {
    const keep = matcher(filter);
    return deferred.filter(keep);
  }, [deferred, filter]);
  const narrowed = rows.length !== deferred.length;

  return (
    <div className="wr-page-full">
      <PageHead
        title="Fleet"
        beside={<Liveness live={live} loading={loading} />}
        actions={
          <>
            <CsvButton
              of="the fleet"
              name="windrow-fleet"
              columns={FLEET_CSV}
              rows={() => rows}
              disabled={rows.length === 0}
            />
            <Button component={Link} to="/fleet/map" variant="default">
              Map
            </Button>
            <Button component={Link} to="/join" variant="default" leftSection={<JoinIcon />}>
              Join a host
            </Button>
          </>
        }
      />
      <Totals rows={deferred} hosts={fleet.hostCount} known={!loading && (error === null || deferred.length > 0)} />
      <Group gap={6} my={12} align="center">
        <FilterBox
          value={filter.text}
          onChange={(text) => apply({ ...filter, text })}
          placeholder="Filter: words, util>80, mem>=40 …"
          help={SEARCH_HELP}
          restMs={60}
        />
        {FACETS.map((facet) => (
          <FacetMenu key={facet} facet={facet} rows={deferred} filter={filter} apply={apply} />
        ))}
        {narrowed && (
          <>
            <Text size="sm" className="wr-quiet" aria-live="polite" data-testid="shown">
              {count(rows.length)} of {count(deferred.length)}
            </Text>
            <Button variant="subtle" color="gray" onClick={() => apply({ ...EVERYTHING, sort: filter.sort })}>
              Clear
            </Button>
          </>
        )}
      </Group>
      {error && fleet.rows.length === 0 ? (
        <ProblemNote error={error} retry={again} />
      ) : loading ? (
        <Waiting lines={10} />
      ) : (
        <FleetTable
          rows={rows}
          sort={filter.sort}
          onSort={(sort) => apply({ ...filter, sort })}
          empty={
            narrowed ? (
              <Empty
                title="Nothing matches this filter"
                action={
                  <Button variant="default" onClick={() => apply({ ...EVERYTHING, sort: filter.sort })}>
                    Show all {count(deferred.length)}
                  </Button>
                }
              >
                {SEARCH_HELP}
              </Empty>
            ) : (
              <Empty
                title="No hosts yet"
                command="windrow token add --join"
                action={
                  <Button component={Link} to="/join">
                    Join a host by one line
                  </Button>
                }
              >
                A host appears here seconds after its agent joins. On the machine that runs the Master,{" "}
                <code>windrow up</code> joins that very machine; for another, make a join token here or with:
              </Empty>
            )
          }
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
    const state = (row: FleetRow) => (row.slot ?? "").toLowerCase();
    const busy = cards.filter((row) => row.use !== null);
    return {
      cards: cards.length,
      free: cards.filter((row) => state(row) === "free").length,
      taken: cards.filter((row) => ["reserved", "starting", "running", "stopping"].includes(state(row))).length,
      faulted: cards.filter((row) => state(row) === "faulted").length,
      away: new Set(rows.filter((row) => row.link.toLowerCase() !== "online").map((row) => row.hostId)).size,
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
      <Figure label="not online" value={shown(sums.away)} />
      <Figure label="GPUs" value={shown(sums.cards)} />
      <Figure label="free" value={shown(sums.free)} />
      <Figure label="in use" value={shown(sums.taken)} />
      <Figure label="faulted" value={shown(sums.faulted)} />
      <Figure label="mean GPU use" value={percent(sums.use)} />
    </div>
  );
}

function FacetMenu({
  facet,
  rows,
  filter,
  apply,
}: {
  facet: Facet;
  rows: readonly FleetRow[];
  filter: FleetFilter;
  apply: (filter: FleetFilter) => void;
}) {
  const [opened, setOpened] = useState(false);
  const chosen = filter.facets[facet];
  const options = useMemo(() => (opened ? tally(rows, facet) : []), [opened, rows, facet]);
  return (
    <Menu opened={opened} onChange={setOpened} closeOnItemClick={false} position="bottom-start">
      <Menu.Target>
        <Button variant={chosen.length ? "light" : "default"} rightSection={<ChevronIcon size={12} />}>
          {FACET_NAMES[facet]}
          {chosen.length > 0 && (
            <Badge size="sm" ml={6} variant="filled">
              {chosen.length === 1 ? plain(VALUE_NAMES[chosen[0]!] ?? words(chosen[0])) : chosen.length}
            </Badge>
          )}
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={360} style={{ overflowY: "auto" }}>
        {options.map(([value, n]) => (
          <Menu.CheckboxItem
            key={value}
            checked={chosen.includes(value)}
            onChange={() => apply(toggled(filter, facet, value))}
            rightSection={<span className="wr-quiet">{count(n)}</span>}
          >
            {facet === "tier" || facet === "region"
              ? plain(VALUE_NAMES[value] ?? value)
              : (VALUE_NAMES[value] ?? words(value))}
          </Menu.CheckboxItem>
        ))}
        {options.length === 0 && <Menu.Label>Nothing to choose from</Menu.Label>}
      </Menu.Dropdown>
    </Menu>
  );
}
