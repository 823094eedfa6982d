import { expect, it } from "vitest";
import type { OrganisationMember, Project, Role } from "../api/types.ts";
import {
  draftOf,
  givableProjects,
  givableRoles,
  inviteCommand,
  lastUse,
  manages,
  mayChange,
  mayRemove,
  memberCommand,
  serviceCommand,
  serviceRoles,
  toInvitation,
  toMemberChange,
} from "./members.ts";

const who = (...roles: Role[]) => ({ account: { id: "account_1", name: "lab" }, roles });
const project = (id: string, name: string, ...roles: Role[]): Project => ({ id, name, roles });
const member = (role: Role | null, ...projects: Project[]): OrganisationMember => ({
  id: "user_1",
  name: "Ada",
  address: null,
  role,
  has_second_factor: false,
  projects,
});

it("lets owners and admins give everywhere, and admins of a project in it alone", () => {
  const projects = [project("account_1", "lab"), project("account_2", "default")];
  expect(givableProjects(who("org_admin"), projects)).toHaveLength(2);
  expect(givableProjects(who("admin"), projects).map((one) => one.name)).toEqual(["lab"]);
  expect(givableRoles(who("org_owner"))).toContain("org_owner");
  expect(givableRoles(who("org_admin"))).not.toContain("org_owner");
  expect(givableRoles(who("admin"))).toEqual([]);
  expect([manages(who("admin")), manages(who("org_auditor")), manages(who("renter"))]).toEqual([true, false, false]);
});

it.each<[Role, Role | null, boolean]>([
  ["org_owner", "org_owner", true],
  ["org_admin", "org_owner", false],
  ["org_admin", "org_admin", true],
  ["admin", "org_admin", false],
  ["admin", "org_billing", true],
  ["admin", null, true],
  ["org_auditor", null, false],
])("asks whether %s changes a member who is %s", (mine, its, may) => {
  expect(mayChange(who(mine), member(its))).toBe(may);
});

it("invites to something, for an address or for whoever has the link", () => {
  const draft = { role: "none", projects: { lab: ["renter", "viewer"], default: [] } } as const;
  const body = toInvitation(" ada@example.org ", draft);
  expect(body).toEqual({ address: "ada@example.org", projects: [{ project: "lab", roles: ["renter", "viewer"] }] });
  expect(inviteCommand(body!)).toBe("windrow invite --address ada@example.org --project lab:renter,viewer");
  expect(toInvitation("", { role: "org_billing", projects: {} })).toEqual({ role: "org_billing" });
  expect(toInvitation("ada@example.org", { role: "none", projects: { lab: [] } })).toBeNull();
});

it("changes what is changed alone", () => {
  const before = draftOf(member("org_admin", project("account_1", "lab", "renter", "admin")));
  expect(toMemberChange(before, { ...before, projects: { lab: ["admin", "renter"] } })).toBeNull();
  const body = toMemberChange(before, { role: "none", projects: { lab: [], default: ["viewer"] } });
  expect(body).toEqual({
    role: "none",
    projects: [
      { project: "lab", roles: [] },
      { project: "default", roles: ["viewer"] },
    ],
  });
  expect(memberCommand("user_1", body!)).toBe(
    "windrow member set user_1 --role none --project lab: --project default:viewer",
  );
});

it("lets an admin of a project remove those who are in nothing else", () => {
  const [lab, other] = [project("account_1", "lab", "renter"), project("account_2", "default", "renter")];
  expect(mayRemove(who("admin"), member(null, lab))).toBe(true);
  expect(mayRemove(who("admin"), member(null, lab, other))).toBe(false);
  expect(mayRemove(who("admin"), member("org_auditor", lab))).toBe(false);
  expect(mayRemove(who("renter"), member(null, lab))).toBe(false);
  expect(mayRemove(who("org_admin"), member(null, lab, other))).toBe(true);
  expect(mayRemove(who("org_admin"), member("org_owner", lab))).toBe(false);
});

it("offers a service account the roles of who makes it, and says which token was used last", () => {
  expect(serviceRoles(who("admin", "renter"))).toEqual(["renter", "viewer"]);
  expect(serviceCommand("ci", ["renter", "viewer"])).toBe("windrow service-account add --role renter --role viewer ci");
  const token = (id: string, at: string | null) => ({
    id,
    name: "ci",
    roles: [],
    created_at: "2030-01-01T00:00:00.000Z",
    expires_at: "2030-02-01T00:00:00.000Z",
    last_used_at: at,
    last_used_address: null,
  });
  const tokens = [token("a", "2030-01-02T00:00:00.000Z"), token("b", null), token("c", "2030-01-01T00:00:00.000Z")];
  expect(lastUse({ tokens })?.id).toBe("a");
  expect(lastUse({ tokens: [token("b", null)] })).toBeNull();
});
