import { expect, test } from "vitest";
import { closeness, PLACES, placesFor, titleOf } from "./places.ts";

test("no two screens share a key or an address", () => {
  const all = PLACES.flatMap(([, places]) => places);
  expect(new Set(all.map((place) => place.key)).size).toBe(all.length);
  expect(new Set(all.map((place) => place.to)).size).toBe(all.length);
});

test("a renter sees neither health, regions nor audit", () => {
  const seen = placesFor(["renter"]).map((place) => place.to);
  expect(seen).not.toContain("/audit");
  expect(seen).not.toContain("/health");
  expect(seen).not.toContain("/regions");
  expect(seen).toContain("/clusters/new");
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
