import { expect, test } from "vitest";
import { closeness, mayOpen, menuFor, PAGES, titleOf } from "./pages.ts";

const EVERYBODY = ["operator", "provider", "renter", "auditor", "org_owner"] as const;

test("no two pages share a key or an address", () => {
  const menu = menuFor(EVERYBODY);
  expect(new Set(menu.map((page) => page.menu.key)).size).toBe(menu.length);
  expect(new Set(PAGES.map((page) => page.path)).size).toBe(PAGES.length);
});

test("an entry of the menu that has others below it is chosen at its own address only", () => {
  const exact = menuFor(EVERYBODY).filter((page) => page.exact);
  expect(exact.map((page) => page.path)).toEqual(["/", "/clusters", "/jobs"]);
});

test("a renter sees neither health, regions nor audit", () => {
  const seen = menuFor(["renter"]).map((page) => page.path);
  expect(seen).not.toContain("/audit");
  expect(seen).not.toContain("/health");
  expect(seen).not.toContain("/regions");
  expect(seen).toContain("/clusters/new");
});

test("a page opens to the roles of its row, and one without a row to everybody", () => {
  expect(mayOpen("/join", ["renter"])).toBe(false);
  expect(mayOpen("/jobs/new", ["renter"])).toBe(true);
  expect(mayOpen("/join", ["provider"])).toBe(true);
  expect(mayOpen("/clusters/new", ["provider", "operator", "auditor"])).toBe(false);
  expect([mayOpen("/clusters", ["provider"]), mayOpen("/clusters", ["auditor"])]).toEqual([false, true]);
  expect(mayOpen("/clusters/$clusterId", [])).toBe(true);
  expect([mayOpen("/members", ["admin"]), mayOpen("/members", ["operator"])]).toEqual([true, false]);
});

test("a tab is called by the kind of screen and never by what others named", () => {
  expect(titleOf("/")).toBe("Overview · Windrow");
  expect(titleOf("/clusters/new")).toBe("New cluster · Windrow");
  expect(titleOf("/clusters/cluster_1")).toBe("Cluster · Windrow");
  expect(titleOf("/hosts/<b>")).toBe("Host · Windrow");
  expect(titleOf("/nowhere")).toBe("Windrow");
});

test("beginnings are nearer than middles, and words beside the name are found last", () => {
  expect(closeness("cl", "Clusters")).toBe(1);
  expect(closeness("host", "Join a host")).toBe(2);
  expect(closeness("ust", "Clusters")).toBe(3);
  expect(closeness("dark", "Settings", "colours dark")).toBe(4);
  expect(closeness("zebra", "Clusters")).toBeNull();
});
