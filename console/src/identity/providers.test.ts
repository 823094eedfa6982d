import { expect, it } from "vitest";
import { draftOf, NEW_PROVIDER, providerCommand, readGroups, toProvider } from "./providers.ts";

const GROUPS = [
  { group: "ml", projects: [{ project: "lab", roles: ["renter", "viewer"] }] },
  { group: "cn=ops,dc=org", role: "org_admin", projects: [] },
];

it("reads groups, a line for each", () => {
  expect(readGroups("ml=lab:renter,viewer\n\n cn=ops,dc=org=org_admin ")).toEqual(GROUPS);
  expect(readGroups("")).toEqual([]);
});

it.each(["ml", "ml=", "=org_admin", "ml=renter", "ml=lab:org_admin", "ml=lab:", "ml=org_admin,org_owner"])(
  "refuses the line %j",
  (text) => {
    expect(readGroups(text)).toBeNull();
  },
);

it("names what is missing, and says the rest as a command without the secret", () => {
  expect(Object.keys(toProvider({ ...NEW_PROVIDER, createsUsers: true, groups: "x" }).faults)).toEqual([
    ...["name", "issuer", "clientId", "groups", "organisation"],
  ]);
  const draft = {
    ...{ ...NEW_PROVIDER, name: "acme", issuer: "https://login.example.org ", clientId: "w", secret: "hush" },
    ...{ organisation: "home", createsUsers: true, domains: "a.org, b.org", groups: "ml=lab:renter", isPrivate: true },
  };
  const { body, faults } = toProvider(draft);
  expect(faults).toEqual({});
  expect(providerCommand("acme", body)).toBe(
    "windrow identity-provider add acme --issuer https://login.example.org --client-id w " +
      "--client-secret-file secret.txt --organisation home --creates-users --domain a.org --domain b.org " +
      "--group ml=lab:renter --private",
  );
});

it("keeps what a provider is when it is changed", () => {
  const lab = { id: "account_1", name: "lab", roles: ["renter" as const] };
  const draft = draftOf({
    ...{ name: "acme", issuer: "https://a.org", client_id: "w", has_client_secret: true, organisation: "home" },
    ...{ domains: ["a.org"], creates_users: true, private: false, scopes: ["openid", "groups"], group_claim: "g" },
    ...{ groups: [{ group: "ml", role: "org_billing", projects: [lab] }], redirect_uri: "", created_at: "" },
  });
  const { body } = toProvider(draft);
  expect(body.client_secret).toBeUndefined();
  expect(body.scopes).toEqual(["openid", "groups"]);
  expect(body.groups).toEqual([
    { group: "ml", role: "org_billing", projects: [{ project: "lab", roles: ["renter"] }] },
  ]);
});
