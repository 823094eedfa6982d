// The end of projects: the dialogs that delete one, offer it to another organisation and accept it there; the lists of
// deleted and of offered ones.
import { Button, Group, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import {
  deletedProjects as deletedQuery,
  projectOffers as offersQuery,
  projects as projectsQuery,
  user as userQuery,
} from "../api/queries.ts";
import type { DeletedProject, Me, Project, ProjectOffer } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand } from "../parts/shell.ts";
import { actions, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

const pathOf = (id: string): string => `/projects/${encodeURIComponent(id)}`;

const LISTS = [projectsQuery, deletedQuery, offersQuery, userQuery];

export function DeleteProject({ project, close }: { project: Project; close: () => void }) {
  const name = plain(project.name);
  const said = `Project ${name} is deleted. It can be restored for 30 days.`;
  const act = useChange(() => remove(pathOf(project.id)), { lists: LISTS, said, close });
  return (
    <ConfirmByName
      title={`Delete the project ${name}`}
      name={project.name}
      button="Delete the project"
      act={act}
      close={close}
      text={
        "Nothing of it may run, and no money may be left. Its tokens and shares end, and nobody acts in it any more. " +
        "For 30 days it can be restored; then its files, volumes, logs and secrets are deleted."
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
  const said = `Project ${name} is offered to ${plain(body.organisation)}`;
  const act = useChange(() => post(path, body), { lists: LISTS, said, close });
  return (
    <FormDialog
      title={`Transfer ${name}`}
      close={close}
      act={act}
      ready={body.organisation !== ""}
      submit="Offer the project"
    >
      <Text size="sm">
        An owner of the other organisation has a week to accept it. The project then goes there with its money, hosts,
        volumes and secrets, and what runs goes on. Its present members and tokens end.
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
  const said = `Project ${name} is restored. Its tokens stay ended: make new ones.`;
  const act = useChange(() => post(`${pathOf(project.id)}/restore`), { lists: LISTS, said });
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
  if (!query.data?.length && !query.error) return null;
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
  const name = plain(offer.name);
  const [word, said] = offer.is_mine ? ["Withdraw", "withdrawn"] : ["Refuse", "refused"];
  const [isAccepting, setAccepting] = useState(false);
  const change = () => remove(`${pathOf(offer.project)}/transfer`);
  const end = useChange(change, { lists: LISTS, said: `The offer of ${name} is ${said}` });
  return (
    <>
      <Group gap={4} justify="flex-end">
        {!offer.is_mine && (
          <Button variant="subtle" size="compact-sm" onClick={() => setAccepting(true)} aria-label={`Accept: ${name}`}>
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
      </Group>
      {end.error && <ProblemNote error={end.error} />}
      {isAccepting && <AcceptProject offer={offer} close={() => setAccepting(false)} />}
    </>
  );
}

function AcceptProject({ offer, close }: { offer: ProjectOffer; close: () => void }) {
  const [name, path] = [plain(offer.name), `${pathOf(offer.project)}/transfer/accept`];
  const said = `Project ${name} belongs to your organisation now. Work in it: choose it in the menu at the top.`;
  const act = useChange(() => post(path), { lists: LISTS, said, close });
  return (
    <FormDialog title={`Accept ${name}`} close={close} act={act} ready submit="Accept the project">
      <Text size="sm">
        The project comes from {plain(offer.source)} with its money, hosts, volumes and secrets, and what runs goes on.
        Its present members and tokens end, and you become its admin.
      </Text>
      <Same method="POST" path={path} body={{}} command={`windrow project accept ${operand(offer.project)}`} />
    </FormDialog>
  );
}

/** Projects that the organisation offers, or that are offered to it. Not shown while there are none. */
export function ProjectOffers({ me }: { me: Me }) {
  const query = useQuery(offersQuery);
  const isOwner = me.roles.includes("org_owner");
  const columns = useMemo(() => offersFor(isOwner), [isOwner]);
  if (!query.data?.length && !query.error) return null;
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
