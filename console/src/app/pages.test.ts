import { expect, test } from "vitest";
import {
  closedAt,
  closeness,
  mayOpen,
  menuFor,
  NEW,
  nearness,
  PAGES,
  phoneBar,
  productAt,
  productsOf,
  titleOf,
} from "./pages.ts";

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

test("at an address nothing is drawn that would ask for what the roles may not", () => {
  for (const path of ["/people", "/audit/", "/health", "/new", "/clusters/new", "/volumes"])
    expect(closedAt(path, ["provider"])?.name, path).toBeDefined();
  expect(closedAt("/new", ["auditor"])?.menu.roles).toEqual(["renter"]);
  expect(closedAt("/events", ["renter"])?.name).toBe("Events");
  expect([closedAt("/events", ["renter"], true), closedAt("/events", ["provider"])]).toEqual([null, null]);
  for (const path of ["/", "/fleet", "/offers", "/prices", "/clusters/cluster_1", "/no/such/page"])
    expect(closedAt(path, []), path).toBeNull();
});

test("a page is found by the first word of several, and by states and deeds", () => {
  const found = (typed: string) =>
    menuFor(EVERYBODY)
      .filter(({ name, menu }) => nearness(typed, name, menu.also ?? "") !== null)
      .map((page) => page.name);
  expect(found("price h100")).toContain("Pricing");
  expect(found("faulty")).toEqual(["Fleet"]);
  expect(found("stop relay")).toEqual(["Relays"]);
  expect(found("lab 2")).toEqual([]);
});

test("a menu has the pages of its product that the roles open", () => {
  const names = (roles: Parameters<typeof menuFor>[0], product: Parameters<typeof menuFor>[1]) =>
    menuFor(roles, product).map((page) => page.name);
  expect(names(["renter"], "rent").slice(0, 4)).toEqual(["Home", "GPUs & prices", "Machines", "Jobs"]);
  expect(names(["renter"], "rent")).not.toContain("Fleet");
  expect(names(["provider"], "provide")).toContain("Fleet");
  expect(names(["provider"], "provide")).not.toContain("Machines");
  expect([names(["provider"], "provide").includes("Pricing"), names(["renter"], "rent").includes("Pricing")]).toEqual([
    ...[true, false],
  ]);
  expect(names(["operator"], "operate")).toContain("Relays");
  expect(names(["operator"], "operate")).not.toContain("New machine");
  for (const [product] of productsOf(EVERYBODY)) expect(names(EVERYBODY, product)).toContain("Home");
});

test("who has one product sees no other, and who has none looks around as a renter", () => {
  expect(productsOf(["provider"])).toEqual([["provide", "Provide"]]);
  expect(productsOf(["auditor"])).toEqual([["operate", "Operate"]]);
  expect(productsOf([])).toEqual([["rent", "Rent"]]);
  expect(productsOf(EVERYBODY).map(([product]) => product)).toEqual(["rent", "provide", "operate"]);
});

test("the last product stays, unless a page is of others alone", () => {
  expect(productAt("/", EVERYBODY, null)).toBe("operate");
  expect(productAt("/", EVERYBODY, "rent")).toBe("rent");
  expect(productAt("/", ["renter"], "operate")).toBe("rent");
  expect(productAt("/volumes", EVERYBODY, "operate")).toBe("rent");
  expect(productAt("/clusters/cluster_1", EVERYBODY, "provide")).toBe("rent");
  expect(productAt("/clusters/cluster_1", EVERYBODY, "operate")).toBe("operate");
  expect(productAt("/hosts/host_1", EVERYBODY, "provide")).toBe("provide");
});

test("New and a phone's bar lead only to pages that open", () => {
  for (const roles of [["renter"], ["provider"], ["operator"], ["auditor"], ["org_owner", "admin"]] as const) {
    for (const [, path, of] of NEW)
      if (of.some((role) => roles.some((mine) => mine === role))) expect(mayOpen(path, roles)).toBe(true);
    for (const [product] of productsOf(roles)) expect(phoneBar(roles, product)[0]?.path).toBe("/");
  }
});

test("a tab is called by the kind of screen and never by what others named", () => {
  expect(titleOf("/")).toBe("Home · Windrow");
  expect(titleOf("/clusters/new")).toBe("New machine · Windrow");
  expect(titleOf("/clusters/cluster_1")).toBe("Machine · Windrow");
  expect(titleOf("/hosts/<b>")).toBe("Host · Windrow");
  expect(titleOf("/nowhere")).toBe("Windrow");
});

test("beginnings are nearer than middles, and words beside the name are found last", () => {
  expect(closeness("cl", "Clusters")).toBe(1);
  expect(closeness("host", "Add a host")).toBe(2);
  expect(closeness("ust", "Clusters")).toBe(3);
  expect(closeness("dark", "Settings", "colours dark")).toBe(4);
  expect(closeness("zebra", "Clusters")).toBeNull();
});
