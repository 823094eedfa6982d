import { describe, expect, test } from "vitest";
import { operand, quoted } from "../parts/shell.ts";
import { asCommand, BLANK, callOf, loginOf, shownWith, splitCommand, toDraft, toRequest } from "./request.ts";

test("commands split as a shell would", () => {
  expect(splitCommand(`python -c 'print("a b")'`)).toEqual(["python", "-c", 'print("a b")']);
  expect(splitCommand(`a "b \\"c\\" \\n" d\\ e ''`)).toEqual(["a", 'b "c" \\n', "d e", ""]);
  expect(splitCommand("  ")).toEqual([]);
  expect(() => splitCommand("echo 'open")).toThrow("not closed");
});

test("what is quoted splits back", () => {
  for (const word of ["plain", "two words", "it's", "", "$HOME", 'a"b', "new\nline"])
    expect(splitCommand(quoted(word))).toEqual([word]);
});

test("a draft becomes a request with only what was said", () => {
  expect(
    toRequest({ ...BLANK, command: "nvidia-smi -L", hardware: "gpu", gpus: 2, gpuMemoryGib: "24" }).request,
  ).toEqual({
    kind: "box",
    gpus: 2,
    cpus: 1,
    argv: ["nvidia-smi", "-L"],
    gpu_memory_bytes: 24 * 1024 ** 3,
  });
});

test("faults name their field", () => {
  const { faults } = toRequest({
    ...BLANK,
    kind: "service",
    command: "x",
    ports: "",
    memoryGib: "lots",
    env: "1BAD=x",
    maxPrice: "cheap",
  });
  expect(Object.keys(faults).sort()).toEqual(["env", "maxPrice", "memoryGib", "ports"]);
  expect(toRequest({ ...BLANK, ports: "80, 99999" }).faults.ports).toBeDefined();
});

test("the command and the call say the same", () => {
  const { request } = toRequest({
    ...BLANK,
    name: "it's",
    command: "sh -c 'echo $X'",
    env: "X=1 2",
    image: "busybox",
    runtime: "docker",
  });
  expect(asCommand(request)).toBe(
    `windrow cluster create --name 'it'\\''s' --runtime docker --image busybox --env 'X=1 2' -- sh -c 'echo $X'`,
  );
  expect([operand("laptop"), operand("--join")]).toEqual(["laptop", "-- --join"]);
  expect(splitCommand(callOf("POST", "/clusters", request, "http://m").replace(/\\\n/g, "")).at(-1)).toBe(
    JSON.stringify(request),
  );
});

test("an entrypoint replaces the image's program, and two quotes are none", () => {
  const asked = (entrypoint: string, image = "vllm/vllm-openai") =>
    toRequest({ ...BLANK, command: "serve", image, entrypoint });
  expect([asked(" python3 ").request.entrypoint, asked("''").request.entrypoint]).toEqual(["python3", ""]);
  expect(asked("").request).not.toHaveProperty("entrypoint");
  expect(asCommand(asked("''").request)).toBe(
    "windrow cluster create --image vllm/vllm-openai --entrypoint '' -- serve",
  );
  expect(asked("python3", "").faults.entrypoint).toMatch(/with an image/);
  expect(asked("python3 -u").faults.entrypoint).toMatch(/One program/);
  expect(asked("'open").faults.entrypoint).toMatch(/not closed/);
  for (const one of ["''", "/opt/my tool"]) {
    const { request } = toRequest({
      ...BLANK,
      command: "x",
      image: "i",
      entrypoint: quoted(splitCommand(one)[0] ?? ""),
    });
    expect(toRequest(toDraft(request)).request).toEqual(request);
  }
});

test("a box to work in starts Jupyter and takes public keys, never private ones", () => {
  const key = "ssh-ed25519 AAAAC3Nz me@home";
  const { request } = toRequest({ ...BLANK, sshKeys: `\n ${key} \n` });
  expect(request).toEqual({ kind: "box", gpus: 0, cpus: 1, argv: [], ssh_keys: [key], notebook: true });
  expect(asCommand(request)).toBe("windrow cluster create");
  expect(asCommand(toRequest({ ...BLANK, notebook: false }).request)).toBe(
    "windrow cluster create --no-ssh --no-notebook",
  );
  expect(asCommand({ ...request, argv: ["x"] })).toBe(
    "windrow cluster create --ssh-key ~/.ssh/id_ed25519.pub --notebook -- x",
  );
  expect(toRequest({ ...BLANK, sshKeys: "-----BEGIN OPENSSH PRIVATE KEY-----" }).faults.sshKeys).toMatch(/private/);
  expect(toRequest({ ...BLANK, sshKeys: "hello" }).faults.sshKeys).toBeDefined();
});

test("a call carries the entered values and only the name of a token", () => {
  const line = callOf("POST", "/hosts/host_1/drain", { reason: "it's hot" }, "http://m");
  const words = splitCommand(line.replace(/\\\n/g, ""));
  expect(words.at(-1)).toBe(`{"reason":"it's hot"}`);
  expect(words).toContain("http://m/api/v1/hosts/host_1/drain");
  expect(line).toContain("Bearer $WINDROW_TOKEN");
  expect(callOf("DELETE", "/tokens/t", undefined, "http://m")).toContain("-X DELETE");
  expect(callOf("GET", "/hosts?q=a b", undefined, "http://m")).toContain("'http://m/api/v1/hosts?q=a b'");
});

