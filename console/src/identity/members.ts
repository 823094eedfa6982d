// Members, invitations and projects: who may do what, drafts of forms as requests and as commands. Pure.
import type {
  InvitationRequest,
  Me,
  MemberChange,
  OrganisationMember,
  Project,
  Role,
  ServiceAccount,
  TokenRow,
} from "../api/types.ts";
import { operand, quoted } from "../parts/shell.ts";
import { ORGANISATION_ROLES, type OrganisationRole, type ProjectRole } from "./roles.ts";

type Who = Pick<Me, "account" | "roles">;

const hasOne = (who: Who, ...roles: Role[]): boolean => roles.some((role) => who.roles.includes(role));

/** True for who decides about the whole organisation. */
export const managesAll = (who: Who): boolean => hasOne(who, "org_owner", "org_admin");

/** True for who may invite and change roles: in all projects, or as an admin in the present one. */
export const manages = (who: Who): boolean => managesAll(who) || hasOne(who, "admin");

/** The roles in the organisation that these may give. */
export function givableRoles(who: Who): readonly OrganisationRole[] {
  if (!managesAll(who)) return [];
  return ORGANISATION_ROLES.filter((role) => role !== "org_owner" || hasOne(who, "org_owner"));
}

/** The projects in which these may give roles. */
export const givableProjects = (who: Who, projects: readonly Project[]): Project[] =>
  projects.filter((project) => managesAll(who) || project.id === who.account.id);

/** False for members whom only others may change: owners by owners, admins by owners and admins. */
export function mayChange(who: Who, member: Pick<OrganisationMember, "role">): boolean {
  if (member.role === "org_owner") return hasOne(who, "org_owner");
  return member.role === "org_admin" ? managesAll(who) : manages(who);
}

/** A role in the organisation, and roles in projects by their names. */
export interface GrantsDraft {
  role: OrganisationRole | "none";
  projects: Readonly<Record<string, readonly ProjectRole[]>>;
}

/** The roles that a member has now. */
export const draftOf = (member: OrganisationMember): GrantsDraft => ({
  role: (member.role as OrganisationRole | null) ?? "none",
  projects: Object.fromEntries(member.projects.map(({ name, roles }) => [name, roles as ProjectRole[]])),
});

/** Null: it gives nothing. */
export function toInvitation(address: string, draft: GrantsDraft): InvitationRequest | null {
  const body: InvitationRequest = {};
  if (address.trim()) body.address = address.trim();
  if (draft.role !== "none") body.role = draft.role;
  const projects = Object.entries(draft.projects).filter(([, roles]) => roles.length > 0);
  if (projects.length) body.projects = projects.map(([project, roles]) => ({ project, roles: [...roles] }));
  return body.role || body.projects ? body : null;
}

const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((role) => other.includes(role));

/** What is to change alone; null: nothing. */
export function toMemberChange(before: GrantsDraft, after: GrantsDraft): MemberChange | null {
  const body: MemberChange = {};
  if (after.role !== before.role) body.role = after.role;
  const changed = Object.entries(after.projects).filter(([name, roles]) => !isSame(roles, before.projects[name] ?? []));
  if (changed.length) body.projects = changed.map(([project, roles]) => ({ project, roles: [...roles] }));
  return Object.keys(body).length > 0 ? body : null;
}

const grantWords = ({ role, projects }: InvitationRequest | MemberChange): string[] => [
  ...(role ? [`--role ${role}`] : []),
  ...(projects ?? []).map((one) => `--project ${quoted(`${one.project}:${one.roles.join(",")}`)}`),
];

export const inviteCommand = (body: InvitationRequest): string =>
  ["windrow invite", ...(body.address ? [`--address ${quoted(body.address)}`] : []), ...grantWords(body)].join(" ");

/** To begin with: a renter of this project. */
export const firstInvite = (project: string): string => inviteCommand({ projects: [{ project, roles: ["renter"] }] });

export const memberCommand = (userId: string, body: MemberChange): string =>
  ["windrow member set", operand(userId), ...grantWords(body)].join(" ");

/** True where these may end the membership: admins of a project that of who is in nothing else. */
export function mayRemove(who: Who, member: Pick<OrganisationMember, "role" | "projects">): boolean {
  if (managesAll(who)) return mayChange(who, member);
  return hasOne(who, "admin") && !member.role && member.projects.every((project) => project.id === who.account.id);
}

/** The roles that these may give a service account. */
export const serviceRoles = (who: Who): Role[] =>
  (["renter", "viewer", "provider"] as const).filter((role) => role === "viewer" || hasOne(who, role));

/** Its token that was used last; null: none ever was. */
export const lastUse = ({ tokens }: Pick<ServiceAccount, "tokens">): TokenRow | null =>
  tokens
    .filter((token) => token.last_used_at !== null)
    .reduce<TokenRow | null>((a, b) => (a && (a.last_used_at ?? "") > (b.last_used_at ?? "") ? a : b), null);

export const serviceCommand = (name: string, roles: readonly string[]): string =>
  ["windrow service-account add", ...roles.map((role) => `--role ${role}`), operand(name || "NAME")].join(" ");
