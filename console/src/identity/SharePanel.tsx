// The panel of a cluster or job that says with whom it is shared, and the dialog that shares it.
import { Button, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post, remove } from "../api/client.ts";
import { me as meQuery, receivedShares, SHARES_KEY, shares as sharesQuery } from "../api/queries.ts";
import type { ObjectShare, ShareRequest } from "../api/types.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Loaded, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { When } from "../parts/state.tsx";
import { isRenter } from "./rights.ts";
import {
  givableLevels,
  LEVEL_NAMES,
  type Level,
  LIVES,
  levelText,
  RECEIVER_NAMES,
  type Reach,
  reachOf,
  readsShares,
  receiverText,
  type ShareDraft,
  shareCommand,
  thingOf,
  toShare,
} from "./shares.ts";

interface SharedObject {
  kind: "cluster" | "job";
  id: string;
  accountId: string;
}

/** What the user may do with an object of this account: as its renter, or by a share. */
export function useReach(objectId: string, accountId: string): Reach {
  const me = useQuery(meQuery).data;
  const mine = isRenter(me, accountId);
  const shares = useQuery({ ...receivedShares(objectId), enabled: me != null && !mine });
  return reachOf(mine, me?.roles ?? [], shares.data ?? []);
}

/** Nothing for who does not belong to the project. */
export function SharePanel({ object }: { object: SharedObject }) {
  const me = useQuery(meQuery).data;
  const reads = readsShares(me, object.accountId);
  const query = useQuery({ ...sharesQuery(object.id), enabled: reads });
  const [isSharing, setSharing] = useState(false);
  const levels = givableLevels(me, object.accountId);
  if (!reads) return null;
  return (
    <Panel
      title="Shared with"
      actions={
        levels.length > 0 && (
          <Button variant="default" size="compact-sm" onClick={() => setSharing(true)}>
            Share
          </Button>
        )
      }
    >
      <Loaded query={query} lines={2}>
        {(rows) =>
          rows.length === 0 ? (
            <Text size="sm" className="wr-quiet">
              Nobody outside this project reaches this {thingOf(object.kind)}.
            </Text>
          ) : (
            <Stack gap="xs">
              {rows.map((share) => (
                <Shared key={share.id} share={share} mayWithdraw={levels.length > 0} />
              ))}
            </Stack>
          )
        }
      </Loaded>
      {isSharing && <Share object={object} levels={levels} close={() => setSharing(false)} />}
    </Panel>
  );
}

/** A share is soon made anew, and so withdrawn without asking back. */
function Shared({ share, mayWithdraw }: { share: ObjectShare; mayWithdraw: boolean }) {
  const client = useQueryClient();
  const withdraw = useMutation({
    mutationFn: () => remove(`/shares/${encodeURIComponent(share.id)}`),
    onSuccess: () => void client.invalidateQueries({ queryKey: [SHARES_KEY] }),
  });
  const name = plain(receiverText(share));
  return (
    <div>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Text size="sm" className="wr-break">
          {name}
        </Text>
        {mayWithdraw && (
          <Button
            variant="subtle"
            color="red"
            size="compact-sm"
            loading={withdraw.isPending}
            onClick={() => withdraw.mutate()}
            aria-label={`Withdraw the share with ${name}`}
          >
            Withdraw
          </Button>
        )}
      </Group>
      <Text size="xs" className="wr-quiet">
        {levelText(share)}
        {share.expires_at && (
          <>
            , until <When at={share.expires_at} />
          </>
        )}
      </Text>
      {withdraw.error && <ProblemNote error={withdraw.error} />}
    </div>
  );
}

function Share({ object, levels, close }: { object: SharedObject; levels: readonly Level[]; close: () => void }) {
  const client = useQueryClient();
  const first = levels.includes("use") ? "use" : "see";
  const [draft, setDraft] = useState<ShareDraft>({ kind: "user", receiver: "", level: first, lasts: "" });
  const change = (part: Partial<ShareDraft>) => setDraft({ ...draft, ...part });
  const of = { object_kind: object.kind, object_id: object.id } as const;
  const body = toShare(of, draft);
  const act = useMutation({
    mutationFn: () => post<ObjectShare>("/shares", body),
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: [SHARES_KEY] });
      notifications.show({ message: `Shared with ${plain(receiverText(made))}` });
      close();
    },
  });
  const shown: ShareRequest = body ?? { ...of, receiver_kind: draft.kind, receiver: "NAME", level: draft.level };
  return (
    <FormDialog
      title={`Share this ${thingOf(object.kind)}`}
      close={close}
      act={act}
      ready={body !== null}
      fields={["receiver"]}
      submit="Share"
    >
      <Text size="sm">Your project goes on owning it and paying for it.</Text>
      <NativeSelect
        label="With"
        value={draft.kind}
        onChange={(event) => change({ kind: event.currentTarget.value as ShareDraft["kind"] })}
        data={Object.entries(RECEIVER_NAMES).map(([value, label]) => ({ value, label }))}
        data-autofocus
      />
      <TextInput
        label="Name or id"
        description={
          draft.kind === "user"
            ? "Name or mail address of a member of your organisation; of anybody else the id, as in their settings."
            : "As its members know it."
        }
        autoComplete="off"
        maxLength={320}
        value={draft.receiver}
        error={faultsOf(act.error).receiver}
        onChange={(event) => change({ receiver: event.currentTarget.value })}
      />
      <NativeSelect
        label="Level"
        value={draft.level}
        onChange={(event) => change({ level: event.currentTarget.value as Level })}
        data={levels.map((value) => ({ value, label: LEVEL_NAMES[value] }))}
      />
      <NativeSelect
        label="Lasts"
        value={draft.lasts}
        onChange={(event) => change({ lasts: event.currentTarget.value })}
        data={LIVES.map(([value, label]) => ({ value, label }))}
      />
      <Same method="POST" path="/shares" body={shown} command={shareCommand(shown)} />
    </FormDialog>
  );
}
