import { expect, it, vi } from "vitest";

vi.stubGlobal("BroadcastChannel", undefined);
const { keepProject, keepSecret, proof, signOutHere } = await import("./secret.ts");

it("names the project of this tab with its own session alone", () => {
  expect(proof()).toEqual({});
  keepSecret("ws_a");
  expect(proof()).toEqual({ Authorization: "Bearer ws_a" });
  keepProject("account_1");
  expect(proof()).toEqual({ Authorization: "Bearer ws_a", "Windrow-Project": "account_1" });
  expect(proof("ws_other")).toEqual({ Authorization: "Bearer ws_other" });
  signOutHere();
  keepSecret("ws_b");
  expect(proof()).toEqual({ Authorization: "Bearer ws_b" });
});
