// Roles in words, and which of them an organisation and a project have. Pure.
import type { InvitationRequest, Project, Role } from "../api/types.ts";
import { DASH, plain } from "../parts/format.ts";

export type OrganisationRole = NonNullable<InvitationRequest["role"]>;
export type ProjectRole = NonNullable<InvitationRequest["projects"]>[number]["roles"][number];

const NAMES: Readonly<Record<Role, string>> = {
  org_owner: "Owner",
  org_admin: "Admin",
  org_billing: "Billing",
  org_auditor: "Auditor",
  admin: "Project admin",
  renter: "Renter",
  viewer: "Viewer",
  provider: "Provider",
  operator: "Operator",
  auditor: "Installation auditor",
};

export const ORGANISATION_ROLES: readonly OrganisationRole[] = ["org_owner", "org_admin", "org_billing", "org_auditor"];
/** Who reads the members of an organisation; the Master's GRANTS (identity/decide.py) has the same. */
export const READERS: readonly Role[] = [...ORGANISATION_ROLES, "admin"];
export const PROJECT_ROLES: readonly ProjectRole[] = ["admin", "renter", "viewer", "provider"];

export const roleName = (role: Role): string => NAMES[role] ?? role;

/** Several roles in a line, in the order of the table above. */
export function roleNames(roles: readonly Role[]): string {
  const known = Object.keys(NAMES);
  return (
    [...roles]
      .sort((a, b) => known.indexOf(a) - known.indexOf(b))
      .map(roleName)
      .join(", ") || DASH
  );
}

/** "lab: Renter, Viewer; default: Viewer" */
export const projectsText = (projects: readonly Project[]): string =>
  projects.map(({ name, roles }) => `${plain(name)}: ${roleNames(roles)}`).join("; ") || DASH;
