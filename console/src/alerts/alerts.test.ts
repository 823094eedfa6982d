import { expect, test } from "vitest";
import type { Alert, Attention, OwnRule } from "../api/types.ts";
import {
  draftOf,
  eventKinds,
  isSaid,
  NEW_RULE,
  ofProduct,
  onStrip,
  ruleCommand,
  ruleFrom,
  ruleText,
  scopeFrom,
  subjectsText,
} from "./alerts.ts";
import { unreadText } from "./bell.ts";
import { channelCommand, channelDraft, channelFaults, scopesFor, settingsFrom } from "./channels.ts";

const alert = (rule: string, subject_count = 1) => ({ rule, subject_count, subjects: ["a"] }) as unknown as Alert;
const group = (kind: string, count = 1) => ({ kind, count }) as unknown as Attention;

test("a trouble that open alerts say is shown once, and one that they do not say whole stays", () => {
  expect(isSaid(group("offline", 3), [alert("host.lost"), alert("host.lost", 2)])).toBe(true);
  expect(isSaid(group("offline", 4), [alert("host.lost", 3)])).toBe(false);
  expect(isSaid(group("offline", 9), [alert("relay.down", 10)])).toBe(true);
  expect(isSaid(group("faulty"), [alert("gpu.hot")])).toBe(false);
  expect(isSaid(group("faulty"), [alert("gpu.lost")])).toBe(true);
  expect(isSaid(group("no_relay", 0), [])).toBe(false);
  expect(isSaid(group("master:audit.broken"), [alert("audit.broken")])).toBe(true);
});

test("each home has the alerts of its product; own rules are of both", () => {
  const all = ["job.failed", "host.lost", "alertrule_1", "budget.80"].map((rule) => alert(rule));
  const rules = (product: "rent" | "provide" | "operate") => ofProduct(all, product).map((one) => one.rule);
  expect(rules("rent")).toEqual(["job.failed", "alertrule_1", "budget.80"]);
  expect(rules("provide")).toEqual(["host.lost", "alertrule_1"]);
  expect(rules("operate")).toHaveLength(4);
});

test("a form becomes a rule, or says field by field what is wrong", () => {
  const { body, faults } = ruleFrom({ ...NEW_RULE, name: " hot ", where: "host=gpu-7, tier=h100/A" });
  expect(faults).toEqual({});
  expect(body).toEqual({
    ...{ name: "hot", metric: "gpu_temperature_celsius", comparison: ">", threshold: 85, duration_s: 300 },
    ...{ scope: { host: "gpu-7", tier: "h100/A" }, severity: "ticket" },
  });
  const wrong = { ...NEW_RULE, of: "event", event: "job", where: "host", threshold: "1.5" } as const;
  expect(Object.keys(ruleFrom(wrong).faults)).toEqual(["name", "event", "where", "threshold"]);
  expect(scopeFrom("")).toEqual({});
});

test("a rule reads as a sentence, as a command, and comes back into its form", () => {
  const { body } = ruleFrom({ ...NEW_RULE, name: "failures", of: "event", threshold: "3", durationS: "3600" });
  const rule = { ...body, id: "alertrule_1", metric: null, severity: "page" } as unknown as OwnRule;
  expect(ruleText(rule)).toBe("3 times job.failed within 1 h");
  expect(ruleCommand({ ...body, severity: "page" })).toBe(
    "windrow alert rule add failures --event job.failed --count 3 --for 3600s --severity page",
  );
  expect(draftOf(rule)).toMatchObject({ of: "event", event: "job.failed", threshold: "3", severity: "page" });
});

test("small words", () => {
  expect(subjectsText({ subjects: ["gpu-7", "gpu-8"], subject_count: 5 })).toBe("gpu-7, gpu-8 and 3 more");
  expect([unreadText(7), unreadText(100)]).toEqual(["7", "99+"]);
  expect(eventKinds(["job.failed, job.lost", "samples wait", "job.lost"])).toEqual(["job.failed", "job.lost"]);
  const now = Date.parse("2026-11-08T00:00:00Z");
  expect(onStrip("2026-11-07T12:00:00Z", null, now, 86_400_000)).toEqual([0.5, 1]);
});

test("a channel's form becomes its settings and a command, and says what is missing", () => {
  expect(scopesFor(["renter"], true)).toEqual(["me", "project"]);
  expect(scopesFor(["operator", "org_owner"], false)).toEqual(["organisation", "operators"]);
  const blank = channelDraft(undefined, "Europe/Berlin");
  expect(Object.keys(channelFaults({ ...blank, digest: "3" }, true))).toEqual(["name", "target", "digest"]);
  const draft = { ...blank, name: "lab", target: "ada@example.org", rules: "job.*, budget.*", isQuiet: true };
  expect(channelFaults({ ...draft, digest: "60" }, true)).toEqual({});
  expect(settingsFrom({ ...draft, digest: "60" }, true)).toMatchObject({
    ...{ rules: ["job.*", "budget.*"], digest_minutes: 60, is_enabled: true },
    quiet: { begin: "22:00", end: "07:00", time_zone: "Europe/Berlin" },
  });
  expect(channelCommand({ ...draft, isQuiet: false, kind: "apprise" }, "project")).toBe(
    "windrow channel add lab --kind apprise --to - --for project --rule 'job.*' --rule 'budget.*'",
  );
});
