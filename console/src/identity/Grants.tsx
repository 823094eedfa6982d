// The fields of a form that give roles: one in the organisation, several in each project.
import { Checkbox, Group, NativeSelect, Text } from "@mantine/core";
import type { Project } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import type { GrantsDraft } from "./members.ts";
import { type OrganisationRole, PROJECT_ROLES, type ProjectRole, roleName } from "./roles.ts";

interface GrantsProps {
  draft: GrantsDraft;
  change: (draft: GrantsDraft) => void;
  /** Those in the organisation that can be given; without any the field is not shown. */
  roles: readonly OrganisationRole[];
  /** Those in which roles can be given. */
  projects: readonly Project[];
}

export function Grants({ draft, change, roles, projects }: GrantsProps) {
  return (
    <>
      {roles.length > 0 && (
        <NativeSelect
          label="Role in the organisation"
          value={draft.role}
          onChange={(event) => change({ ...draft, role: event.currentTarget.value as GrantsDraft["role"] })}
          data={[
            { value: "none", label: "None: projects only" },
            ...roles.map((role) => ({ value: role, label: roleName(role) })),
          ]}
        />
      )}
      {projects.length === 0 && (
        <Text size="sm" className="wr-quiet">
          The projects are not known yet.
        </Text>
      )}
      {projects.map(({ id, name }) => (
        <Checkbox.Group
          key={id}
          label={`Project ${plain(name)}`}
          value={[...(draft.projects[name] ?? [])]}
          onChange={(given) => change({ ...draft, projects: { ...draft.projects, [name]: given as ProjectRole[] } })}
        >
          <Group mt={4} gap="md">
            {PROJECT_ROLES.map((role) => (
              <Checkbox key={role} value={role} label={roleName(role)} />
            ))}
          </Group>
        </Checkbox.Group>
      ))}
    </>
  );
}
