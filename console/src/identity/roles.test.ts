import { expect, it } from "vitest";
import { projectsText, roleName, roleNames } from "./roles.ts";

it("names roles in words, always in the same order", () => {
  expect(roleNames(["renter", "org_owner", "admin"])).toBe("Owner, Project admin, Renter");
  expect([roleName("org_auditor"), roleName("auditor")]).toEqual(["Auditor", "Installation auditor"]);
  expect(roleNames([])).toBe("–");
});

it("says the roles in each project", () => {
  const lab = { id: "account_1", name: "lab", roles: ["viewer", "renter"] as const };
  expect(
    projectsText([
      { ...lab, roles: [...lab.roles] },
      { id: "account_2", name: "x", roles: [] },
    ]),
  ).toBe("lab: Renter, Viewer; x: –");
  expect(projectsText([])).toBe("–");
});
