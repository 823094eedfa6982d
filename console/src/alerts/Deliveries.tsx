// Messages of alerts on their way to channels: how each went, and the button that sends it again.
import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { post } from "../api/client.ts";
import { channels as channelsQuery, type Paged } from "../api/queries.ts";
import type { Channel, Delivery } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { plain, words } from "../parts/format.ts";
import { State } from "../parts/state.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";
import { DELIVERY_TONES } from "./alerts.ts";

const OWN_MAIL = "mail:";

const columnsFor = (channels: readonly Channel[], isShort: boolean): readonly Column<Delivery>[] => {
  const channelOf = ({ channel_id }: Delivery): string =>
    channels.find((one) => one.id === channel_id)?.name ?? (channel_id.startsWith(OWN_MAIL) ? "Mail" : channel_id);
  const title: Column<Delivery> = {
    id: "title",
    name: "Message",
    value: (row) => row.title,
    cell: (row) => (
      <Link className="wr-link wr-break" to="/alerts/$alertId" params={{ alertId: row.alert_id }}>
        {plain(row.title)}
      </Link>
    ),
  };
  return [
    { id: "channel", name: "Channel", value: channelOf, facet: true },
    ...(isShort ? [] : [title]),
    { id: "kind", name: "Kind", value: (row) => words(row.kind), facet: true },
    {
      id: "state",
      name: "State",
      value: (row) => row.state,
      cell: (row) => <State state={row.state} tone={DELIVERY_TONES[row.state]} reason={row.last_answer} />,
    },
    ...(isShort
      ? []
      : [
          { id: "answer", name: "Last answer", value: (row: Delivery) => row.last_answer },
          { id: "tries", name: "Tries", value: (row: Delivery) => row.tries, number: true },
          moment<Delivery>("due_at", "Next try", (row) => row.due_at),
        ]),
    moment("first_at", "Since", (row) => row.first_at),
    identity((row) => row.id, { optional: true }),
    actions((row) => <Again delivery={row} />),
  ];
};

interface Props {
  list: Paged<Delivery>;
  empty: ReactNode;
  /** Beside other things: a few rows, without what the page says already. */
  isShort?: boolean;
}

export function DeliveryTable({ list, empty, isShort = false }: Props) {
  const channels = useQuery(channelsQuery).data;
  const columns = useMemo(() => columnsFor(channels ?? [], isShort), [channels, isShort]);
  return (
    <DataTable
      of={["delivery", "deliveries"]}
      columns={columns}
      {...usePaged(list, (row) => row.id)}
      bare={isShort}
      empty={empty}
    />
  );
}

function Again({ delivery }: { delivery: Delivery }) {
  const client = useQueryClient();
  const act = useChange(() => post(`/deliveries/${encodeURIComponent(delivery.id)}/again`), {
    lists: [{ queryKey: ["deliveries"] }],
    said: "It is sent again",
  });
  if (delivery.state !== "sent" && delivery.state !== "given_up") return null;
  return (
    <Button
      variant="subtle"
      size="compact-sm"
      loading={act.isPending}
      {...(act.error ? { color: "red", title: act.error.message } : {})}
      onClick={() =>
        act.mutate(undefined, { onError: () => void client.invalidateQueries({ queryKey: ["deliveries"] }) })
      }
      aria-label={`Send again: ${plain(delivery.title)}`}
    >
      Send again
    </Button>
  );
}
