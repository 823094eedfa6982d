// The question before the palette does something: the same dialogs as on the pages, loaded when they are needed.

import { Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { post } from "../api/client.ts";
import type { Cluster, Host, Job, Notebook } from "../api/types.ts";
import { useJobWord } from "../clusters/called.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import type { Thing } from "./acts.ts";

export interface Act {
  verb: string;
  thing: Thing;
}

const HostAct = lazy(async () => {
  const { ACTIONS, ActionAsked } = await import("../hosts/HostActions.tsx");
  return {
    default: ({ host, verb, close }: { host: Host; verb: string; close: () => void }) => {
      const action = Object.values(ACTIONS).find((one) => one.verb === verb);
      return action ? <ActionAsked hosts={[host]} action={action} close={close} /> : null;
    },
  };
});
const Stop = lazy(async () => ({ default: (await import("../clusters/StopStart.tsx")).StopAsked }));
const Start = lazy(async () => ({ default: (await import("../clusters/StopStart.tsx")).StartAsked }));
const Delete = lazy(async () => ({ default: (await import("../clusters/ClusterDialogs.tsx")).DeleteAsked }));
const DeleteVolume = lazy(async () => ({ default: (await import("../volumes/VolumesPage.tsx")).DeleteAsked }));

export function PaletteAct({ verb, thing, close }: Act & { close: () => void }) {
  return (
    <Suspense fallback={null}>
      {thing.kind === "host" && <HostAct host={thing.of} verb={verb} close={close} />}
      {thing.kind === "volume" && <DeleteVolume volume={thing.of} close={close} />}
      {thing.kind === "job" && <Cancel job={thing.of} close={close} />}
      {thing.kind === "machine" && <MachineAct verb={verb} cluster={thing.of} close={close} />}
    </Suspense>
  );
}

function MachineAct({ verb, cluster, close }: { verb: string; cluster: Cluster; close: () => void }) {
  if (verb === "stop") return <Stop cluster={cluster} close={close} />;
  if (verb === "start") return <Start cluster={cluster} close={close} />;
  return <Delete cluster={cluster} close={close} />;
}

function Cancel({ job, close }: { job: Job; close: () => void }) {
  const client = useQueryClient();
  const word = useJobWord(job);
  const path = `/jobs/${encodeURIComponent(job.id)}/cancel`;
  const act = useMutation({
    mutationFn: () => post<Job>(path),
    onSuccess: (now) => {
      client.setQueryData(["job", job.id], now);
      void client.invalidateQueries({ queryKey: ["jobs"] });
      notifications.show({ message: `${plain(job.name)} is being cancelled` });
      close();
    },
  });
  return (
    <FormDialog title={`Cancel ${plain(job.name)}`} close={close} act={act} ready submit="Cancel job" danger>
      <Text size="sm">What runs ends now. Its log and the files that it changed are kept for 30 days.</Text>
      <Same method="POST" path={path} command={`windrow job cancel ${word}`} />
    </FormDialog>
  );
}

/** In a window of its own; a browser that blocks it leaves the link in the message. */
export async function openJupyter(cluster: Cluster): Promise<void> {
  try {
    const { url } = await post<Notebook>(`/clusters/${encodeURIComponent(cluster.id)}/notebook`);
    window.open(url, "_blank", "noopener");
    const link = (
      <a className="wr-link" href={url} target="_blank" rel="noopener noreferrer">
        Jupyter of {plain(cluster.name)} in a new window
      </a>
    );
    notifications.show({ message: link });
  } catch (failure) {
    notifications.show({ color: "red", message: failure instanceof Error ? failure.message : String(failure) });
  }
}
