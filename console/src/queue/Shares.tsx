// Shares of organisations and projects: what each has now of what is guaranteed to it, and the dialog that sets them.
import { Button, Checkbox, Group, SimpleGrid, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { put } from "../api/client.ts";
import { me as meQuery, fairShares as query } from "../api/queries.ts";
import type { FairShare, Me } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { DASH, plain, words } from "../parts/format.ts";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { actions, figure, identity } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import {
  barText,
  depthOf,
  draftOfShare,
  maySet,
  mostOf,
  nodeName,
  partText,
  rankText,
  scaleOf,
  shareCommand,
  sharePath,
  toShare,
  WHOLE,
} from "./shares.ts";

const isRoot = (row: FairShare) => row.level === "installation";

const columnsFor = (
  me: Me | null | undefined,
  scale: number,
  edit: (row: FairShare) => void,
): readonly Column<FairShare>[] => [
  {
    id: "name",
    name: "Share of",
    value: (row) => row.name,
    cell: (row) => (
      <span className="wr-break" style={{ paddingLeft: depthOf(row) * 16 }}>
        {isRoot(row) ? "Whole installation" : plain(row.name)}
        {!isRoot(row) && <span className="wr-quiet"> · {words(row.level).toLowerCase()}</span>}
      </span>
    ),
  },
  {
    id: "level",
    name: "Level",
    value: (row) => row.level,
    facet: true,
    cell: (row) => words(row.level),
    optional: true,
  },
  {
    id: "held_ppm",
    name: "In use",
    width: "30%",
    value: (row) => row.held_ppm,
    cell: (row) => <ShareBar row={row} scale={isRoot(row) ? WHOLE : scale} />,
  },
  figure("guarantee_ppm", "Guaranteed", (row) => row.guarantee_ppm, partText),
  {
    id: "most_ppm",
    name: "At most",
    number: true,
    value: (row) => mostOf(row) ?? WHOLE,
    cell: (row) => (mostOf(row) === null ? "all" : partText(mostOf(row) ?? WHOLE)),
  },
  {
    id: "weight",
    name: "Weight",
    number: true,
    value: (row) => row.weight,
    cell: (row) => (isRoot(row) ? DASH : String(row.weight)),
  },
  {
    id: "borrows",
    name: "Borrows",
    value: (row) => row.is_borrowing,
    cell: (row) => (isRoot(row) ? DASH : row.is_borrowing ? "yes" : "no"),
  },
  figure("used_ppm", "Recent use", (row) => row.used_ppm, partText),
  figure("rank", "Turn", (row) => row.rank, rankText),
  { id: "urgent", name: "Urgent", value: (row) => row.may_use_urgent, optional: true },
  identity((row) => row.id, { optional: true }),
  actions<FairShare>(
    (row) =>
      !isRoot(row) &&
      maySet(me, row) && (
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          onClick={() => edit(row)}
          aria-label={`Edit the share of ${plain(nodeName(row))}`}
        >
          Edit
        </Button>
      ),
  ),
];

/** Held as a bar; more than the guarantee in stripes; the guarantee and the ceiling as lines across it. */
function ShareBar({ row, scale }: { row: FairShare; scale: number }) {
  const at = (ppm: number) => `${Math.min(100, (ppm / scale) * 100)}%`;
  const most = mostOf(row);
  const own = Math.min(row.held_ppm, row.guarantee_ppm);
  return (
    <span className="wr-meter wr-share" title={barText(row)}>
      <svg role="img" aria-label={barText(row)} width="100%" height="14">
        <rect y="4" width="100%" height="6" rx="3" fill="var(--wr-meter)" />
        <rect y="4" width={at(row.held_ppm)} height="6" rx="3" fill="var(--wr-meter-strong)" />
        <rect y="4" width={at(own)} height="6" rx="3" fill="var(--wr-meter-fill)" />
        {row.guarantee_ppm > 0 && !isRoot(row) && <Line x={at(row.guarantee_ppm)} />}
        {most !== null && <Line x={at(most)} dashed />}
      </svg>
      <span className="wr-meter-text">{partText(row.held_ppm)}</span>
    </span>
  );
}

function Line({ x, dashed = false }: { x: string; dashed?: boolean }) {
  return (
    <line
      x1={x}
      x2={x}
      y1="0"
      y2="14"
      stroke="currentColor"
      strokeWidth="2"
      {...(dashed ? { strokeDasharray: "3 2" } : {})}
    />
  );
}

export function Shares() {
  const found = useQuery(query);
  const me = useQuery(meQuery).data;
  const [edited, edit] = useState<FairShare | null>(null);
  const rows = found.data;
  const columns = useMemo(() => columnsFor(me, scaleOf(rows ?? []), edit), [me, rows]);
  return (
    <Panel bare label="Shares">
      <DataTable
        of={["share", "shares"]}
        columns={columns}
        id={(row) => row.id}
        rows={rows}
        query={found}
        bare={(rows?.length ?? 0) < 12}
        empty={
          <Empty title="No shares yet" command="windrow fair-share set project:lab --guarantee 25% --weight 2">
            Every project counts the same until somebody sets shares. A share guarantees a part of the installation, and
            says who is served first when all is taken.
          </Empty>
        }
      />
      {(rows?.length ?? 0) > 0 && <Legend />}
      {edited && <EditShare row={edited} close={() => edit(null)} />}
    </Panel>
  );
}

function Legend() {
  const line = (dashed: boolean) => (
    <svg width="4" height="12" aria-hidden="true">
      <Line x="2" dashed={dashed} />
    </svg>
  );
  const box = (fill: string) => (
    <svg width="14" height="8" aria-hidden="true">
      <rect width="14" height="8" rx="2" fill={fill} />
    </svg>
  );
  const key = (picture: React.ReactNode, text: string) => (
    <Group gap={6} wrap="nowrap">
      {picture}
      {text}
    </Group>
  );
  return (
    <Group gap="md" p="sm" className="wr-quiet" fz="xs" component="footer">
      {key(box("var(--wr-meter-fill)"), "within the guarantee")}
      {key(box("var(--wr-meter-strong)"), "borrowed")}
      {key(line(false), "guaranteed")}
      {key(line(true), "at most")}
      <span>Parts of the whole installation. Recent use: what is 7 days old counts half. Turn: 1 is served first.</span>
    </Group>
  );
}

function EditShare({ row, close }: { row: FairShare; close: () => void }) {
  const [draft, setDraft] = useState(() => draftOfShare(row));
  const me = useQuery(meQuery).data;
  const { body, faults } = toShare(draft);
  const path = sharePath(row.id);
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part });
  const said = `The share of ${plain(nodeName(row))} is set`;
  const act = useChange(() => put(path, body), { lists: [query, { queryKey: ["queue"] }], said, close });
  const told = { ...faultsOf(act.error), ...faults };
  return (
    <FormDialog
      title={`Share of ${plain(nodeName(row))}`}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={["guarantee_ppm", "ceiling_ppm", "weight"]}
      submit="Set the share"
    >
      <Text size="sm">What runs goes on. Parts are of the whole installation.</Text>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <TextInput
          label="Guaranteed (%)"
          placeholder="none"
          inputMode="decimal"
          data-autofocus
          value={draft.guarantee}
          error={told.guarantee_ppm}
          onChange={(event) => change({ guarantee: event.currentTarget.value })}
        />
        <TextInput
          label="At most (%)"
          placeholder="all"
          inputMode="decimal"
          value={draft.ceiling}
          error={told.ceiling_ppm}
          onChange={(event) => change({ ceiling: event.currentTarget.value })}
        />
        <TextInput
          label="Weight"
          inputMode="numeric"
          value={draft.weight}
          error={told.weight}
          onChange={(event) => change({ weight: event.currentTarget.value })}
        />
      </SimpleGrid>
      <Text size="xs" className="wr-quiet">
        Weight: of two beside each other, the one with weight 2 is due twice as much.
      </Text>
      <Checkbox
        label="May borrow"
        description="Have more than its guarantee while others leave it free."
        checked={draft.isBorrowing}
        onChange={(event) => change({ isBorrowing: event.currentTarget.checked })}
      />
      <Checkbox
        label="May use the class urgent"
        description={me?.roles.includes("operator") ? undefined : "Operators grant it."}
        disabled={!me?.roles.includes("operator") && !row.may_use_urgent}
        checked={draft.mayUseUrgent}
        onChange={(event) => change({ mayUseUrgent: event.currentTarget.checked })}
      />
      <Same method="PUT" path={path} body={body} command={shareCommand(row.id, body)} />
    </FormDialog>
  );
}
