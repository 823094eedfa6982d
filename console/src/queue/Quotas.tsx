// Quotas: the most that the installation, an organisation or a project has of something at once, and the dialog.
import { Autocomplete, Button, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { put, remove } from "../api/client.ts";
import { fairShares, me as meQuery, quotas as query } from "../api/queries.ts";
import type { Me, Quota } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { percent, plain, words } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Meter, State } from "../parts/state.tsx";
import { showUndo } from "../parts/undo.tsx";
import { actions } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import {
  BLANK_QUOTA,
  draftOfQuota,
  ITEM_CHOICES,
  itemName,
  maySet,
  nodeName,
  quotaCommand,
  quotaPath,
  quotaRatio,
  quotaText,
  toQuota,
  unitOf,
} from "./shares.ts";

const columnsFor = (me: Me | null | undefined, edit: (row: Quota) => void): readonly Column<Quota>[] => [
  {
    id: "node",
    name: "Quota of",
    value: nodeName,
    cell: (row) => (row.level === "installation" ? "Whole installation" : plain(words(nodeName(row)))),
  },
  { id: "item", name: "What", value: itemName },
  { id: "part", name: "Used of the limit", width: "30%", value: quotaRatio, cell: (row) => <Used row={row} /> },
  {
    id: "used",
    name: "Used",
    number: true,
    value: (row) => row.used,
    cell: (row) => quotaText(row.item, row.used),
  },
  {
    id: "limit",
    name: "Limit",
    number: true,
    value: (row) => row.limit,
    cell: (row) => quotaText(row.item, row.limit),
  },
  actions<Quota>((row) => maySet(me, row) && <Deeds row={row} edit={edit} />),
];

function Used({ row }: { row: Quota }) {
  const ratio = quotaRatio(row);
  return (
    <Group gap="xs" wrap="nowrap">
      <span style={{ flex: "0 1 240px" }}>
        <Meter ratio={ratio} text={ratio === null ? "none" : percent(ratio)} label={itemName(row)} />
      </span>
      {(ratio ?? 1) >= 1 && <State state={(ratio ?? 1) > 1 ? "exceeded" : "reached"} tone="warn" />}
    </Group>
  );
}

function Deeds({ row, edit }: { row: Quota; edit: (row: Quota) => void }) {
  const client = useQueryClient();
  const again = () => client.invalidateQueries({ queryKey: query.queryKey });
  const name = `${itemName(row)}, ${plain(nodeName(row))}`;
  const drop = useMutation({
    mutationFn: () => remove(quotaPath(row)),
    onSuccess: () => {
      void again();
      const { node_id: node, item, tier, limit } = row;
      showUndo(`The quota is removed: ${name}`, () =>
        put("/quotas", { node, item, limit, ...(tier ? { tier } : {}) }).then(again),
      );
    },
    onError: ({ message }) => notifications.show({ color: "red", message }),
  });
  return (
    <Group gap={4} justify="flex-end" wrap="nowrap">
      <Button variant="subtle" color="gray" size="compact-sm" onClick={() => edit(row)} aria-label={`Edit: ${name}`}>
        Edit
      </Button>
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        loading={drop.isPending}
        onClick={() => drop.mutate()}
        aria-label={`Remove: ${name}`}
      >
        Remove
      </Button>
    </Group>
  );
}

export function Quotas() {
  const found = useQuery(query);
  const me = useQuery(meQuery).data;
  const [asked, ask] = useState<Quota | "new" | null>(null);
  const columns = useMemo(() => columnsFor(me, ask), [me]);
  const acts = maySet(me, { level: "project" });
  const add = acts && (
    <Button leftSection={<PlusIcon size={14} />} onClick={() => ask("new")}>
      Set a quota
    </Button>
  );
  const rows = found.data;
  return (
    <Panel title="Quotas" bare actions={(rows?.length ?? 0) > 0 && add}>
      <DataTable
        of={["quota", "quotas"]}
        columns={columns}
        id={(row) => `${row.node_id} ${row.item} ${row.tier}`}
        rows={rows}
        query={found}
        bare={(rows?.length ?? 0) < 12}
        empty={
          <Empty title="No quotas" {...(acts ? { command: "windrow quota set lab gpus --limit 8", action: add } : {})}>
            A quota is the most that a project, an organisation or the installation has of something at once. A request
            that would pass it is refused, with the quota's name and who may raise it.
          </Empty>
        }
      />
      {asked && <SetQuota quota={asked === "new" ? null : asked} close={() => ask(null)} />}
    </Panel>
  );
}

function SetQuota({ quota, close }: { quota: Quota | null; close: () => void }) {
  const [draft, setDraft] = useState(() => (quota ? draftOfQuota(quota) : BLANK_QUOTA));
  const me = useQuery(meQuery).data;
  const nodes = (useQuery(fairShares).data ?? []).filter((row) => maySet(me, row));
  const known = quota ? [{ id: quota.node_id, level: quota.level, name: quota.name }] : nodes;
  const { body, faults } = toQuota(draft, known);
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part });
  const act = useChange(() => put("/quotas", body), { lists: [query], said: "The quota is set", close });
  const told = faultsOf(act.error);
  const unit = unitOf(draft.item);
  return (
    <FormDialog
      title={quota ? `Quota of ${plain(nodeName(quota))}` : "Set a quota"}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={["node", "item", "tier", "limit"]}
      submit="Set the quota"
    >
      <Text size="sm">What is above it already goes on; nothing more starts until there is room.</Text>
      {quota === null && (
        <>
          <Autocomplete
            label="Of"
            placeholder="a project or organisation"
            data={[...new Set(nodes.map(nodeName))]}
            value={draft.node}
            error={told.node}
            onChange={(node) => change({ node })}
            data-autofocus
          />
          <NativeSelect
            label="What"
            data={ITEM_CHOICES}
            value={draft.item}
            error={told.item}
            onChange={(event) => change({ item: event.currentTarget.value as Quota["item"] })}
          />
          {draft.item === "gpus" && (
            <TextInput
              label="Model of the GPUs"
              placeholder="all models"
              value={draft.tier}
              error={told.tier}
              onChange={(event) => change({ tier: event.currentTarget.value })}
            />
          )}
        </>
      )}
      <TextInput
        label={quota ? `${itemName(quota)}, at most${unit && ` (${unit})`}` : `At most${unit && ` (${unit})`}`}
        inputMode="decimal"
        value={draft.limit}
        error={told.limit ?? (draft.limit && faults.limit)}
        onChange={(event) => change({ limit: event.currentTarget.value })}
        {...(quota ? { "data-autofocus": true } : {})}
      />
      <Same method="PUT" path="/quotas" body={body} command={quotaCommand(body)} />
    </FormDialog>
  );
}
