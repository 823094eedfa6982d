// The volumes of one cluster: their mounts, their last saved version, saving now.

import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { postLong } from "../api/client.ts";
import { volumes as volumesQuery } from "../api/queries.ts";
import type { Cluster, SavedVolumes, Volume } from "../api/types.ts";
import { useMachineWord } from "../clusters/called.ts";
import { bytes, count, plain } from "../parts/format.ts";
import { ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { State, When } from "../parts/state.tsx";
import { partsOf } from "./volumes.ts";

export function ClusterVolumes({ cluster, mine, up }: { cluster: Cluster; mine: boolean; up: boolean }) {
  const known = useQuery({ ...volumesQuery, enabled: mine }).data;
  const mounts = cluster.request.volumes.map(partsOf);
  return (
    <Stack gap="sm" data-testid="volumes">
      {mounts.map(({ name, path, writes }) => (
        <div key={name}>
          <Text size="sm" className="wr-break">
            <strong>{plain(name)}</strong> at <span className="wr-mono">{plain(path)}</span>
            {writes ? "" : ", read-only"}
          </Text>
          <Kept volume={known?.find((one) => one.name === name)} />
        </div>
      ))}
      {mine && up && mounts.some((one) => one.writes) && <SaveNow cluster={cluster} />}
    </Stack>
  );
}

function Kept({ volume }: { volume: Volume | undefined }) {
  if (!volume) return null;
  return (
    <>
      <Text size="xs" className="wr-quiet">
        {volume.saved_at ? (
          <>
            Version {count(volume.version)}, {bytes(volume.size_bytes)}, saved <When at={volume.saved_at} />
          </>
        ) : (
          "Nothing is saved yet."
        )}
      </Text>
      {volume.problem && (
        <Text size="xs" component="div" className="wr-break">
          <State state="Not saved" tone="bad" /> {plain(volume.problem)}
        </Text>
      )}
    </>
  );
}

/** It is saved every few minutes and at the end anyway. */
function SaveNow({ cluster }: { cluster: Cluster }) {
  const client = useQueryClient();
  const word = useMachineWord(cluster);
  const path = `/clusters/${encodeURIComponent(cluster.id)}/volumes/save`;
  const save = useMutation({
    mutationFn: () => postLong<SavedVolumes>(path),
    onSettled: () => void client.invalidateQueries({ queryKey: ["volumes"] }),
  });
  return (
    <>
      <Group>
        <Button variant="default" loading={save.isPending} onClick={() => save.mutate()}>
          Save now
        </Button>
      </Group>
      {save.isSuccess && (
        <Text size="sm" role="status">
          {save.data.volumes
            .map((one) => `${plain(one.name)}: version ${count(one.version)}, ${bytes(one.size_bytes)}`)
            .join("; ")}
        </Text>
      )}
      {save.error && <ProblemNote error={save.error} />}
      <Same method="POST" path={path} command={`windrow volume save ${word}`} />
    </>
  );
}
