// The fleet by host: hosts are chosen in the table, and something is done about all of them at once.
import { Button, Checkbox, Group, Menu } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { me as meQuery } from "../api/queries.ts";
import { ACTIONS, type Action, ActionAsked } from "../hosts/HostActions.tsx";
import type { Verb } from "../hosts/remedies.ts";
import { celsius, count, plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { simulated } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { COMMON, stateColumn } from "./columns.tsx";
import { type HostRow, hostsOf } from "./hosts.ts";
import { type Fleet, type FleetRow, mayActOn } from "./rows.ts";

const BULK: readonly Verb[] = ["drain", "activate", "maintenance", "verify", "measure", "prove", "quarantine"];

const COLUMNS: readonly Column<HostRow>[] = [
  COMMON.host,
  {
    id: "hardware",
    name: "Hardware",
    width: "minmax(150px, 1.2fr)",
    value: (row) => row.hardware,
    facet: true,
    facetName: plain,
    cell: (row) => <span className="wr-cut">{plain(row.hardware)}</span>,
  },
  COMMON.tier,
  COMMON.link,
  stateColumn("minmax(120px, .8fr)"),
  {
    id: "rented",
    name: "Rented",
    width: "70px",
    number: true,
    value: (row) => row.rented,
    cell: (row) => `${count(row.rented)} of ${count(row.of)}`,
  },
  COMMON.use,
  {
    id: "hottest",
    name: "Hottest",
    width: "70px",
    number: true,
    value: (row) => row.hottest,
    cell: (row) => celsius(row.hottest),
  },
  COMMON.power,
  COMMON.region,
  COMMON.at,
  simulated((row) => row.simulated),
  { id: "id", name: "Id", value: (row) => row.key, optional: true },
];

type Chosen = ReadonlySet<string>;

interface HostTableProps {
  rows: readonly FleetRow[] | undefined;
  fleet: Fleet;
  query: { error: unknown; refetch: () => unknown };
  empty: ReactNode;
}

export function HostTable({ rows, fleet, query, empty }: HostTableProps) {
  const navigate = useNavigate();
  const me = useQuery(meQuery).data;
  const [chosen, choose] = useState<Chosen>(new Set());
  const hosts = useMemo(() => rows && hostsOf(rows), [rows]);
  const isAll = me?.roles.includes("operator") ?? false;
  // As a text, which stays the same while the fleet changes every second.
  const own = useMemo(() => (isAll ? "" : mayActOn(fleet, me).join(" ")), [isAll, fleet, me]);
  const isMine = useMemo(() => {
    const ids = new Set(own.split(" "));
    return (row: HostRow) => isAll || ids.has(row.key);
  }, [isAll, own]);
  const may = isAll || own !== "";
  const columns = useMemo(() => (may ? [picking(chosen, choose, isMine), ...COLUMNS] : COLUMNS), [may, chosen, isMine]);
  return (
    <DataTable
      of={["host", "hosts"]}
      columns={columns}
      id={(row) => row.key}
      rows={hosts}
      query={query}
      address
      placeholder="Filter the hosts"
      open={(row) => void navigate({ to: "/hosts/$hostId", params: { hostId: row.key } })}
      empty={empty}
      tools={
        may
          ? (found) => <Bulk found={found.filter(isMine)} hosts={hosts ?? []} chosen={chosen} choose={choose} />
          : undefined
      }
    />
  );
}

function picking(chosen: Chosen, choose: (chosen: Chosen) => void, isMine: (row: HostRow) => boolean): Column<HostRow> {
  const toggle = (key: string) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    choose(next);
  };
  return {
    id: "pick",
    name: "Select",
    unseen: true,
    width: "40px",
    cell: (row) =>
      isMine(row) && (
        // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps the press from opening the row
        // biome-ignore lint/a11y/useKeyWithClickEvents: the checkbox within hears the keys
        <span onClick={(event) => event.stopPropagation()}>
          <Checkbox
            size="xs"
            aria-label={`Select ${plain(row.host)}`}
            checked={chosen.has(row.key)}
            onChange={() => toggle(row.key)}
            onKeyDown={(event) => event.stopPropagation()}
          />
        </span>
      ),
  };
}

interface BulkProps {
  found: readonly HostRow[];
  hosts: readonly HostRow[];
  chosen: Chosen;
  choose: (chosen: Chosen) => void;
}

/** What is done about all chosen hosts. */
function Bulk({ found, hosts, chosen, choose }: BulkProps) {
  const [asked, ask] = useState<Action | null>(null);
  const meant = hosts.filter((row) => chosen.has(row.key)).map((row) => ({ id: row.key, name: row.host }));
  return (
    <Group gap={6} role="group" aria-label="Selected hosts">
      {meant.length === 0 ? (
        <Button variant="default" onClick={() => choose(new Set(found.map((row) => row.key)))}>
          Select all {count(found.length)}
        </Button>
      ) : (
        <>
          <Menu position="bottom-start">
            <Menu.Target>
              <Button rightSection={<ChevronIcon size={12} />}>{count(meant.length)} selected</Button>
            </Menu.Target>
            <Menu.Dropdown>
              {BULK.map((verb) => ACTIONS[verb]).map((action) => (
                <Menu.Item key={action.verb} onClick={() => ask(action)}>
                  {action.name}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
          <Button variant="subtle" color="gray" onClick={() => choose(new Set())}>
            Select none
          </Button>
        </>
      )}
      {asked && <ActionAsked hosts={meant} action={asked} close={() => ask(null)} />}
    </Group>
  );
}
