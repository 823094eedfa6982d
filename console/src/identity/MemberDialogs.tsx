// The dialogs about one member: other roles, a link for a new password, removal.
import { Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, put, remove } from "../api/client.ts";
import { members as membersQuery, me as meQuery, projects as projectsQuery } from "../api/queries.ts";
import type { Me, OrganisationMember, PasswordLinkMade } from "../api/types.ts";
import { operand } from "../clusters/request.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import { LinkShown } from "../parts/ShownOnce.tsx";
import { Grants } from "./Grants.tsx";
import { draftOf, givableProjects, givableRoles, memberCommand, toMemberChange } from "./members.ts";

const pathOf = (member: OrganisationMember): string => `/members/${encodeURIComponent(member.id)}`;

/** After a change: the list is read again, and one's own roles, which may be other ones. */
function useAfter(): () => void {
  const client = useQueryClient();
  return () => {
    void client.invalidateQueries({ queryKey: membersQuery.queryKey });
    void client.invalidateQueries({ queryKey: meQuery.queryKey });
  };
}

export function ChangeRoles({ me, member, close }: { me: Me; member: OrganisationMember; close: () => void }) {
  const projects = useQuery(projectsQuery).data ?? [];
  const before = useMemo(() => draftOf(member), [member]);
  const [draft, setDraft] = useState(before);
  const after = useAfter();
  const body = toMemberChange(before, draft);
  const act = useMutation({
    mutationFn: () => put<OrganisationMember>(pathOf(member), body),
    onSuccess: () => {
      after();
      notifications.show({ message: `The roles of ${plain(member.name)} are changed` });
      close();
    },
  });
  return (
    <FormDialog
      title={`Roles of ${plain(member.name)}`}
      close={close}
      act={act}
      ready={body !== null}
      submit="Change roles"
    >
      <Text size="sm">They hold at once, in browsers and tokens alike.</Text>
      <Grants draft={draft} change={setDraft} roles={givableRoles(me)} projects={givableProjects(me, projects)} />
      <Same method="PUT" path={pathOf(member)} body={body ?? {}} command={memberCommand(member.id, body ?? {})} />
    </FormDialog>
  );
}

export function PasswordLink({ member, close }: { member: OrganisationMember; close: () => void }) {
  const path = `${pathOf(member)}/password-link`;
  const act = useMutation({ mutationFn: () => post<PasswordLinkMade>(path), gcTime: 0 });
  const name = plain(member.name);
  if (act.data)
    return (
      <LinkShown
        title={`Password link of ${name}`}
        label="password link"
        link={act.data.link}
        until={act.data.link_expires_at}
        close={close}
      >
        Send this link to {name} over a channel that you trust. Whoever opens it first sets the password.
      </LinkShown>
    );
  return (
    <FormDialog title={`Password link: ${name}`} close={close} act={act} ready submit="Make the link">
      <Text size="sm">
        For a member who cannot sign in. The link sets a new password; links made before stop working.
      </Text>
      <Same method="POST" path={path} body={{}} command={`windrow member password-link ${operand(member.id)}`} />
    </FormDialog>
  );
}

interface RemoveProps {
  member: OrganisationMember;
  /** The organisation, where it is oneself who leaves. */
  leaves: string | undefined;
  close: () => void;
}

export function RemoveMember({ member, leaves, close }: RemoveProps) {
  const after = useAfter();
  const [name, isMine] = [plain(member.name), leaves !== undefined];
  const path = leaves ? `/user/organisations/${encodeURIComponent(leaves)}` : pathOf(member);
  const act = useMutation({
    mutationFn: () => remove(path),
    onSuccess: () => {
      after();
      notifications.show({ message: isMine ? "You have left the organisation" : `${name} is removed` });
      close();
    },
  });
  return (
    <ConfirmByName
      title={isMine ? "Leave the organisation" : `Remove ${name}`}
      name={member.name}
      button={isMine ? "Leave" : "Remove"}
      act={act}
      close={close}
      text={
        isMine
          ? "Your browsers and tokens are signed out of its projects at once. What runs there goes on."
          : `Browsers and tokens of ${name} are signed out of the organisation's projects at once. What runs goes on.`
      }
    >
      <Same
        method="DELETE"
        path={path}
        command={`windrow member ${isMine ? "leave" : "rm"} ${operand(leaves ?? member.id)} --yes`}
      />
    </ConfirmByName>
  );
}
