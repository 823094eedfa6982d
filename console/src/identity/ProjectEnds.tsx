// The end of projects: the dialogs that delete one and offer it to another organisation, the lists of deleted and of
// offered ones.
import { Button, Group, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import {
  deletedProjects as deletedQuery,
  projectOffers as offersQuery,
  projects as projectsQuery,
  user as userQuery,
} from "../api/queries.ts";
import type { DeletedProject, Me, Project, ProjectOffer } from "../api/types.ts";
import { operand } from "../clusters/request.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { actions, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

const pathOf = (id: string): string => `/projects/${encodeURIComponent(id)}`;

/** A change of a project: the lists are read again. */
function useChange(change: () => Promise<unknown>, said: string, close: () => void = () => undefined) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => {
      for (const { queryKey } of [projectsQuery, deletedQuery, offersQuery, userQuery])
        void client.invalidateQueries({ queryKey });
      notifications.show({ message: said });
      close();
    },
  });
}

export function DeleteProject({ project, close }: { project: Project; close: () => void }) {
  const name = plain(project.name);
  const act = useChange(() => remove(pathOf(project.id)), `Project ${name} is deleted. It is kept for 30 days.`, close);
  return (
    <ConfirmByName
      title={`Delete the project ${name}`}
      name={project.name}
      button="Delete the project"
      act={act}
      close={close}
      text={
        "Its tokens and shares end, and nobody acts in it. For 30 days it can be restored; then its files, volumes, " +
        "logs and secrets are deleted. Nothing of it may run, and no money may be left."
      }
    >
      <Same method="DELETE" path={pathOf(project.id)} command={`windrow project delete ${operand(project.id)} --yes`} />
    </ConfirmByName>
  );
}

export function OfferProject({ project, close }: { project: Project; close: () => void }) {
  const [typed, setTyped] = useState("");
  const name = plain(project.name);
  const [path, body] = [`${pathOf(project.id)}/transfer`, { organisation: typed.trim() }];
  const act = useChange(() => post(path, body), `Project ${name} is offered to ${plain(body.organisation)}`, close);
  return (
    <FormDialog
      title={`Transfer ${name}`}
      close={close}
      act={act}
      ready={body.organisation !== ""}
      submit="Offer the project"
    >
      <Text size="sm">
        An owner of the other organisation accepts it within a week. It goes with its money, hosts, volumes and secrets.
        All of its members and tokens until now end.
      </Text>
      <TextInput
        label="Organisation"
        description="Name or id"
        autoComplete="off"
        maxLength={128}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
      />
      <Same
        method="POST"
        path={path}
        body={body}
        command={`windrow project offer ${operand(project.id)} --to ${operand(body.organisation || "ORG")}`}
      />
    </FormDialog>
  );
}

const DELETED: readonly Column<DeletedProject>[] = [
  { id: "name", name: "Name", value: (row) => row.name },
  moment("deleted_at", "Deleted", (row) => row.deleted_at),
  moment("expires_at", "Kept until", (row) => row.expires_at),
  actions((row) => <Restore project={row} />),
];

function Restore({ project }: { project: DeletedProject }) {
  const name = plain(project.name);
  const act = useChange(() => post(`${pathOf(project.id)}/restore`), `Project ${name} is restored`);
  return (
    <>
      <Button
        variant="subtle"
        size="compact-sm"
        loading={act.isPending}
        onClick={() => act.mutate()}
        aria-label={`Restore: ${name}`}
      >
        Restore
      </Button>
      {act.error && <ProblemNote error={act.error} />}
    </>
  );
}

/** Not shown while there are none. For owners and admins. */
export function DeletedProjects() {
  const query = useQuery(deletedQuery);
  if (!query.data?.length) return null;
  return (
    <Panel title="Deleted projects" bare>
      <DataTable
        of={["deleted project", "deleted projects"]}
        columns={DELETED}
        id={(row) => row.id}
        rows={query.data}
        query={query}
        bare
        empty={null}
      />
    </Panel>
  );
}

const offersFor = (isOwner: boolean): readonly Column<ProjectOffer>[] => [
  { id: "name", name: "Project", value: (row) => row.name },
  { id: "source", name: "Of", value: (row) => row.source },
  { id: "target", name: "Offered to", value: (row) => row.target },
  moment("expires_at", "Expires", (row) => row.expires_at),
  ...(isOwner ? [actions<ProjectOffer>((row) => <Answer offer={row} />)] : []),
];

function Answer({ offer }: { offer: ProjectOffer }) {
  const [name, path] = [plain(offer.name), `${pathOf(offer.project)}/transfer`];
  const accept = useChange(() => post(`${path}/accept`), `Project ${name} belongs to your organisation now`);
  const end = useChange(() => remove(path), `The offer of ${name} is withdrawn`);
  const word = offer.is_mine ? "Withdraw" : "Refuse";
  const error = accept.error ?? end.error;
  return (
    <Group gap={4} justify="flex-end">
      {!offer.is_mine && (
        <Button
          variant="subtle"
          size="compact-sm"
          loading={accept.isPending}
          onClick={() => accept.mutate()}
          aria-label={`Accept: ${name}`}
        >
          Accept
        </Button>
      )}
      <Button
        variant="subtle"
        color="red"
        size="compact-sm"
        loading={end.isPending}
        onClick={() => end.mutate()}
        aria-label={`${word}: ${name}`}
      >
        {word}
      </Button>
      {error && <ProblemNote error={error} />}
    </Group>
  );
}

/** Projects that the organisation offers, or that are offered to it. Not shown while there are none. */
export function ProjectOffers({ me }: { me: Me }) {
  const query = useQuery(offersQuery);
  const isOwner = me.roles.includes("org_owner");
  const columns = useMemo(() => offersFor(isOwner), [isOwner]);
  if (!query.data?.length) return null;
  return (
    <Panel title="Offered projects" bare>
      <DataTable
        of={["offered project", "offered projects"]}
        columns={columns}
        id={(row) => row.project}
        rows={query.data}
        query={query}
        bare
        empty={null}
      />
    </Panel>
  );
}
