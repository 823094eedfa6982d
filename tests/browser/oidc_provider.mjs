// A real OpenID Connect provider for the tests: `node oidc_provider.mjs PORT REDIRECT_URI KEY_FILE PEOPLE_FILE`.
// KEY_FILE has the private key it signs by, PEOPLE_FILE the groups of each person; the latter is read at each sign-in.
import { readFileSync } from "node:fs";
import { Provider } from "oidc-provider";

const [port, redirectUri, keyFile, peopleFile] = process.argv.slice(2);
const read = (file) => JSON.parse(readFileSync(file, "utf8"));
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [{ client_id: "windrow", client_secret: "a-client-secret-of-the-tests", redirect_uris: [redirectUri] }],
  jwks: { keys: [read(keyFile)] },
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
  cookies: { keys: ["of the tests"] },
  scopes: ["openid", "email", "profile", "groups"],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: `${id} of acme`,
      email: `${id}@acme.example`,
      email_verified: true,
      groups: read(peopleFile)[id] ?? [],
    }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log(`serving ${issuer}`));
