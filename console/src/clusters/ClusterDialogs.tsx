// The dialogs that change the number of a cluster's hosts, let it run for longer, and delete it.

import { Button, NumberInput, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post, remove } from "../api/client.ts";
import type { Cluster } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { amount, count, perHour, plain } from "../parts/format.ts";
import { ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { useNow, When } from "../parts/state.tsx";
import { useMachineWord } from "./called.ts";
import { LoginAgain } from "./RegistryLogin.tsx";
import { LOGIN_FILE, type LoginDraft, loginOf, NO_LOGIN, shownWith, withLogin } from "./request.ts";
import { isDear, totalAtEnd } from "./startup.ts";

/** More hosts join, or the highest ranks go. */
export function ResizeAsked({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const client = useQueryClient();
  const word = useMachineWord(cluster);
  const [hosts, setHosts] = useState(cluster.request.hosts);
  const [draft, setDraft] = useState<LoginDraft>({ ...NO_LOGIN, image: cluster.request.image ?? "" });
  const grows = hosts > cluster.request.hosts;
  const { login, faults, sound } = loginOf(draft, grows, cluster.needs_login);
  const path = `/clusters/${encodeURIComponent(cluster.id)}/resize`;
  const resize = useMutation({
    mutationFn: () => post<Cluster>(path, withLogin({ hosts }, login)),
    gcTime: 0, // what was sent has the login
    onSuccess: (after) => {
      client.setQueryData(["cluster", cluster.id], after);
      close();
    },
  });
  return (
    <Dialog onClose={close} title={`Resize ${plain(cluster.name)}`}>
      <Stack gap="sm">
        <NumberInput
          label="Hosts"
          description={
            "New ones join its head; with fewer, the highest ranks go, and what they run is done again " +
            "elsewhere or lost."
          }
          min={1}
          max={64}
          value={hosts}
          onChange={(value) => setHosts(Number(value) || 1)}
          data-autofocus
        />
        <Text size="sm" className="wr-quiet">
          Now {count(cluster.request.hosts)} for {perHour(cluster.price_per_hour)} in all. A new host is paid for from
          its start.
        </Text>
        {grows && <LoginAgain cluster={cluster} draft={draft} setDraft={setDraft} faults={faults} />}
        {resize.error && <ProblemNote error={resize.error} />}
        <Button
          loading={resize.isPending}
          disabled={hosts === cluster.request.hosts || !sound}
          onClick={() => resize.mutate()}
        >
          Resize
        </Button>
        <Same
          method="POST"
          path={path}
          body={shownWith({ hosts }, login)}
          command={`windrow cluster resize ${word} ` + `${hosts}${login ? ` --registry-login ${LOGIN_FILE}` : ""}`}
        />
      </Stack>
    </Dialog>
  );
}

/** Its longest running time grows by hours. */
export function ExtendAsked({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const client = useQueryClient();
  const word = useMachineWord(cluster);
  const [hours, setHours] = useState(1);
  const now = useNow();
  const seconds = Math.round((cluster.request.max_duration_seconds ?? 0) + hours * 3600);
  // A budget may end it before.
  const ends_at = new Date(Date.parse(cluster.started_at ?? "") + seconds * 1000).toISOString();
  const path = `/clusters/${encodeURIComponent(cluster.id)}/extend`;
  const body = { max_duration_seconds: seconds };
  const act = useMutation({
    mutationFn: () => post<Cluster>(path, body),
    onSuccess: (after) => {
      client.setQueryData(["cluster", cluster.id], after);
      close();
    },
  });
  return (
    <Dialog onClose={close} title={`Extend ${plain(cluster.name)}`}>
      <Stack gap="sm">
        <NumberInput
          label="Hours longer"
          min={0.5}
          max={24 * 364}
          step={1}
          value={hours}
          onChange={(value) => setHours(Math.max(0, Number(value) || 0))}
          data-autofocus
        />
        <Text size="sm" role="status">
          Ends <When at={ends_at} />. It will have cost at most{" "}
          <strong>{amount(totalAtEnd({ ...cluster, ends_at }, now))}</strong> by then, at{" "}
          {perHour(cluster.price_per_hour)}
          {cluster.request.budget !== null && `; its budget of ${amount(cluster.request.budget)} still ends it before`}.
        </Text>
        {act.error && <ProblemNote error={act.error} />}
        <DialogFoot close={close} loading={act.isPending} disabled={hours <= 0} onClick={() => act.mutate()}>
          Extend
        </DialogFoot>
        <Same method="POST" path={path} body={body} command={`windrow cluster extend ${word} --hours ${hours} --yes`} />
      </Stack>
    </Dialog>
  );
}

export function DeleteAsked({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const word = useMachineWord(cluster);
  const hasCommand = cluster.request.argv.length > 0;
  const path = `/clusters/${encodeURIComponent(cluster.id)}${hasCommand ? "?keep_results=true" : ""}`;
  const client = useQueryClient();
  const [isTyped] = useState(() => isDear(cluster, Date.now()));
  const act = useMutation({
    mutationFn: () => remove(path),
    onSuccess: () => {
      notifications.show({ message: `${plain(cluster.name)} is being deleted` });
      for (const key of [["cluster", cluster.id], ["clusters"], ["receipts"], ["me"]])
        void client.invalidateQueries({ queryKey: key });
      close();
    },
  });
  return (
    <ConfirmByName
      title={`Delete ${plain(cluster.name)}`}
      name={isTyped ? cluster.name : null}
      button="Delete machine"
      act={act}
      confirmed={!isTyped}
      close={close}
      text={
        <>
          Its {cluster.workloads.length === 1 ? "workload ends" : `${count(cluster.workloads.length)} workloads end`}
          {hasCommand
            ? "; its log and the files that it changed are kept for 30 days"
            : " and its files are gone for good"}
          . You pay until now; the reserved rest is returned.
        </>
      }
    >
      <Same
        method="DELETE"
        path={path}
        command={`windrow cluster delete ${word} ${hasCommand ? "--keep-results " : ""}--yes`}
      />
    </ConfirmByName>
  );
}
