// The dialogs about one member: other roles, a link for a new password, removal.
import { Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { post, put, remove } from "../api/client.ts";
import { members as membersQuery, me as meQuery, projects as projectsQuery } from "../api/queries.ts";
import type { Me, Organisation, OrganisationMember, PasswordLinkMade } from "../api/types.ts";
import { ConfirmByName } from "../parts/ConfirmByName.tsx";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import { LinkShown } from "../parts/ShownOnce.tsx";
import { operand } from "../parts/shell.ts";
import { Grants } from "./Grants.tsx";
import { draftOf, givableProjects, givableRoles, memberCommand, toMemberChange } from "./members.ts";

const pathOf = (member: Pick<OrganisationMember, "id">): string => `/members/${encodeURIComponent(member.id)}`;

/** Also one's own roles, which may be other ones. */
const LISTS = [membersQuery, meQuery];

export function ChangeRoles({ me, member, close }: { me: Me; member: OrganisationMember; close: () => void }) {
  const projects = useQuery(projectsQuery).data ?? [];
  const before = useMemo(() => draftOf(member), [member]);
  const [draft, setDraft] = useState(before);
  const body = toMemberChange(before, draft);
  const said = `The roles of ${plain(member.name)} are changed`;
  const act = useChange(() => put(pathOf(member), body), { lists: LISTS, said, close });
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
  member: Pick<OrganisationMember, "id" | "name">;
  /** Where it is oneself who leaves. */
  leaves: Pick<Organisation, "id" | "name"> | undefined;
  close: () => void;
}

export function RemoveMember({ member, leaves, close }: RemoveProps) {
  const name = plain((leaves ?? member).name);
  const path = leaves ? `/user/organisations/${encodeURIComponent(leaves.id)}` : pathOf(member);
  const said = leaves ? `You have left ${name}` : `${name} is removed`;
  const act = useChange(() => remove(path), { lists: LISTS, said, close });
  return (
    <ConfirmByName
      title={leaves ? `Leave the organisation ${name}` : `Remove ${name}`}
      name={(leaves ?? member).name}
      button={leaves ? "Leave" : "Remove"}
      act={act}
      close={close}
      text={
        leaves
          ? "Your browsers, this one too, and your tokens are signed out of its projects at once. What runs there " +
            "goes on. To come back you need an invitation."
          : `Browsers and tokens of ${name} are signed out of the organisation's projects at once. What runs goes on.`
      }
    >
      <Same
        method="DELETE"
        path={path}
        command={`windrow member ${leaves ? "leave" : "rm"} ${operand((leaves ?? member).id)} --yes`}
      />
    </ConfirmByName>
  );
}
