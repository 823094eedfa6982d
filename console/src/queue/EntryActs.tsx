// What may be done with an entry of the queue: hold it, let it go, put it first, cancel it.
import { Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { post, remove } from "../api/client.ts";
import { me as meQuery } from "../api/queries.ts";
import type { Queued } from "../api/types.ts";
import { isRenter, mayEnd } from "../identity/rights.ts";
import { plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { showUndo } from "../parts/undo.tsx";

type Act = "hold" | "release" | "top" | "cancel";
type Entry = Pick<Queued, "id" | "kind" | "name" | "account_id" | "held_by" | "factors">;

const SAID: Record<Act, string> = {
  hold: "is held",
  release: "is released and waits from now on",
  top: "comes before all others of its project and class",
  cancel: "is cancelled",
};

function sent({ id, kind }: Entry, act: Act): Promise<unknown> {
  const word = encodeURIComponent(id);
  return kind === "job" ? post(`/jobs/${word}/${act}`) : remove(`/clusters/${word}`);
}

/** The acts that are the caller's, by their names. */
function useActs(entry: Entry) {
  const client = useQueryClient();
  const me = useQuery(meQuery).data;
  const again = () =>
    Promise.all(
      [["queue"], ["jobs"], ["clusters"], ["job", entry.id], ["cluster", entry.id]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
  const run = useMutation({
    mutationFn: (act: Act) => sent(entry, act),
    onSuccess: (_, act) => {
      void again();
      const said = `${plain(entry.name)} ${SAID[act]}`;
      if (act === "hold") showUndo(said, () => sent(entry, "release").then(again));
      else notifications.show({ message: said });
    },
    onError: ({ message }) => notifications.show({ color: "red", message }),
  });
  const acts: (readonly [Act, string])[] = [];
  if (mayEnd(me, entry.account_id)) {
    if (entry.kind === "job") acts.push(entry.held_by === null ? ["hold", "Hold"] : ["release", "Release"]);
    if (entry.kind === "job" && isRenter(me, entry.account_id) && !entry.factors.is_top)
      acts.push(["top", "Put first of its project"]);
    acts.push(["cancel", "Cancel"]);
  }
  return { acts, run };
}

/** In a row of the queue. */
export function EntryMenu({ entry }: { entry: Entry }) {
  const { acts, run } = useActs(entry);
  if (acts.length === 0) return null;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="subtle"
          size="compact-sm"
          loading={run.isPending}
          rightSection={<ChevronIcon size={12} />}
          aria-label={`Change ${plain(entry.name)}`}
        >
          Change
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {acts.map(([act, label]) => (
          <Menu.Item key={act} onClick={() => run.mutate(act)}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** On a page of its own, whose head has the button that cancels it. */
export function EntryButtons({ entry }: { entry: Entry }) {
  const { acts, run } = useActs(entry);
  return acts
    .filter(([act]) => act !== "cancel")
    .map(([act, label]) => (
      <Button
        key={act}
        variant="default"
        size="compact-sm"
        loading={run.isPending && run.variables === act}
        onClick={() => run.mutate(act)}
      >
        {label}
      </Button>
    ));
}
