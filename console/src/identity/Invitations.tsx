// Open invitations of an organisation, and the dialog that invites somebody.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, remove } from "../api/client.ts";
import { invitations as invitationsQuery, projects as projectsQuery } from "../api/queries.ts";
import type { Invitation, InvitationMade, Me } from "../api/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Empty, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { LinkShown } from "../parts/ShownOnce.tsx";
import { When } from "../parts/state.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { Grants } from "./Grants.tsx";
import {
  firstInvite,
  type GrantsDraft,
  givableProjects,
  givableRoles,
  inviteCommand,
  manages,
  toInvitation,
} from "./members.ts";
import { projectsText, roleName } from "./roles.ts";

const whoOf = ({ address }: Invitation): string => (address === null ? "Anybody with the link" : plain(address));

const columnsFor = (me: Me): readonly Column<Invitation>[] => [
  { id: "for", name: "For", value: whoOf },
  { id: "role", name: "Role", value: ({ role }) => (role ? roleName(role) : "Member") },
  { id: "projects", name: "Projects", value: ({ projects }) => projectsText(projects) },
  moment("expires_at", "Expires", (row) => row.expires_at),
  identity((row) => row.id, { optional: true }),
  ...(manages(me) ? [actions<Invitation>((row) => <Deeds invitation={row} />)] : []),
];

export function Invitations({ me }: { me: Me }) {
  const query = useQuery(invitationsQuery);
  const columns = useMemo(() => columnsFor(me), [me]);
  return (
    <Panel title="Invitations" bare>
      <DataTable
        of={["invitation", "invitations"]}
        columns={columns}
        id={(row) => row.id}
        rows={query.data}
        query={query}
        bare
        empty={
          <Empty title="No open invitations" command={firstInvite(me.account.name)}>
            An invitation is a link that works once, for a week.
          </Empty>
        }
      />
    </Panel>
  );
}

/** Both are soon made anew, and so done without asking back. */
function Deeds({ invitation }: { invitation: Invitation }) {
  const client = useQueryClient();
  const path = `/invitations/${encodeURIComponent(invitation.id)}`;
  const onSuccess = () => void client.invalidateQueries({ queryKey: invitationsQuery.queryKey });
  const renew = useMutation({ mutationFn: () => post<InvitationMade>(`${path}/link`), gcTime: 0, onSuccess });
  const withdraw = useMutation({ mutationFn: () => remove(path), onSuccess });
  const error = renew.error ?? withdraw.error;
  return (
    <>
      <Group gap={4} justify="flex-end">
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          loading={renew.isPending}
          onClick={() => renew.mutate()}
          aria-label={`New link: ${whoOf(invitation)}`}
        >
          New link
        </Button>
        <Button
          variant="subtle"
          color="red"
          size="compact-sm"
          loading={withdraw.isPending}
          onClick={() => withdraw.mutate()}
          aria-label={`Withdraw the invitation: ${whoOf(invitation)}`}
        >
          Withdraw
        </Button>
      </Group>
      {error && <ProblemNote error={error} />}
      {renew.data && <InvitationLink made={renew.data} close={renew.reset} />}
    </>
  );
}

function InvitationLink({ made, close }: { made: InvitationMade; close: () => void }) {
  const to = made.address === null ? "" : ` to ${plain(made.address)}`;
  if (made.link === null)
    return (
      <Dialog onClose={close} title="The invitation is on its way">
        <Stack gap="sm">
          <Text size="sm">
            A mail with the link goes{to}. The link works once and expires <When at={made.expires_at} />.
          </Text>
          <Group justify="flex-end">
            <Button onClick={close}>Done</Button>
          </Group>
        </Stack>
      </Dialog>
    );
  return (
    <LinkShown title="Invitation link" label="invitation link" link={made.link} until={made.expires_at} close={close}>
      Send this link{to} over a channel that you trust.{" "}
      {made.address === null
        ? "Whoever opens it first can accept the invitation."
        : "It is accepted with this address alone."}
    </LinkShown>
  );
}

export function Invite({ me, close }: { me: Me; close: () => void }) {
  const client = useQueryClient();
  const projects = givableProjects(me, useQuery(projectsQuery).data ?? []);
  const [address, setAddress] = useState("");
  const [changed, setDraft] = useState<GrantsDraft | null>(null);
  // Of several projects none is chosen for people: a renter spends its money.
  const [only, ...others] = projects;
  const first: GrantsDraft["projects"] = only && others.length === 0 ? { [only.name]: ["renter"] } : {};
  const draft = changed ?? { role: "none", projects: first };
  const body = toInvitation(address, draft);
  const act = useMutation({
    mutationFn: () => post<InvitationMade>("/invitations", body),
    gcTime: 0,
    onSuccess: () => void client.invalidateQueries({ queryKey: invitationsQuery.queryKey }),
  });
  if (act.data) return <InvitationLink made={act.data} close={close} />;
  return (
    <FormDialog
      title="Invite somebody"
      close={close}
      act={act}
      ready={body !== null}
      fields={["address"]}
      submit="Invite"
    >
      <TextInput
        label="Mail address"
        description="Whoever accepts signs in with this address. Empty: with one of their own."
        placeholder="anybody with the link"
        type="email"
        autoComplete="off"
        value={address}
        error={faultsOf(act.error).address}
        onChange={(event) => setAddress(event.currentTarget.value)}
        data-autofocus
      />
      <Grants draft={draft} change={setDraft} roles={givableRoles(me)} projects={projects} />
      <Same method="POST" path="/invitations" body={body ?? {}} command={inviteCommand(body ?? {})} />
    </FormDialog>
  );
}
