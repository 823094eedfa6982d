// The page of an organisation: its members, open invitations and projects.
import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { members as membersQuery, me as meQuery, organisation as organisationQuery } from "../api/queries.ts";
import type { Me, OrganisationMember } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, PageHead, Panel } from "../parts/page.tsx";
import { actions, identity } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { Invitations, Invite } from "./Invitations.tsx";
import { ChangeRoles, PasswordLink, RemoveMember } from "./MemberDialogs.tsx";
import { firstInvite, manages, managesAll, mayChange, mayRemove } from "./members.ts";
import { DeletedProjects, ProjectOffers } from "./ProjectEnds.tsx";
import { Projects } from "./Projects.tsx";
import { projectsText, roleName } from "./roles.ts";
import { ServiceAccounts } from "./ServiceAccounts.tsx";

type Deed = "change" | "link" | "remove";
type Asked = { deed: "invite" } | { deed: Deed; member: OrganisationMember };

const roleIn = ({ role }: OrganisationMember): string => (role ? roleName(role) : "Member");

const columnsFor = (me: Me | null | undefined, ask: (asked: Asked) => void): readonly Column<OrganisationMember>[] => [
  {
    id: "name",
    name: "Name",
    value: (row) => row.name,
    cell: (row) => (
      <span className="wr-break">
        {plain(row.name)}
        {row.id === me?.user?.id && (
          <>
            {" "}
            <span className="wr-mark">you</span>
          </>
        )}
      </span>
    ),
  },
  { id: "address", name: "Address", value: (row) => row.address },
  { id: "role", name: "Role", value: roleIn, facet: true },
  { id: "projects", name: "Projects", value: (row) => projectsText(row.projects) },
  { id: "second_factor", name: "Second factor", value: (row) => (row.has_second_factor ? "on" : "off"), facet: true },
  identity((row) => row.id, { optional: true }),
  ...(me ? [actions<OrganisationMember>((row) => <Deeds me={me} member={row} ask={ask} />)] : []),
];

function Deeds({ me, member, ask }: { me: Me; member: OrganisationMember; ask: (asked: Asked) => void }) {
  const [isMine, may] = [me.user?.id === member.id, mayChange(me, member)];
  const button = (deed: Deed, label: string, color = "gray") => (
    <Button
      variant="subtle"
      color={color}
      size="compact-sm"
      onClick={() => ask({ deed, member })}
      aria-label={`${label}: ${plain(member.name)}`}
    >
      {label}
    </Button>
  );
  return (
    <Group gap={4} justify="flex-end">
      {may && button("change", "Change roles")}
      {may && !isMine && button("link", "Password link")}
      {isMine ? button("remove", "Leave", "red") : mayRemove(me, member) && button("remove", "Remove", "red")}
    </Group>
  );
}

export function MembersPage() {
  const me = useQuery(meQuery).data;
  const query = useQuery(membersQuery);
  const organisation = useQuery(organisationQuery).data;
  const search = useSearch({ from: "/members" });
  const navigate = useNavigate();
  const [chosen, ask] = useState<Asked | null>(null);
  const asked: Asked | null = chosen ?? (search.invite ? { deed: "invite" } : null);
  const columns = useMemo(() => columnsFor(me, ask), [me]);
  const close = () => {
    ask(null);
    if (search.invite) void navigate({ to: "/members", replace: true });
  };
  const invites = me != null && manages(me);
  return (
    <div className="wr-page">
      <PageHead
        above={organisation && plain(organisation.name)}
        title="Members"
        actions={
          invites && (
            <Button leftSection={<PlusIcon />} onClick={() => ask({ deed: "invite" })}>
              Invite
            </Button>
          )
        }
      />
      <div className="wr-stack">
        <Panel bare label="Members">
          <DataTable
            of={["member", "members"]}
            columns={columns}
            id={(row) => row.id}
            rows={query.data}
            query={query}
            address
            empty={<Empty title="No members">Nobody is a member of this project yet.</Empty>}
          />
          {invites && query.data?.length === 1 && query.data[0]?.id === me.user?.id && (
            <Empty title="Only you are here" command={firstInvite(me.account.name)}>
              Invite somebody: they open a link, take a password, and work in the projects that you choose.
            </Empty>
          )}
        </Panel>
        {me && <Invitations me={me} />}
        {me && <ServiceAccounts me={me} />}
        {me && <Projects me={me} />}
        {me && managesAll(me) && <ProjectOffers me={me} />}
        {me && managesAll(me) && <DeletedProjects />}
      </div>
      {me && asked?.deed === "invite" && <Invite me={me} close={close} />}
      {me && asked?.deed === "change" && <ChangeRoles me={me} member={asked.member} close={close} />}
      {asked?.deed === "link" && <PasswordLink member={asked.member} close={close} />}
      {asked?.deed === "remove" && (
        <RemoveMember
          member={asked.member}
          leaves={asked.member.id === me?.user?.id ? organisation : undefined}
          close={close}
        />
      )}
    </div>
  );
}
