// The projects of an organisation: one is added, deleted or transferred.
import { Button, Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post } from "../api/client.ts";
import { projects as projectsQuery, user as userQuery } from "../api/queries.ts";
import type { Me, Project } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand } from "../parts/shell.ts";
import { actions, identity } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { limitsColumn, SetLimits, useLimits } from "./Limits.tsx";
import { managesAll } from "./members.ts";
import { DeleteProject, OfferProject } from "./ProjectEnds.tsx";
import { roleNames } from "./roles.ts";

type Limits = ReturnType<typeof useLimits>;
type Asked = { deed: "delete" | "offer" | "limit"; project: Project };

/** True for who sets the limits of this project. */
const limitsIt = (me: Me, project: Project): boolean =>
  managesAll(me) || me.roles.includes("operator") || (me.roles.includes("admin") && project.id === me.account.id);

const columnsFor = (me: Me, limits: Limits, ask: (asked: Asked) => void): readonly Column<Project>[] => [
  {
    id: "name",
    name: "Name",
    value: (row) => row.name,
    cell: (row) => (
      <span className="wr-break">
        {plain(row.name)}
        {row.id === me.account.id && (
          <>
            {" "}
            <span className="wr-mark">this one</span>
          </>
        )}
      </span>
    ),
  },
  { id: "roles", name: "Your roles", value: (row) => roleNames(row.roles) },
  limitsColumn(limits, (row) => row.id),
  identity((row) => row.id),
  actions<Project>((row) => <Deeds me={me} project={row} ask={ask} />),
];

function Deeds({ me, project, ask }: { me: Me; project: Project; ask: (asked: Asked) => void }) {
  const isOther = project.id !== me.account.id;
  const button = (deed: Asked["deed"], label: string, color: string) => (
    <Button
      variant="subtle"
      color={color}
      size="compact-sm"
      onClick={() => ask({ deed, project })}
      aria-label={`${label}: ${plain(project.name)}`}
    >
      {label}
    </Button>
  );
  return (
    <Group gap={4} justify="flex-end">
      {limitsIt(me, project) && button("limit", "Limits", "gray")}
      {isOther && me.roles.includes("org_owner") && button("offer", "Transfer", "gray")}
      {isOther && managesAll(me) && button("delete", "Delete", "red")}
    </Group>
  );
}

export function Projects({ me }: { me: Me }) {
  const query = useQuery(projectsQuery);
  const [isAdding, setAdding] = useState(false);
  const limits = useLimits();
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useMemo(() => columnsFor(me, limits, ask), [me, limits]);
  const mayAdd = managesAll(me) && me.user !== null;
  return (
    <Panel
      title="Projects"
      bare
      actions={
        mayAdd && (
          <Button variant="default" onClick={() => setAdding(true)}>
            New project
          </Button>
        )
      }
    >
      <DataTable
        of={["project", "projects"]}
        columns={columns}
        id={(row) => row.id}
        rows={query.data}
        query={query}
        bare
        empty={
          <Empty title="No projects" command="windrow project add NAME">
            A project owns, rents and pays: hosts, machines, volumes and money belong to one.
          </Empty>
        }
      />
      {managesAll(me) && (
        <Text size="xs" className="wr-quiet" px="md" py="xs">
          To delete or transfer the project that you act in, change to another one first, in the menu at the top.
        </Text>
      )}
      {asked?.deed === "limit" && <SetLimits spender={{ kind: "project", ...asked.project }} close={() => ask(null)} />}
      {asked?.deed === "delete" && <DeleteProject project={asked.project} close={() => ask(null)} />}
      {asked?.deed === "offer" && <OfferProject project={asked.project} close={() => ask(null)} />}
      {isAdding && <NewProject close={() => setAdding(false)} />}
    </Panel>
  );
}

function NewProject({ close }: { close: () => void }) {
  const [typed, setTyped] = useState("");
  const name = typed.trim();
  const said = `Project ${plain(name)} is added. Work in it: choose it in the menu at the top.`;
  const act = useChange(() => post("/projects", { name }), { lists: [projectsQuery, userQuery], said, close });
  return (
    <FormDialog
      title="New project"
      close={close}
      act={act}
      ready={name !== ""}
      fields={["name"]}
      submit="Add the project"
    >
      <Text size="sm">It begins without money, with you as its admin.</Text>
      <TextInput
        label="Name"
        description="Lower-case letters, digits and . @ _ -"
        placeholder="lab"
        autoComplete="off"
        maxLength={64}
        value={typed}
        error={faultsOf(act.error).name}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
      />
      <Same method="POST" path="/projects" body={{ name }} command={`windrow project add ${operand(name || "NAME")}`} />
    </FormDialog>
  );
}
