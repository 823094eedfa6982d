// The list of clusters, jobs and templates that others share with the user.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { receivedShares } from "../api/queries.ts";
import type { ObjectShare } from "../api/types.ts";
import { plain, words } from "../parts/format.ts";
import { Empty, PageHead } from "../parts/page.tsx";
import { identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { receiverText, thingOf } from "./shares.ts";

const COLUMNS: readonly Column<ObjectShare>[] = [
  { id: "kind", name: "What", value: (row) => words(thingOf(row.object_kind)), facet: true },
  { id: "name", name: "Name", value: (row) => row.object_name, cell: (row) => <ToObject share={row} /> },
  { id: "project", name: "Project", value: (row) => row.project, facet: true },
  { id: "level", name: "Level", value: (row) => row.level, facet: true, cell: (row) => words(row.level) },
  { id: "by", name: "Shared by", value: (row) => row.created_by_name },
  { id: "with", name: "Shared with", value: receiverText },
  moment("expires_at", "Until", (row) => row.expires_at, "it is withdrawn"),
  identity((row) => row.id),
];

export function SharedPage() {
  const query = useQuery(receivedShares());
  return (
    <div className="wr-page">
      <PageHead title="Shared with me" />
      <DataTable
        of={["share", "shares"]}
        columns={COLUMNS}
        id={(row) => row.id}
        rows={query.data}
        query={query}
        address
        empty={
          <Empty title="Nothing is shared with you" command="windrow share ls --received">
            Others share a machine or a job on its page. It stays theirs: they pay for it.
          </Empty>
        }
      />
      <Text size="xs" className="wr-quiet" mt="sm">
        A machine is made from a shared template by its id: windrow machine create --template ID
      </Text>
    </div>
  );
}

function ToObject({ share }: { share: ObjectShare }) {
  const name = plain(share.object_name);
  if (share.object_kind === "cluster")
    return (
      <Link className="wr-link wr-break" to="/clusters/$clusterId" params={{ clusterId: share.object_id }}>
        {name}
      </Link>
    );
  if (share.object_kind === "job")
    return (
      <Link className="wr-link wr-break" to="/jobs/$jobId" params={{ jobId: share.object_id }}>
        {name}
      </Link>
    );
  return <span className="wr-break">{name}</span>;
}
