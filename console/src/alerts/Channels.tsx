// Channels: where alerts are sent to, with a test of each, and how every message went.
import { Button, Group, Menu, NativeSelect, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, put, remove } from "../api/client.ts";
import { deliveries as deliveriesQuery, channels as query } from "../api/queries.ts";
import type { Channel, ChannelMade, Delivery } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { listed, plain, words } from "../parts/format.ts";
import { MoreIcon, PlusIcon } from "../parts/icons.tsx";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { ShownOnce } from "../parts/ShownOnce.tsx";
import { operand } from "../parts/shell.ts";
import { State } from "../parts/state.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { ChannelForm, channelPath } from "./ChannelForm.tsx";
import { KIND_NAMES, pauses, SCOPE_NAMES, settingsOf } from "./channels.ts";
import { DeliveryTable } from "./Deliveries.tsx";

type Deed = "edit" | "rotate" | "remove";
type Asked = { deed: "add" } | { deed: Deed; channel: Channel };

const LISTS = [query, { queryKey: ["deliveries"] }];

const columnsFor = (ask: (asked: Asked) => void): readonly Column<Channel>[] => [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "kind", name: "Kind", value: (row) => KIND_NAMES[row.kind], facet: true },
  { id: "target", name: "To", value: (row) => row.target },
  { id: "scope", name: "Alerts of", value: (row) => SCOPE_NAMES[row.scope], facet: true },
  {
    id: "what",
    name: "Which",
    value: (row) =>
      [row.min_severity === "page" ? "Urgent only" : "All", ...(row.rules.length ? [listed(row.rules)] : [])].join(
        ": ",
      ),
  },
  { id: "pauses", name: "Waits", value: pauses },
  {
    id: "state",
    name: "State",
    value: (row) => (row.is_enabled ? "on" : "paused"),
    facet: true,
    cell: (row) => <State state={row.is_enabled ? "On" : "Paused"} tone={row.is_enabled ? "ok" : "off"} />,
  },
  moment("created_at", "Made", (row) => row.created_at),
  identity((row) => row.id, { optional: true }),
  actions((row) => <Deeds channel={row} ask={ask} />),
];

export function Channels() {
  const found = useQuery(query);
  const [asked, ask] = useState<Asked | null>(null);
  const [made, setMade] = useState<ChannelMade | null>(null);
  const columns = useMemo(() => columnsFor(ask), []);
  const close = () => ask(null);
  const add = (
    <Button leftSection={<PlusIcon size={14} />} onClick={() => ask({ deed: "add" })}>
      Add a channel
    </Button>
  );
  const has = (found.data?.length ?? 0) > 0;
  return (
    <div className="wr-stack">
      <Panel title="Channels" bare actions={has && add}>
        <DataTable
          of={["channel", "channels"]}
          columns={columns}
          id={(row) => row.id}
          rows={found.data}
          query={found}
          bare={(found.data?.length ?? 0) < 12}
          empty={
            <Empty
              title="No channels"
              command="windrow channel add hook --kind webhook --to https://example.org/hook"
              action={add}
            >
              A channel sends alerts by mail, as a signed webhook, or to a chat such as Slack. Without one, urgent
              alerts are mailed to you where this market sends mail. Add one here, or by:
            </Empty>
          }
        />
      </Panel>
      <Sent />
      {(asked?.deed === "add" || asked?.deed === "edit") && (
        <ChannelForm {...("channel" in asked ? { channel: asked.channel } : {})} close={close} made={setMade} />
      )}
      {asked?.deed === "rotate" && <Rotate channel={asked.channel} close={close} made={setMade} />}
      {asked?.deed === "remove" && <Remove channel={asked.channel} close={close} />}
      {made?.secret && (
        <ShownOnce
          title={`Secret of ${plain(made.channel.name)}`}
          label="secret"
          secret={made.secret}
          close={() => setMade(null)}
          note={made.channel.rotated_at && "For one day each message is signed by the old secret, too."}
        >
          The receiver verifies messages by it. Copy it now: you will not see it again.
        </ShownOnce>
      )}
    </div>
  );
}

