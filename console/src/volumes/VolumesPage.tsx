// The list of the account's volumes, which are made and deleted here.
import { Button, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import { volumes as volumesQuery } from "../api/queries.ts";
import type { Volume } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { bytes, count, DASH, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Command, Empty, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand } from "../parts/shell.ts";
import { State } from "../parts/state.tsx";
import { actions, figure, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { toVolume, usersOf, type VolumeDraft } from "./volumes.ts";

/** A number and its unit, a name and what it does: on one line. */
const WHOLE = { whiteSpace: "nowrap" } as const;

const whole = (text: string) => <span style={WHOLE}>{text}</span>;

const columnsFor = (ask: (volume: Volume) => void): readonly Column<Volume>[] => [
  {
    id: "name",
    name: "Name",
    value: (row) => row.name,
    cell: (row) => <span className="wr-mono">{plain(row.name)}</span>,
  },
  {
    id: "size_bytes",
    name: "Size",
    number: true,
    value: (row) => (row.saved_at ? row.size_bytes : null),
    cell: (row) => whole(row.saved_at ? bytes(row.size_bytes) : DASH),
  },
  {
    id: "max_bytes",
    name: "At most",
    number: true,
    value: (row) => row.max_bytes,
    cell: (row) => whole(bytes(row.max_bytes)),
  },
  figure("version", "Version", (row) => row.version || null, count),
  figure("files", "Files", (row) => (row.saved_at ? row.files : null), count),
  moment("saved_at", "Saved", (row) => row.saved_at, "never"),
  {
    id: "used_by",
    name: "Used by",
    value: (row) =>
      usersOf(row)
        .map((use) => use.cluster_name)
        .join(" "),
    cell: (row) => <Users volume={row} />,
  },
  {
    id: "problem",
    name: "Problem",
    value: (row) => row.problem,
    cell: (row) =>
      row.problem ? (
        <>
          <State state="Not saved" tone="bad" /> {plain(row.problem)}
        </>
      ) : (
        DASH
      ),
  },
  identity((row) => row.id, { optional: true }),
  actions((row) => (
    <Button variant="subtle" color="red" onClick={() => ask(row)} aria-label={`Delete the volume ${plain(row.name)}`}>
      Delete
    </Button>
  )),
];

export function VolumesPage() {
  const query = useQuery(volumesQuery);
  const [making, setMaking] = useState(false);
  const [deleting, setDeleting] = useState<Volume | null>(null);
  const columns = useMemo(() => columnsFor(setDeleting), []);
  return (
    <div className="wr-page">
      <PageHead
        title="Volumes"
        actions={
          <Button leftSection={<PlusIcon />} onClick={() => setMaking(true)}>
            New volume
          </Button>
        }
      />
      <Panel bare label="Volumes">
        <DataTable
          of={["volume", "volumes"]}
          columns={columns}
          id={(row) => row.id}
          rows={query.data}
          query={query}
          address
          empty={<None />}
        />
      </Panel>
      {making && <NewVolume close={() => setMaking(false)} />}
      {deleting && <DeleteAsked volume={deleting} close={() => setDeleting(null)} />}
    </div>
  );
}

function None() {
  return (
    <>
      <Empty title="No volumes" command="windrow volume create data --max-size 20GB">
        A volume is a named folder that outlives machines and jobs, and is there wherever the next one runs.
      </Empty>
      <Stack gap="xs" pb={28} px="md" maw={620} mx="auto">
        <Text size="sm" className="wr-quiet">
          Then name it and the folder where the work finds it, in the form of a machine or a job, or by command:
        </Text>
        <Command text="windrow machine create --volume data:/data -- python train.py" label="command that has it" />
      </Stack>
    </>
  );
}

function Users({ volume }: { volume: Volume }) {
  const users = usersOf(volume);
  if (users.length === 0) return <>nobody</>;
  return (
    <Stack gap={2}>
      {users.map((use) => (
        <Text key={use.cluster_id} inherit style={WHOLE}>
          <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: use.cluster_id }}>
            {plain(use.cluster_name)}
          </Link>{" "}
          {use.writes ? "writes" : "reads"}
        </Text>
      ))}
    </Stack>
  );
}

function NewVolume({ close }: { close: () => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState<VolumeDraft>({ name: "", maxSize: "" });
  const [tried, setTried] = useState(false);
  const { request, size, faults } = toVolume(draft);
  const sound = Object.keys(faults).length === 0;
  const make = useMutation({
    mutationFn: () => post<Volume>("/volumes", request),
    onSuccess: (made) => {
      notifications.show({ message: `${plain(made.name)} is created. Use it: --volume ${plain(made.name)}:/data` });
      void client.invalidateQueries({ queryKey: ["volumes"] });
      close();
    },
  });
  const field = (name: keyof VolumeDraft) => ({
    value: draft[name],
    error: tried ? faults[name] : undefined,
    onChange: (event: { currentTarget: { value: string } }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  return (
    <Dialog onClose={close} title="New volume">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (sound) make.mutate();
        }}
        noValidate
      >
        <Stack gap="sm">
          <TextInput label="Name" placeholder="data" autoComplete="off" {...field("name")} data-autofocus />
          <TextInput
            label="At most"
            description="Of one version, as 20GB."
            placeholder="64GiB"
            autoComplete="off"
            {...field("maxSize")}
          />
          {make.error && <ProblemNote error={make.error} />}
          <Same
            method="POST"
            path="/volumes"
            body={request}
            command={
              `windrow volume create${size && !faults.maxSize ? ` --max-size ${size}` : ""} ` +
              `${operand(request.name)}`
            }
          />
          <DialogFoot close={close} loading={make.isPending}>
            Make volume
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

export function DeleteAsked({ volume, close }: { volume: Volume; close: () => void }) {
  const client = useQueryClient();
  const path = `/volumes/${encodeURIComponent(volume.name)}`;
  const act = useMutation({
    mutationFn: () => remove(path),
    onSuccess: () => {
      notifications.show({ message: `${plain(volume.name)} is deleted` });
      void client.invalidateQueries({ queryKey: ["volumes"] });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Delete ${plain(volume.name)}`}
      name={volume.name}
      button="Delete volume"
      act={act}
      close={close}
      text={
        <>
          All that is in it is gone for good
          {volume.saved_at && (
            <>
              : {bytes(volume.size_bytes)} in {count(volume.files)} files
            </>
          )}
          .
        </>
      }
    >
      <Same method="DELETE" path={path} command={`windrow volume rm ${operand(volume.name)} --yes`} />
    </ConfirmByName>
  );
}
