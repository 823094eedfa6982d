// The account's volumes: what each holds, who has it, and making and deleting them.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { post, remove } from "../api/client.ts";
import { volumes as volumesQuery } from "../api/queries.ts";
import type { Volume } from "../api/types.ts";
import { bytes, count, DASH, plain } from "../format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Command, Empty, Loaded, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { State, When } from "../parts/state.tsx";
import { operand } from "../request.ts";
import { toVolume, usersOf, type VolumeDraft } from "../volumes.ts";

/** A number and its unit, a name and what it does: on one line. */
const WHOLE = { whiteSpace: "nowrap" } as const;

export function VolumesPage() {
  const query = useQuery(volumesQuery);
  const [making, setMaking] = useState(false);
  const [deleting, setDeleting] = useState<Volume | null>(null);
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
        <Loaded query={query}>
          {(items) => (items.length === 0 ? <None /> : <Table items={items} ask={setDeleting} />)}
        </Loaded>
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
        A volume is a named folder that outlives clusters and jobs, and goes wherever the next one runs.
      </Empty>
      <Stack gap="xs" pb={28} px="md" maw={620} mx="auto">
        <Text size="sm" className="wr-quiet">
          Then name it and the folder where the work finds it, in the form of a cluster or a job or by command:
        </Text>
        <Command text="windrow cluster create --volume data:/data -- python train.py" label="command that has it" />
      </Stack>
    </>
  );
}

function Table({ items, ask }: { items: readonly Volume[]; ask: (volume: Volume) => void }) {
  return (
    <div className="wr-scroll">
      <table className="wr-table">
        <thead>
          <tr>
            <th>Name</th>
            <th className="num">Size</th>
            <th className="num">At most</th>
            <th className="num">Version</th>
            <th className="num">Files</th>
            <th>Saved</th>
            <th>Used by</th>
            <th>Problem</th>
            <th>
              <span className="wr-unseen">Do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((volume) => (
            <tr key={volume.id}>
              <td className="wr-mono">{plain(volume.name)}</td>
              <td className="num" style={WHOLE}>
                {volume.saved_at ? bytes(volume.size_bytes) : DASH}
              </td>
              <td className="num" style={WHOLE}>
                {bytes(volume.max_bytes)}
              </td>
              <td className="num">{volume.version ? count(volume.version) : DASH}</td>
              <td className="num">{volume.saved_at ? count(volume.files) : DASH}</td>
              <td>{volume.saved_at ? <When at={volume.saved_at} /> : "never"}</td>
              <td>
                <Users volume={volume} />
              </td>
              <td className="wr-break">
                {volume.problem ? (
                  <>
                    <State state="Not saved" tone="bad" /> {plain(volume.problem)}
                  </>
                ) : (
                  DASH
                )}
              </td>
              <td className="num">
                <Button
                  variant="subtle"
                  color="red"
                  onClick={() => ask(volume)}
                  aria-label={`Delete the volume ${plain(volume.name)}`}
                >
                  Delete
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
      notifications.show({ message: `${plain(made.name)} is there. Use it: --volume ${plain(made.name)}:/data` });
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
    <Modal opened onClose={close} title="New volume">
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
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" loading={make.isPending}>
              Make volume
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function DeleteAsked({ volume, close }: { volume: Volume; close: () => void }) {
  const client = useQueryClient();
  const [typed, setTyped] = useState("");
  const path = `/volumes/${encodeURIComponent(volume.name)}`;
  const act = useMutation({
    mutationFn: () => remove(path),
    onSuccess: () => {
      notifications.show({ message: `${plain(volume.name)} is deleted` });
      void client.invalidateQueries({ queryKey: ["volumes"] });
      close();
    },
  });
  const ready = typed === volume.name;
  return (
    <Modal opened onClose={close} title={`Delete ${plain(volume.name)}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) act.mutate();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            All that is in it is gone for good
            {volume.saved_at && (
              <>
                : {bytes(volume.size_bytes)} in {count(volume.files)} files
              </>
            )}
            .
          </Text>
          <TextInput
            label={`Type ${plain(volume.name)} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
          <Same method="DELETE" path={path} command={`windrow volume rm ${operand(volume.name)} --yes`} />
          {act.error && <ProblemNote error={act.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" color="red" disabled={!ready} loading={act.isPending}>
              Delete volume
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