function Deeds({ channel, ask }: { channel: Channel; ask: (asked: Asked) => void }) {
  const name = plain(channel.name);
  const said = channel.is_enabled ? `${name} is paused: it gives up what it has not sent` : `${name} sends again`;
  const toggle = useChange(
    () => put(channelPath(channel.id), { ...settingsOf(channel), is_enabled: !channel.is_enabled }),
    { lists: LISTS, said },
  );
  const isOff = !channel.is_enabled;
  return (
    <Group gap={4} justify="flex-end" wrap="nowrap">
      <Test channel={channel} />
      <Menu position="bottom-end">
        <Menu.Target>
          <Button
            variant="subtle"
            color="gray"
            size="compact-sm"
            loading={toggle.isPending}
            aria-label={`More: ${name}`}
          >
            <MoreIcon size={14} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => ask({ deed: "edit", channel })}>Edit</Menu.Item>
          <Menu.Item onClick={() => toggle.mutate()}>{isOff ? "Resume" : "Pause"}</Menu.Item>
          {channel.kind === "webhook" && (
            <Menu.Item onClick={() => ask({ deed: "rotate", channel })}>New secret</Menu.Item>
          )}
          <Menu.Item color="red" onClick={() => ask({ deed: "remove", channel })}>
            Remove
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

/** Sends a message now, and says what the receiver answered. */
function Test({ channel }: { channel: Channel }) {
  const name = plain(channel.name);
  const act = useMutation({
    mutationFn: () => post<Delivery>(`${channelPath(channel.id)}/test`),
    onSuccess: ({ state, last_answer }) => {
      const answer = last_answer ? ` Answer: ${plain(last_answer)}` : "";
      notifications.show({
        color: state === "sent" ? "teal" : "red",
        autoClose: 15_000,
        message: state === "sent" ? `${name} took the test message.${answer}` : `${name} did not take it.${answer}`,
      });
    },
    onError: (failure) => notifications.show({ color: "red", message: failure.message }),
  });
  return (
    <Button
      variant="subtle"
      size="compact-sm"
      loading={act.isPending}
      disabled={!channel.is_enabled}
      onClick={() => act.mutate()}
      aria-label={`Test: ${name}`}
    >
      Test
    </Button>
  );
}

interface DialogProps {
  channel: Channel;
  close: () => void;
}

function Rotate({ channel, close, made }: DialogProps & { made: (made: ChannelMade) => void }) {
  const path = `${channelPath(channel.id)}/rotate`;
  const act = useChange(async () => made(await post<ChannelMade>(path)), {
    lists: LISTS,
    said: `${plain(channel.name)} has a new secret`,
    close,
  });
  return (
    <FormDialog title={`New secret: ${plain(channel.name)}`} close={close} act={act} ready submit="Make the secret">
      <Text size="sm">For one day each message is signed by both secrets, so the receiver can change over in it.</Text>
      <Same method="POST" path={path} body={{}} command={`windrow channel rotate ${operand(channel.name)}`} />
    </FormDialog>
  );
}

function Remove({ channel, close }: DialogProps) {
  const said = `The channel ${plain(channel.name)} is removed`;
  const act = useChange(() => remove(channelPath(channel.id)), { lists: LISTS, said, close });
  return (
    <FormDialog
      title={`Remove ${plain(channel.name)}`}
      close={close}
      act={act}
      ready
      submit="Remove the channel"
      danger
    >
      <Text size="sm">It sends nothing more, also not what waits.</Text>
      <Same
        method="DELETE"
        path={channelPath(channel.id)}
        command={`windrow channel rm ${operand(channel.name)} --yes`}
      />
    </FormDialog>
  );
}

const STATES: readonly Delivery["state"][] = ["waiting", "held", "sent", "given_up"];

function Sent() {
  const [state, setState] = useState("");
  const list = useMemo(() => deliveriesQuery(state ? { state } : {}), [state]);
  return (
    <Panel
      title="Deliveries"
      bare
      actions={
        <NativeSelect
          size="xs"
          aria-label="State of deliveries"
          value={state}
          onChange={(event) => setState(event.currentTarget.value)}
          data={[{ value: "", label: "All" }, ...STATES.map((value) => ({ value, label: words(value) }))]}
        />
      }
    >
      <DeliveryTable
        list={list}
        empty={
          <Empty title={state ? "No such deliveries" : "Nothing was sent yet"}>
            Each message to a channel stands here with the receiver's answer, for 90 days. Press Test beside a channel
            to try it.
          </Empty>
        }
      />
    </Panel>
  );
}
