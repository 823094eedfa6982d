// Identity providers: the fields of a form as a request and as a command, and their groups as text. Pure.
import type { Provider, ProviderRequest } from "../api/types.ts";
import { operand, quoted } from "../parts/shell.ts";
import { ORGANISATION_ROLES, type OrganisationRole, PROJECT_ROLES, type ProjectRole } from "./roles.ts";

/** As the Master takes it (api/provider_routes.py). */
const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

export interface ProviderDraft {
  name: string;
  issuer: string;
  clientId: string;
  /** Empty: the present one stays. */
  secret: string;
  organisation: string;
  createsUsers: boolean;
  domains: string;
  /** A line for each: GROUP=PROJECT:ROLE,ROLE or GROUP=ROLE. */
  groups: string;
  groupClaim: string;
  isPrivate: boolean;
  /** Kept as they are. */
  scopes: readonly string[];
}

export type ProviderFaults = Partial<Record<keyof ProviderDraft, string>>;
type Group = NonNullable<ProviderRequest["groups"]>[number];

export const NEW_PROVIDER: ProviderDraft = {
  name: "",
  issuer: "",
  clientId: "",
  secret: "",
  organisation: "",
  createsUsers: false,
  domains: "",
  groups: "",
  groupClaim: "groups",
  isPrivate: false,
  scopes: ["openid", "profile", "email"],
};

const words = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

/** Null: a line is none. */
export function readGroups(text: string): Group[] | null {
  const found = new Map<string, { group: string; role?: OrganisationRole; projects: Group["projects"] & object }>();
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (!line) continue;
    const [, name = "", project, roles = ""] = /^(.+)=(?:(.+):)?([a-z_,]+)$/.exec(line) ?? [];
    const group = found.get(name) ?? { group: name, projects: [] };
    const given = roles.split(",").filter(Boolean);
    const known: readonly string[] = project === undefined ? ORGANISATION_ROLES : PROJECT_ROLES;
    if (!name || !given.length || !given.every((role) => known.includes(role))) return null;
    if (project !== undefined) group.projects = [...group.projects, { project, roles: given as ProjectRole[] }];
    else if (given.length === 1) group.role = given[0] as OrganisationRole;
    else return null;
    found.set(name, group);
  }
  return [...found.values()];
}

const linesOf = (groups: readonly Group[]): string[] =>
  groups.flatMap(({ group, role, projects }) => [
    ...(role ? [`${group}=${role}`] : []),
    ...(projects ?? []).map((one) => `${group}=${one.project}:${one.roles.join(",")}`),
  ]);

/** The groups of a provider, as the form has them. */
export const groupLines = ({ groups }: Pick<Provider, "groups">): string[] =>
  linesOf(
    groups.map(({ group, role, projects }) => ({
      group,
      role: role as OrganisationRole | null,
      projects: projects.map((one) => ({ project: one.name, roles: one.roles as ProjectRole[] })),
    })),
  );

export const draftOf = (provider: Provider): ProviderDraft => ({
  name: provider.name,
  issuer: provider.issuer,
  clientId: provider.client_id,
  secret: "",
  organisation: provider.organisation ?? "",
  createsUsers: provider.creates_users,
  domains: provider.domains.join(", "),
  groups: groupLines(provider).join("\n"),
  groupClaim: provider.group_claim,
  isPrivate: provider.private,
  scopes: provider.scopes,
});

export function toProvider(draft: ProviderDraft): { body: ProviderRequest; faults: ProviderFaults } {
  const groups = readGroups(draft.groups);
  const faults: ProviderFaults = {};
  if (!NAME.test(draft.name)) faults.name = "Lower-case letters, digits and -";
  if (!/^https?:\/\/\S+$/.test(draft.issuer.trim())) faults.issuer = "A URL, such as https://login.example.org";
  if (!draft.clientId.trim()) faults.clientId = "As the provider names this market";
  if (groups === null) faults.groups = "A line for each: GROUP=PROJECT:ROLE,ROLE or GROUP=ROLE";
  const needs = draft.createsUsers || Boolean(groups?.length);
  if (needs && !draft.organisation.trim()) faults.organisation = "The organisation that its users join";
  const body: ProviderRequest = {
    issuer: draft.issuer.trim(),
    client_id: draft.clientId.trim(),
    ...(draft.secret && { client_secret: draft.secret }),
    ...(draft.organisation.trim() && { organisation: draft.organisation.trim() }),
    creates_users: draft.createsUsers,
    domains: words(draft.domains),
    groups: groups ?? [],
    group_claim: draft.groupClaim.trim() || "groups",
    private: draft.isPrivate,
    scopes: [...draft.scopes],
  };
  return { body, faults };
}

/** The same as a command; the secret comes from a file. */
export const providerCommand = (name: string, body: ProviderRequest): string =>
  [
    `windrow identity-provider add ${operand(name || "NAME")}`,
    `--issuer ${quoted(body.issuer || "URL")} --client-id ${quoted(body.client_id || "ID")}`,
    ...(body.client_secret ? ["--client-secret-file secret.txt"] : []),
    ...(body.organisation ? [`--organisation ${quoted(body.organisation)}`] : []),
    ...(body.creates_users ? ["--creates-users"] : []),
    ...(body.domains ?? []).map((one) => `--domain ${quoted(one)}`),
    ...linesOf(body.groups ?? []).map((one) => `--group ${quoted(one)}`),
    ...(body.group_claim === "groups" ? [] : [`--group-claim ${quoted(body.group_claim ?? "")}`]),
    ...(body.private ? ["--private"] : []),
  ].join(" ");
