// The menu at the top right: who is signed in, in which project, and the way to another one.
import { Button, Menu } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { user as userQuery } from "../api/queries.ts";
import type { Me } from "../api/types.ts";
import { roleNames } from "../identity/roles.ts";
import { nameOf, readAgain, signOut, switchProject } from "../identity/session.ts";
import { plain } from "../parts/format.ts";
import { UserIcon } from "../parts/icons.tsx";

export function UserMenu({ me }: { me: Me }) {
  const name = nameOf(me);
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <Button variant="subtle" color="gray" leftSection={<UserIcon />} className="wr-user">
          <span className="wr-cut">{plain(name)}</span>
          {name !== me.account.name && (
            <span className="wr-quiet wr-cut wr-user-project">{plain(me.account.name)}</span>
          )}
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah="80vh" style={{ overflowY: "auto" }}>
        <Menu.Label className="wr-break">
          {plain(me.account.name)}: {roleNames(me.roles)}
        </Menu.Label>
        {me.user !== null && <Projects me={me} />}
        <Menu.Item component={Link} to="/settings">
          Settings
        </Menu.Item>
        <Menu.Item component="a" href="/docs">
          Documentation
        </Menu.Item>
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** Of all organisations, where there is more than one. */
function Projects({ me }: { me: Me }) {
  const navigate = useNavigate();
  const projects = useQuery(userQuery).data?.organisations.flatMap((one) => one.projects) ?? [];
  const act = useMutation({
    mutationFn: async (id: string) => {
      await switchProject(id);
      await navigate({ to: "/" }); // what the present page shows may not be there in the other project
      await readAgain();
    },
    onError: (failure) => notifications.show({ color: "red", message: failure.message }),
  });
  if (projects.length < 2) return null;
  return (
    <>
      <Menu.RadioGroup value={me.account.id} onChange={(id) => id !== me.account.id && act.mutate(id)}>
        <Menu.Label>Project</Menu.Label>
        {projects.map(({ id, name }) => (
          <Menu.RadioItem key={id} value={id} disabled={act.isPending} closeMenuOnClick>
            <span className="wr-break">{plain(name)}</span>
          </Menu.RadioItem>
        ))}
      </Menu.RadioGroup>
      <Menu.Divider />
    </>
  );
}
