import { expect, test } from "vitest";
import { shownWith, withLogin } from "../clusters/request.ts";
import { asJobCommand, BLANK_JOB, toJob } from "./jobs.ts";

test("what was typed becomes a request, and the same command", () => {
  const { request, faults } = toJob({
    ...BLANK_JOB,
    command: "sh -c 'echo hi'",
    name: " mine ",
    retries: 2,
    minutes: "1.5",
    budget: "0.50",
    after: "job_1, job_2",
  });
  expect(faults).toEqual({});
  expect(request).toEqual({
    argv: ["sh", "-c", "echo hi"],
    name: "mine",
    gpus: 0,
    cpus: 1,
    retries: 2,
    max_duration_seconds: 90,
    budget: "0.50",
    after: ["job_1", "job_2"],
  });
  expect(asJobCommand(request)).toBe(
    "windrow job submit --no-files --name mine --retries 2 --max-duration 90s --budget 0.50 " +
      "--after job_1 --after job_2 -- sh -c 'echo hi'",
  );
});

test("the turn of a job is said in the request and in the command", () => {
  const turn = { priorityClass: "low", priority: -5, copies: 1000, atOnce: "20" } as const;
  const after = { afterAny: "job_3", afterFailure: "job_4", begin: "2030-01-02T03:04" };
  const { request, faults } = toJob({ ...BLANK_JOB, command: "true", ...turn, ...after });
  const begin_at = new Date("2030-01-02T03:04").toISOString();
  expect(faults).toEqual({});
  expect(request).toMatchObject({ priority_class: "low", priority: -5, array_size: 1000, array_at_once: 20, begin_at });
  expect(request).toMatchObject({ after_any: ["job_3"], after_failure: ["job_4"] });
  expect(asJobCommand(request)).toBe(
    "windrow job submit --no-files --after-any job_3 --after-failure job_4 --class low --priority -5 " +
      `--begin ${begin_at} --array 1000%20 -- true`,
  );
  expect(toJob({ ...BLANK_JOB, command: "true", atOnce: "20" }).faults.atOnce).toContain("copies above 0");
});

test("a program goes with the job, to the place that was chosen", () => {
  const chosen = { program: "print(1)", host: "host_1", route: "route_1", gpus: 1 };
  const { request, faults } = toJob({ ...BLANK_JOB, ...chosen });
  expect(faults).toEqual({});
  expect(request).toMatchObject({
    argv: ["python", "program.py"],
    await_files: true,
    host_id: "host_1",
    route_id: "route_1",
  });
  expect(asJobCommand(request)).toBe("windrow job submit --script program.py --gpu 1 --host host_1 --route route_1");
  const own = toJob({ ...BLANK_JOB, ...chosen, command: "python program.py --fast" }).request;
  expect(asJobCommand(own)).toContain("--route route_1 -- python program.py --fast");
});

test("what is wrong is said beside its field", () => {
  expect(toJob({ ...BLANK_JOB, minutes: "soon", budget: "0", after: "first" }).faults).toEqual({
    command: "A command to run",
    minutes: "A number of minutes",
    budget: "An amount such as 0.50",
    after: "Ids of jobs: job_…",
  });
  expect(toJob({ ...BLANK_JOB, command: "echo 'open" }).faults.command).toContain("not closed");
});

test("GPUs are asked for by model, by memory or by tier, as the command writes them", () => {
  const asked = (gpu: string, tier = "") => toJob({ ...BLANK_JOB, command: "true", gpus: 2, gpu, tier });
  expect(asked("H100", "h100/A").request).toMatchObject({ gpus: 2, gpu_model: "H100", tier: "h100/A" });
  expect(asked("24GB").request.gpu_memory_bytes).toBe(24e9);
  expect(asked("24 GiB").request.gpu_memory_bytes).toBe(24 * 2 ** 30);
  expect(asJobCommand(asked("24GB").request)).toContain("--gpu 24GB:2");
  expect(asJobCommand(asked("H100", "h100/A").request)).toContain("--gpu H100:2 --tier h100/A");
  expect(asked("<b>").faults.gpu).toContain("24GB");
  expect(toJob({ ...BLANK_JOB, command: "true", gpu: "H100" }).faults.gpu).toContain("above 0");
});

