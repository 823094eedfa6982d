// The dialogs that stop a cluster, keeping its request, and start it again.

import { Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { freshKey, post } from "../api/client.ts";
import { me as meQuery, plan as planQuery } from "../api/queries.ts";
import type { Cluster, ClusterAccepted, ClusterRequest } from "../api/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { plain } from "../parts/format.ts";
import { ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { useMachineWord } from "./called.ts";
import { Fit } from "./Fit.tsx";
import { LoginAgain } from "./RegistryLogin.tsx";
import { LOGIN_FILE, type LoginDraft, loginOf, NO_LOGIN, shownWith, withLogin } from "./request.ts";

interface Props {
  cluster: Cluster;
  close: () => void;
}

const pathOf = (cluster: Cluster, what: string) => `/clusters/${encodeURIComponent(cluster.id)}/${what}`;

/** Reads the cluster and the balance again. */
function useTold({ cluster, close }: Props): (answer: ClusterAccepted) => void {
  const client = useQueryClient();
  return (answer) => {
    client.setQueryData(["cluster", cluster.id], answer.cluster);
    for (const key of ["clusters", "receipts", "me"]) void client.invalidateQueries({ queryKey: [key] });
    close();
  };
}

export function StopAsked(props: Props) {
  const { cluster, close } = props;
  const word = useMachineWord(cluster);
  const path = pathOf(cluster, "stop");
  const act = useMutation({ mutationFn: () => post<ClusterAccepted>(path), onSuccess: useTold(props) });
  return (
    <Dialog onClose={close} title={`Stop ${plain(cluster.name)}`}>
      <Stack gap="sm">
        <Text size="sm">
          What runs ends and its files are gone, as when it is deleted; the name and what was asked for stay. It costs
          nothing until you start it again, wherever it fits then and at the price of then.
        </Text>
        {act.error && <ProblemNote error={act.error} />}
        <DialogFoot close={close} color="red" loading={act.isPending} onClick={() => act.mutate()} data-autofocus>
          Stop machine
        </DialogFoot>
        <Same method="POST" path={path} command={`windrow cluster stop ${word} --yes`} />
      </Stack>
    </Dialog>
  );
}

export function StartAsked(props: Props) {
  const { cluster, close } = props;
  const word = useMachineWord(cluster);
  const [draft, setDraft] = useState<LoginDraft>({ ...NO_LOGIN, image: cluster.request.image ?? "" });
  const [key] = useState(freshKey);
  const me = useQuery(meQuery);
  const plan = useQuery(planQuery(cluster.request as ClusterRequest));
  const { login, faults, sound } = loginOf(draft, true, cluster.needs_login);
  const path = pathOf(cluster, "start");
  const act = useMutation({
    mutationFn: () => post<ClusterAccepted>(path, withLogin({}, login), key),
    gcTime: 0,
    onSuccess: useTold(props),
  }); // what was sent has the login
  return (
    <Dialog onClose={close} title={`Start ${plain(cluster.name)}`}>
      <Stack gap="sm">
        {plan.data ? (
          <Fit
            plan={plan.data}
            seconds={cluster.request.max_duration_seconds}
            currency={me.data?.balance.currency ?? ""}
          />
        ) : plan.error ? (
          <ProblemNote error={plan.error} retry={() => void plan.refetch()} />
        ) : (
          <Waiting />
        )}
        {cluster.request.await_files && (
          <Text size="sm" className="wr-quiet">
            It waits for its files, which have to be sent again.
          </Text>
        )}
        <LoginAgain cluster={cluster} draft={draft} setDraft={setDraft} faults={faults} />
        {act.error && <ProblemNote error={act.error} />}
        <DialogFoot close={close} loading={act.isPending} disabled={!sound} onClick={() => act.mutate()}>
          Start machine
        </DialogFoot>
        <Same
          method="POST"
          path={path}
          body={shownWith({}, login)}
          command={`windrow cluster start ${word} --yes${login ? ` --registry-login ${LOGIN_FILE}` : ""}`}
        />
      </Stack>
    </Dialog>
  );
}
