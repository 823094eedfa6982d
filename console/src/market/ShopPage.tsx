// The shop: the machine types that can be rented, narrowed by a filter in the address, with prices for one's own hours.
import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { machineTypes } from "../api/queries.ts";
import type { MachineType } from "../api/types.ts";
import { PageButton, useMayOpen } from "../app/PageButton.tsx";
import { amount, bitrate, bytes, count, decimal, listed, percent, perHour, plain, rate } from "../parts/format.ts";
import { LinkButton } from "../parts/LinkButton.tsx";
import { Empty, PageHead, Panel, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { TestMoney, When } from "../parts/state.tsx";
import type { SearchWords } from "../tables/address.ts";
import { actions, figure, Named } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { PaidPrices } from "./PaidPrices.tsx";
import { ShopFilter } from "./ShopFilter.tsx";
import {
  commandOf,
  FIELDS,
  type Filter,
  filterFrom,
  foldedOf,
  gpusOf,
  gradeOf,
  hoursOf,
  isNarrowed,
  isProcessors,
  modelOf,
  queryOf,
  rentOf,
  speedForMoney,
  totalOf,
} from "./shop.ts";

export function ShopPage() {
  const search = useSearch({ from: "/shop" });
  const filter = useMemo(() => filterFrom(search), [search]);
  const navigate = useNavigate();
  const change = (part: Filter) =>
    void navigate({
      to: ".",
      search: (now: SearchWords) => ({ ...now, ...part }),
      replace: true,
      resetScroll: false,
    });
  const clear = () => change(Object.fromEntries(FIELDS.map((name) => [name, undefined])));
  const all = useQuery(machineTypes({}));
  const asked = queryOf(filter);
  const found = useQuery(machineTypes(asked));
  const anyPrice = useQuery(machineTypes({ ...asked, min_price: undefined, max_price: undefined }));
  const mayRent = useMayOpen("/clusters/new");
  const rows = useMemo(() => found.data && [...found.data].sort(cheapestFirst), [found.data]);
  const [unfolded, unfold] = useState(false);
  const folded = useMemo(
    () => (unfolded || search.q || !rows ? [] : foldedOf(rows, filter)),
    [unfolded, search.q, rows, filter],
  );
  const shown = useMemo(() => rows?.filter((row) => !folded.includes(row)), [rows, folded]);
  const columns = useMemo(() => columnsOf(all.data ?? [], filter, mayRent), [all.data, filter, mayRent]);
  return (
    <div className="wr-page">
      <PageHead
        title="GPUs & prices"
        beside={<TestMoney />}
        actions={
          <>
            <PageButton to="/offers" isQuiet>
              Set prices
            </PageButton>
            <PageButton to="/prices" isQuiet>
              Prices elsewhere
            </PageButton>
          </>
        }
      />
      {all.isPending ? (
        <Waiting lines={12} />
      ) : (
        <div className="wr-stack">
          {all.data && all.data.length > 0 && (
            <ShopFilter all={all.data} anyPrice={anyPrice.data ?? []} filter={filter} change={change} clear={clear} />
          )}
          <Panel bare label="Machine types">
            <DataTable
              of={["machine type", "machine types"]}
              columns={columns}
              id={(row) => `${row.tier} ${row.on_one_host} ${row.region} ${row.simulated}`}
              rows={shown}
              query={found}
              address
              empty={all.data?.length === 0 ? <Nothing /> : <NothingFits clear={clear} />}
            />
            {folded.length > 0 && (
              <Group px={12} py={8} className="wr-no-print">
                <Button variant="default" onClick={() => unfold(true)}>
                  Show {count(folded.length)} simulated {folded.length === 1 ? "machine type" : "machine types"}
                </Button>
              </Group>
            )}
          </Panel>
          {rows && rows.length > 0 && <PaidPrices rows={rows} />}
          <Text size="sm" className="wr-quiet">
            Price per GPU and hour, of CPUs per CPU; you pay by the second, and a rental keeps the price it began with.
            A row counts hosts with as many GPUs of one kind in one region, and shows the least that is known of them.
            Speed: what 1.00 an hour buys of the GPU memory bandwidth that was measured.
          </Text>
          <Same
            method="GET"
            path={`/machine-classes${wordsOf({ unit: "gpu", ...asked })}`}
            command={commandOf(filter, quoted)}
          />
        </div>
      )}
    </div>
  );
}

function wordsOf(asked: ReturnType<typeof queryOf>): string {
  const words = Object.entries(asked).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]]));
  return words.length ? `?${new URLSearchParams(words)}` : "";
}

/** Real before simulated, what can be had now before what is full, then by price. */
function cheapestFirst(one: MachineType, other: MachineType): number {
  return (
    Number(one.simulated) - Number(other.simulated) ||
    Number(other.free > 0) - Number(one.free > 0) ||
    Number(isProcessors(one)) - Number(isProcessors(other)) ||
    Number(one.price_per_hour) - Number(other.price_per_hour)
  );
}

function Nothing() {
  return (
    <Empty
      title="Nothing is offered yet"
      command="windrow gpus"
      action={<PageButton to="/join">Add a host</PageButton>}
    >
      Machines appear here with the first host of this market.
    </Empty>
  );
}

function NothingFits({ clear }: { clear: () => void }) {
  return (
    <Empty
      title="No machine fits this filter"
      action={
        <Button variant="default" onClick={clear}>
          Clear the filter
        </Button>
      }
    >
      Ask for less memory, fewer GPUs or a higher price.
    </Empty>
  );
}

type Columns = readonly Column<MachineType>[];

