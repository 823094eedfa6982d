// The table of backends: health, how each was tested, what is owed against its caps, and what can be done.
import { Button, Menu } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { backends as query } from "../api/queries.ts";
import type { CloudBackend } from "../api/types.ts";
import { count, percent, plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { Empty, Panel } from "../parts/page.tsx";
import { Meter, State } from "../parts/state.tsx";
import { actions, figure, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { CheckBackend, RemoveBackend, RenewBackend, SetCaps, StopAll, SweepBackend } from "./BackendForms.tsx";
import { Buyers } from "./Buyers.tsx";
import { capRatio, healthOf, levelWord, ofCap } from "./clouds.ts";

const DEEDS = [
  ["check", "Check"],
  ["caps", "Set caps"],
  ["renew", "Renew credentials"],
  ["buyers", "Who may buy"],
  ["sweep", "Sweep"],
  ["stop", "Stop all"],
  ["remove", "Remove"],
] as const;
type Deed = (typeof DEEDS)[number][0];
type Ask = (asked: { deed: Deed; backend: CloudBackend }) => void;

const columnsFor = (ask: Ask | null): readonly Column<CloudBackend>[] => [
  {
    id: "name",
    name: "Backend",
    value: (row) => row.name,
    cell: (row) => (
      <>
        {plain(row.name)}
        <br />
        <span className="wr-quiet wr-nowrap" title={plain(row.level_text)}>
          {plain(row.kind)}, {levelWord(row.level)}
        </span>
      </>
    ),
  },
  { id: "health", name: "Health", value: (row) => healthOf(row).state, cell: (row) => <State {...healthOf(row)} /> },
  figure("machines", "Machines", (row) => row.owed.living, count, {
    cell: ({ owed, caps }) => (
      <span className="wr-nowrap">
        {count(owed.living)}
        {caps.machines !== null && ` of ${count(caps.machines)}`}
        <br />
        <span className="wr-quiet">
          {count(owed.vcpus)}
          {caps.vcpus !== null && ` of ${count(caps.vcpus)}`} vCPUs
        </span>
      </span>
    ),
  }),
  spent("per_hour", "Per hour now", (row) => row.owed.per_hour),
  spent("per_day", "Today", (row) => row.owed.today),
  spent("in_all", "In all", (row) => row.owed.in_all),
  { ...moment<CloudBackend>("checked_at", "Checked", (row) => row.checked_at, "never"), optional: true },
  { ...moment<CloudBackend>("swept_at", "Swept", (row) => row.swept_at, "never"), optional: true },
  {
    id: "market_id",
    name: "Market id",
    value: (row) => row.market_id,
    cell: (row) => <span className="wr-mono wr-break">{plain(row.market_id)}</span>,
    optional: true,
  },
  ...(ask ? [actions<CloudBackend>((row) => <Deeds backend={row} ask={ask} />)] : []),
];

function spent(
  cap: "per_hour" | "per_day" | "in_all",
  name: string,
  used: (row: CloudBackend) => string,
): Column<CloudBackend> {
  return {
    id: cap,
    name,
    value: used,
    cell: (row) => {
      const text = ofCap(used(row), row.caps[cap], row.caps.currency);
      const ratio = capRatio(used(row), row.caps[cap]);
      return (
        <>
          <span className="wr-nowrap">{text}</span>
          {ratio !== null && <Meter ratio={ratio} text={percent(ratio)} label={`${name}, ${plain(row.name)}`} />}
        </>
      );
    },
  };
}

function Deeds({ backend, ask }: { backend: CloudBackend; ask: Ask }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="subtle"
          size="compact-sm"
          rightSection={<ChevronIcon size={12} />}
          aria-label={`Change ${plain(backend.name)}`}
        >
          Change
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {DEEDS.map(([deed, label]) => (
          <Menu.Item
            key={deed}
            onClick={() => ask({ deed, backend })}
            {...(deed === "stop" || deed === "remove" ? { color: "red" } : {})}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const DIALOGS = {
  check: CheckBackend,
  caps: SetCaps,
  renew: RenewBackend,
  buyers: Buyers,
  sweep: SweepBackend,
  stop: StopAll,
  remove: RemoveBackend,
};

export function Backends({ operates }: { operates: boolean }) {
  const found = useQuery(query);
  const [asked, ask] = useState<{ deed: Deed; backend: CloudBackend } | null>(null);
  const columns = useMemo(() => columnsFor(operates ? ask : null), [operates]);
  const Asked = asked && DIALOGS[asked.deed];
  return (
    <Panel title="Backends" bare>
      <DataTable
        of={["backend", "backends"]}
        columns={columns}
        id={(row) => row.name}
        rows={found.data}
        query={found}
        bare={(found.data?.length ?? 0) < 12}
        empty={
          <Empty
            title="No backends"
            command="windrow backend add aws --kind ec2 --set region=eu-central-1 --credentials aws.ini --per-day 40"
          >
            A backend is your account at a cloud. This market buys machines there, within the caps that you set, and
            ends each one: by hand, at its time, when it is idle, or when the market itself is gone.
          </Empty>
        }
      />
      {Asked && <Asked backend={asked.backend} close={() => ask(null)} />}
    </Panel>
  );
}
