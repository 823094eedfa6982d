import { expect, it } from "vitest";
import { ownPath, providerOf } from "./addresses.ts";

it.each([
  ["/fleet?q=1", "/fleet?q=1"],
  ["/", "/"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["https://evil.example", "/"],
  ["javascript:alert(1)", "/"],
  ["/a\n//evil.example", "/"],
  ["", "/"],
  ["/oidc/acme?code=1", "/"],
])("goes on with %j at %j: only with pages of its own", (text, page) => {
  expect(ownPath(text)).toBe(page);
});

it.each([
  ["/oidc/acme", "acme"],
  ["/oidc/acme/x", null],
  ["/oidc/", null],
  ["/oidc/A", null],
  ["/x/oidc/acme", null],
])("knows the address %j that a provider sends back to", (path, name) => {
  expect(providerOf(path)).toBe(name);
});
