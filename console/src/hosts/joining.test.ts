import { expect, test } from "vitest";
import { isHereOnly, isPlace, joinLine } from "./joining.ts";

test("a place is a domain or an address, and never more than one word of a shell", () => {
  for (const good of ["dns:access.example.org", "https://maps.example.org", "https://maps.example.org:8443/regions.pb"])
    expect(isPlace(good)).toBe(true);
  for (const bad of [
    "",
    "access.example.org",
    "http://x",
    "dns:",
    "dns:a;reboot",
    "https://a b",
    "https://a$(id)",
    "https://-x",
    "dns:a\nb",
    "https://a'",
  ])
    expect(isPlace(bad)).toBe(false);
});

test("the installer's line is the Master's, with the place at its end", () => {
  const made = { join_token: "wj_1", command: "curl https://m/install.sh | sudo sh -s -- --token wj_1" };
  expect(joinLine(made, "http://x", "")).toBe(made.command);
  expect(joinLine(made, "http://x", "dns:a.example")).toBe(`${made.command} --access dns:a.example`);
});

test("a line for the Master's own machine is told apart", () => {
  expect(isHereOnly({ command: "curl -k https://127.0.0.1:8446/install.sh | sh -s -- --this-machine-only" })).toBe(
    true,
  );
  expect(isHereOnly({ command: "curl https://m/install.sh | sh" })).toBe(false);
  expect(isHereOnly({ command: null })).toBe(false);
});

test("without an installer the token goes into a file that only its owner reads", () => {
  const line = joinLine({ join_token: "wj_1", command: null }, "http://127.0.0.1:8000", "https://maps.example");
  expect(line).toBe(
    "(umask 077; printf '%s' 'wj_1' > join-token)\nwindrow-agent join http://127.0.0.1:8000 " +
      "--token-file join-token --access https://maps.example",
  );
});