test("what ends a cluster by itself is said in seconds and money, and only where it means something", () => {
  const { request, faults } = toRequest({ ...BLANK, hours: "1.5", budget: "20", idleMinutes: "30" });
  expect([request.max_duration_seconds, request.budget, request.idle_seconds, faults]).toEqual([5400, "20", 1800, {}]);
  expect(asCommand(request)).toBe("windrow cluster create --max-duration 5400s --budget 20 --idle 1800s --no-ssh");
  expect(toRequest({ ...BLANK, command: "train", idleMinutes: "30" }).request.idle_seconds).toBeUndefined();
  expect(Object.keys(toRequest({ ...BLANK, hours: "soon", budget: "all", idleMinutes: "0.5" }).faults).sort()).toEqual([
    "budget",
    "hours",
    "idleMinutes",
  ]);
});

test("kinds over several hosts say how many; a gang has a command", () => {
  const { request, faults } = toRequest({ ...BLANK, kind: "ray", hosts: 3 });
  expect([request.hosts, faults]).toEqual([3, {}]);
  expect(asCommand(request)).toBe("windrow cluster create --kind ray --hosts 3");
  expect(toRequest({ ...BLANK, kind: "gang" }).faults.command).toMatch(/every host/);
  expect(toRequest({ ...BLANK, hosts: 3 }).request.hosts).toBeUndefined();
});

test("a template fills the form so that the form asks for the same", () => {
  const full = toRequest({
    ...BLANK,
    kind: "ray",
    hosts: 3,
    hardware: "gpu",
    gpus: 2,
    gpuModel: "H100",
    memoryGib: "1.5",
    command: "sh -c 'echo hi'",
    env: "A=b=c\nD=",
    image: "x/y",
    runtime: "docker",
    maxPrice: "0.50",
    hours: "1.5",
    budget: "20",
    host: "host_1",
    tier: "h100/A",
    more: { slice: "1g.10gb" },
  }).request;
  expect(toRequest(toDraft(full)).request).toEqual(full);
  const box = toRequest({
    ...BLANK,
    sshKeys: "ssh-ed25519 AAAA me",
    notebook: false,
    idleMinutes: "30",
    gpuMemoryGib: "",
  }).request;
  expect(toRequest(toDraft({ ...box, notebook: false })).request).toEqual(box);
  const service = toRequest({ ...BLANK, kind: "service", command: "serve", ports: "80, 81", simulated: true }).request;
  expect(toRequest(toDraft(service)).request).toEqual(service);
});

test("a cluster's registry login is in what is sent alone, and the command reads it from a file", () => {
  const { request, login, faults } = toRequest({
    ...BLANK,
    image: "reg.example/a:1",
    registryUser: "me",
    registryPassword: "its-own",
  });
  expect([login, faults]).toEqual([{ username: "me", password: "its-own" }, {}]);
  const shown = [
    asCommand(request, login !== null),
    callOf("POST", "/clusters", shownWith(request, login), "http://m"),
  ];
  expect(shown[0]).toBe("windrow cluster create --image reg.example/a:1 --registry-login login.txt --no-ssh");
  expect(shown[1]).toContain('"registry_login":{"username":"me","password":"YOUR_PASSWORD"}');
  expect(shown.join()).not.toContain("its-own");
});

test(
  "a cluster that was made before takes its image's login where hosts are added, and wants it" + " where it had one",
  () => {
    const none = { image: "reg.example/a:1", registryUser: "", registryPassword: "" };
    const given = { ...none, registryUser: "me", registryPassword: "its-own" };
    expect([
      loginOf(none, true, true).sound,
      loginOf(none, true, false).sound,
      loginOf(none, false, true).sound,
    ]).toEqual([false, true, true]);
    expect(loginOf(given, true, true)).toEqual({
      login: { username: "me", password: "its-own" },
      faults: {},
      sound: true,
    });
    expect(loginOf(given, false, true).login).toBe(null);
    const half = loginOf({ ...given, registryPassword: "" }, true, false);
    expect([Object.keys(half.faults), half.sound]).toEqual([["registryPassword"], false]);
  },
);

describe("a machine that may be bought", () => {
  const elsewhere = { ...BLANK, backend: "aws", spot: true, optimize: "cost" as const, waitHours: "1" };

  test("is asked for in the request and the command, and comes back from a template", () => {
    const { request, faults } = toRequest(elsewhere);
    expect(faults).toEqual({});
    expect(request).toMatchObject({ backend: "aws", spot: true, optimize: "cost", wait_seconds: 3600 });
    expect(asCommand(request)).toContain("--backend aws --spot --optimize cost --wait 3600s");
    expect(toDraft(request)).toMatchObject({ backend: "aws", spot: true, optimize: "cost" });
  });

  test("is not asked for by what was chosen before this market alone was", () => {
    const { request } = toRequest({ ...elsewhere, backend: "" });
    expect(request).not.toHaveProperty("backend");
    expect(request).not.toHaveProperty("spot");
    expect(request).not.toHaveProperty("optimize");
  });

  test("waits for its place", () => {
    expect(Object.keys(toRequest({ ...elsewhere, waitHours: "" }).faults)).toEqual(["waitHours"]);
  });

  test.each([
    [{ host: "workbench" }, "a host"],
    [{ region: "eu-1" }, "a region"],
    [{ labels: "fast" }, "labels"],
    [{ simulated: true }, "simulated hosts"],
    [{ more: { slice: "1g.10gb" } }, "a slice"],
    [{ kind: "ray" as const, hosts: 2 }, "several hosts"],
  ])("does not go with %o", (change, said) => {
    expect(toRequest({ ...elsewhere, ...change }).faults.backend).toContain(said);
  });
});