test("a job's entrypoint is said as the command says it", () => {
  const { request, faults } = toJob({ ...BLANK_JOB, command: "serve", image: "x/y", entrypoint: "''" });
  expect([request.entrypoint, faults]).toEqual(["", {}]);
  expect(asJobCommand(request)).toBe("windrow job submit --no-files --image x/y --entrypoint '' -- serve");
  expect(toJob({ ...BLANK_JOB, command: "serve", entrypoint: "sh" }).faults.entrypoint).toBeDefined();
});

test("Python packages are a line each", () => {
  const { request, faults } = toJob({ ...BLANK_JOB, command: "python train.py", packages: "numpy>=2,<3\n\n torch \n" });
  expect([request.packages, faults]).toEqual([["numpy>=2,<3", "torch"], {}]);
  expect(asJobCommand(request)).toBe(
    "windrow job submit --no-files --with 'numpy>=2,<3' --with torch -- python train.py",
  );
  expect(toJob({ ...BLANK_JOB, command: "true", packages: "-r more.txt" }).faults.packages).toBeDefined();
});

test("a registry's login is sent, and neither planned with nor shown", () => {
  const { request, login, faults } = toJob({
    ...BLANK_JOB,
    command: "true",
    image: "reg.example/a:1",
    registryUser: " me ",
    registryPassword: " its:own ",
  });
  expect([login, faults]).toEqual([{ username: "me", password: " its:own " }, {}]);
  expect(JSON.stringify(request)).not.toContain("its:own");
  expect(withLogin(request, login).registry_login).toEqual(login);
  expect(JSON.stringify(shownWith(request, login))).toBe(
    JSON.stringify({ ...request, registry_login: { username: "me", password: "YOUR_PASSWORD" } }),
  );
  expect(asJobCommand(request, login !== null)).toBe(
    "windrow job submit --no-files --image reg.example/a:1 --registry-login login.txt -- true",
  );
  expect([toJob({ ...BLANK_JOB, command: "true" }).login, withLogin(request, null), shownWith(request, null)]).toEqual([
    null,
    request,
    request,
  ]);
});

test("half a login, and one for no image, are said beside their fields", () => {
  const asked = { ...BLANK_JOB, command: "true" };
  expect(Object.keys(toJob({ ...asked, registryUser: "me" }).faults).sort()).toEqual(["image", "registryPassword"]);
  expect(Object.keys(toJob({ ...asked, image: "a", registryPassword: "x" }).faults)).toEqual(["registryUser"]);
});

test("a simulated job has a command as well", () => {
  const { request } = toJob({ ...BLANK_JOB, command: "true", simulated: true });
  expect(asJobCommand(request)).toBe("windrow job submit --no-files --runtime simulated -- true");
});

test("what few jobs say is said as the command says it", () => {
  const { request, faults } = toJob({
    ...BLANK_JOB,
    command: "true",
    gpus: 1,
    slice: "1g.10gb",
    memoryGib: "8",
    runtime: "docker",
    image: "x/y",
    registrySecret: "LOGIN",
    env: "A=1 2",
    maxPrice: "0.50",
    retriesOnExit: true,
    deadline: "2030-01-31T18:00",
    priority: -5,
    copies: 3,
    checkpointSeconds: "0",
  });
  expect(faults).toEqual({});
  const deadline = new Date("2030-01-31T18:00").toISOString();
  expect(request).toMatchObject({ checkpoint_every_seconds: 0, deadline, env: { A: "1 2" }, array_size: 3 });
  expect(asJobCommand(request)).toBe(
    "windrow job submit --no-files --image x/y --gpu 1 --registry-secret LOGIN --memory 8GiB --slice 1g.10gb " +
      `--runtime docker --max-price 0.50 --deadline ${deadline} --priority -5 --array 3 --checkpoint-every 0 ` +
      "--env 'A=1 2' --retry-on-exit -- true",
  );
  const wrong = toJob({ ...BLANK_JOB, command: "true", slice: "1g", deadline: "soon", checkpointSeconds: "often" });
  expect(Object.keys(wrong.faults).sort()).toEqual(["checkpointSeconds", "deadline", "slice"]);
});

test("a folder and a script that were chosen are sent by the command as well", () => {
  const { request } = toJob({ ...BLANK_JOB, command: "python train.py" }, true);
  expect(request.await_files).toBe(true);
  expect(asJobCommand(request, false, { title: "my project", isFolder: true })).toBe(
    "windrow job submit --folder 'my project' -- python train.py",
  );
  expect(asJobCommand(request, false, { title: "train.py", isFolder: false })).toBe(
    "windrow job submit --script train.py",
  );
});
