import { expect, test } from "vitest";
import { stepsOf, troublesOf } from "./remedies.ts";

const FAULT = "Reset the GPU (`sudo nvidia-smi -r -i INDEX`) or reboot the host. See `dmesg` on the host.";
const host = { name: "rack-7", admin_state: "active" };
const card = { uuid: "GPU-1", index: 5, state: "faulty" as const, state_reason: "it was faulty" };
const condition = {
  code: "gpu.host_fault:GPU-1",
  title: "Hardware fault",
  about: "GPU 5",
  detail: "The driver reported a fault.",
  severity: "ticket" as const,
  remedy: FAULT,
  runbook: "docs/conditions.md",
  since: "2026-01-01T00:00:00Z",
};

test("a remedy is a step for each sentence, with the command to run and the index in it", () => {
  expect(stepsOf(FAULT, "rack-7", 5)).toEqual([
    {
      text: "Reset the GPU (`sudo nvidia-smi -r -i 5`) or reboot the host.",
      command: "sudo nvidia-smi -r -i 5",
      verb: null,
    },
    { text: "See `dmesg` on the host.", command: null, verb: null },
  ]);
});

test("a command of windrow for the host is the button that does it", () => {
  const [first] = stepsOf("Drain the host (`windrow host drain HOST`), then reset the GPU.", "rack-7", 0);
  expect([first?.verb, first?.command]).toEqual(["drain", null]);
  expect(first?.text).toContain("`windrow host drain rack-7`");
});

test("a faulty GPU is mended on a drained host, and verified", () => {
  const [trouble] = troublesOf(host, [condition], [card]);
  expect(trouble?.title).toBe("GPU 5: Hardware fault");
  expect(trouble?.steps.map((one) => one.verb)).toEqual(["drain", null, null, "verify"]);
  const [later] = troublesOf({ ...host, admin_state: "draining" }, [condition], [card]);
  expect(later?.steps.map((one) => one.verb)).toEqual([null, null, "verify", "activate"]);
});

test("faults of one GPU are one trouble, with the remedy of the heaviest", () => {
  const lost = {
    ...condition,
    code: "gpu.lost:GPU-1",
    title: "Lost",
    detail: "It is gone.",
    remedy: "Reboot the host.",
  };
  const [trouble, ...others] = troublesOf(host, [condition, lost], [card]);
  expect(others).toEqual([]);
  expect([trouble?.title, trouble?.detail]).toEqual([
    "GPU 5: Lost, Hardware fault",
    "It is gone. The driver reported a fault.",
  ]);
  expect(trouble?.steps.map((one) => one.verb ?? one.text)).toEqual(["drain", "Reboot the host.", "verify"]);
  const hot = { ...condition, code: "gpu.hot:GPU-1", title: "Too hot", remedy: "Look at its fans." };
  const slow = { ...condition, code: "gpu.throttled:GPU-1", title: "Slowed down", remedy: "Look at its supply." };
  const [both] = troublesOf(host, [hot, slow], []);
  expect(both?.steps.map((one) => one.text)).toEqual(["Look at its fans.", "Look at its supply."]);
  const elsewhere = troublesOf(host, [hot, { ...slow, code: "gpu.throttled:GPU-2" }], []);
  expect(elsewhere.length).toBe(2);
});

test("a GPU that is faulty though nothing says so has to be verified, and what only explains comes last", () => {
  const info = { ...condition, code: "gpu.initialising", about: null, severity: "info" as const, remedy: "Wait." };
  const found = troublesOf(host, [info], [card]);
  expect(found.map((one) => [one.key, one.isInfo])).toEqual([
    ["GPU-1", false],
    ["gpu.initialising", true],
  ]);
  expect(found[0]?.steps.map((one) => one.verb)).toEqual(["drain", "verify"]);
});