/** The columns for which there is anything to show in this market. */
function columnsOf(all: readonly MachineType[], filter: Filter, mayRent: boolean): Columns {
  const [gpus, hours] = [gpusOf(filter), hoursOf(filter)];
  return [
    ...ABOUT,
    ...(all.some((row) => row.region !== null) ? [REGION] : []),
    {
      id: "available",
      name: "Free now",
      number: true,
      value: (row) => row.free,
      cell: (row) => <Free row={row} gpus={gpus} />,
    },
    figure(
      "price_per_hour",
      "Price",
      (row) => Number(row.price_per_hour),
      (price) => perHour(String(price)),
      {
        cell: (row) => <Price row={row} />,
      },
    ),
    figure("total_price", `For ${hours} h`, (row) => totalOf(row, gpus, hours), String, {
      cell: (row) => <Total row={row} gpus={gpus} hours={hours} />,
    }),
    ...OF_HOSTS.filter((column) => all.some((row) => column.value?.(row) != null)),
    ...MORE,
    ...(mayRent ? [actions<MachineType>((row) => <Rent row={row} filter={filter} all={all} />)] : []),
  ];
}

const ABOUT: Columns = [
  {
    id: "model",
    name: "GPU",
    value: (row) => `${modelOf(row)} ${row.name ?? ""} ${row.simulated ? "simulated" : ""}`.trim(),
    cell: (row) => (
      <div className="wr-shop-gpu">
        <Named isSimulated={row.simulated}>
          <strong>{modelOf(row)}</strong>
        </Named>
        <div className="wr-quiet">
          {row.name && `${plain(row.name)} · `}
          grade {gradeOf(row)}
        </div>
      </div>
    ),
  },
  figure("memory_bytes", "Memory", (row) => row.memory_bytes, bytes),
  figure("on_one_host", "On one host", (row) => row.on_one_host, count),
];
const REGION: Column<MachineType> = { id: "place", name: "Region", value: (row) => row.region };

const OF_HOSTS: Columns = [
  figure("value", "Speed for 1.00/h", speedForMoney, (value) => (value === null ? "not measured" : rate(value, "B/s"))),
  figure(
    "compute",
    "Matrix speed",
    (row) => row.matrix_operations_per_s,
    (speed) => (speed === null ? "not measured" : rate(speed, "op/s")),
    { optional: true },
  ),
  figure(
    "reliable",
    "Reliability",
    (row) => row.reliability,
    (ratio) => (ratio === null ? "not known yet" : `${decimal(ratio * 100, 1)}%`),
  ),
  figure("upload", "Up / down", (row) => row.up_bps, bitrate, {
    cell: (row) => (row.up_bps === null ? "not measured" : `${bitrate(row.up_bps)} / ${bitrate(row.down_bps)}`),
  }),
  figure("checked", "Verified", (row) => (row.verified_hosts > 0 ? row.verified_hosts / row.hosts : null), percent, {
    cell: (row) => `${count(row.verified_hosts)} of ${count(row.hosts)} ${row.hosts === 1 ? "host" : "hosts"}`,
  }),
];

const MORE: Columns = [
  {
    id: "drivers",
    name: "Driver",
    value: (row) => row.drivers.join(" "),
    cell: (row) => listed(row.drivers),
    optional: true,
  },
  { id: "isolation", name: "Isolation", value: (row) => row.isolation, optional: true },
  {
    id: "runtimes",
    name: "Runtimes",
    value: (row) => row.runtimes.join(" "),
    cell: (row) => listed(row.runtimes),
    optional: true,
  },
  {
    id: "users",
    name: "Users in containers",
    value: (row) => row.container_users,
    cell: (row) =>
      row.container_users === "own" ? "their own" : row.container_users === "host" ? "the host's" : "not known",
    optional: true,
  },
];

function Free({ row, gpus }: { row: MachineType; gpus: number }) {
  const most = row.free_on_one_host;
  return (
    <>
      {count(row.free)} of {count(row.total)}
      {isProcessors(row) && (row.total === 1 ? " host" : " hosts")}
      {row.free > 0 && most < Math.max(gpus, row.on_one_host) && !isProcessors(row) && (
        <div className="wr-quiet">at most {count(most)} on one host</div>
      )}
      {row.ends_at && (
        <div className="wr-quiet" title="The first lease with a set end; its renter may move it, and jobs wait, too.">
          next lease ends <When at={row.ends_at} />
        </div>
      )}
    </>
  );
}

function Price({ row }: { row: MachineType }) {
  const top = row.prices.at(-1);
  return (
    <>
      <strong>{perHour(row.price_per_hour)}</strong>
      {top && Number(top.price_per_hour) > Number(row.price_per_hour) && (
        <div className="wr-quiet">to {perHour(top.price_per_hour)}</div>
      )}
    </>
  );
}

function Total({ row, gpus, hours }: { row: MachineType; gpus: number; hours: number }) {
  const unit = isProcessors(row) ? "CPU" : "GPU";
  const total = totalOf(row, gpus, hours);
  return (
    <>
      <span className="wr-nowrap">
        {amount(total.toFixed(8))} {plain(row.currency)}
      </span>
      <div className="wr-quiet wr-nowrap">
        {count(gpus)} {gpus === 1 ? unit : `${unit}s`}
      </div>
    </>
  );
}

function Rent({ row, filter, all }: { row: MachineType; filter: Filter; all: readonly MachineType[] }) {
  const words = rentOf(row, filter, isNarrowed(row, filter, all));
  const name = `${modelOf(row)}, ${row.on_one_host} on one host`;
  if (row.host_id === null)
    return (
      <Link className="wr-link" to="/jobs/new" search={words} aria-label={`Queue a job for ${name}`}>
        Queue a job
      </Link>
    );
  return (
    <LinkButton to="/clusters/new" search={words} variant="filled" aria-label={`Rent ${name}`}>
      Rent
    </LinkButton>
  );
}
