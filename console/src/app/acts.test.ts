import { expect, test } from "vitest";
import type { Cluster, Host, Job, Role } from "../api/types.ts";
import { actsOn, fits, gpuMeant, meant, type Thing, verbsFor } from "./acts.ts";

const me = (...roles: Role[]) => ({ account: { id: "account_1", name: "ada" }, roles });
const host = (name: string, state = "active") =>
  ({ kind: "host", of: { id: `host_${name}`, name, owner_account: "account_1", admin_state: state } as Host }) as const;
const machine = (phase: string, account = "account_1") =>
  ({
    kind: "machine",
    of: { id: "cluster_1", name: "lab", phase, account_id: account, request: { notebook: true } } as Cluster,
  }) as const;
const said = (typed: string, things: Thing[], ...roles: Role[]) =>
  actsOn(things, meant(typed), me(...roles)).map(({ verb, thing }) => `${verb} ${thing.of.name}`);

test.each([
  ["drain rack7", ["drain"], "rack7"],
  ["dra rack7", ["drain"], "rack7"],
  ["Delete  lab", ["delete"], "lab"],
  ["open jupyter lab", ["open jupyter"], "lab"],
  ["open lab", ["open jupyter"], "lab"],
  ["resume lab", ["activate", "start"], "lab"],
  ["drain", ["drain"], ""],
  ["drainage", [], "drainage"],
  ["st lab", [], "st lab"],
])("%s means %j of %j", (typed, verbs, name) => {
  expect([meant(typed).verbs.map((verb) => verb.word), meant(typed).name]).toEqual([verbs, name]);
});

test("a GPU is named by its host and its number", () => {
  expect(gpuMeant("rack7-node2 gpu 5")).toEqual({ host: "rack7-node2", index: 5 });
  expect(gpuMeant("rack7-node2 · gpu 5").index).toBe(5);
  expect(gpuMeant("h100")).toEqual({ host: "h100", index: null });
});

test("only what the role may do and the state allows is offered", () => {
  const things = [host("rack7"), host("rack8", "draining"), host("other")];
  expect(said("drain rack", things, "operator")).toEqual(["drain rack7"]);
  expect(said("drain rack", things, "renter")).toEqual([]);
  expect(said("resume rack", things, "provider")).toEqual(["activate rack8"]);
  expect(said("delete lab", [machine("running")], "renter")).toEqual(["delete lab"]);
  expect(said("delete lab", [machine("running", "account_2")], "renter")).toEqual([]);
  expect(said("delete lab", [machine("running", "account_2")], "operator")).toEqual(["delete lab"]);
  expect(said("stop lab", [machine("stopped")], "renter")).toEqual([]);
  expect(said("start lab", [machine("stopped")], "renter")).toEqual(["start lab"]);
});

test("a job is cancelled while it has not ended, and Jupyter opens where it runs", () => {
  const job = (ended_at: string | null): Thing => ({ kind: "job", of: { account_id: "account_1", ended_at } as Job });
  expect([fits("cancel", job(null), me("renter")), fits("cancel", job("2030"), me("renter"))]).toEqual([true, false]);
  expect(fits("open jupyter", machine("running"), me("renter"))).toBe(true);
  expect(fits("open jupyter", machine("stopped"), me("renter"))).toBe(false);
});

test("verbs are those of the roles", () => {
  expect(verbsFor(["provider"]).map((verb) => verb.word)).toContain("drain");
  expect(verbsFor(["renter"]).map((verb) => verb.word)).not.toContain("drain");
  expect(verbsFor(["auditor"])).toEqual([]);
});
