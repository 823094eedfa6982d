// Requests of the first page, sent before the libraries are read, so that the answers come meanwhile.

import { proof, secret } from "../api/secret.ts";

/** An answer that nobody took by then is not the first screen's any more. */
const KEPT_MS = 10_000;
/** As the fleet's screen asks (fleet/feed.ts); the very same addresses, or the answer is not found. */
const FLEET = ["/api/v1/gpus", "/api/v1/hosts?limit=500&gpus=false"];

/** Words before a secret in an address's fragment, and what each secret is (identity/session.ts). */
export const FRAGMENTS = {
  "sign-in": "link",
  token: "token",
  invitation: "invitation",
  password: "password",
} as const;

const asked = new Map<string, Promise<Response>>();

/** Ask ahead. Not without a session, nor while the address brings a secret: nobody is signed in yet. */
export function askAhead(path: string, hash: string): void {
  if (Object.keys(FRAGMENTS).some((word) => hash.includes(`${word}=`)) || secret() === null) return;
  for (const address of ["/api/v1/me", ...(path === "/fleet" ? FLEET : [])]) {
    const answer = fetch(address, { headers: proof(), credentials: "omit", cache: "no-store" });
    answer.catch(() => undefined); // whoever takes it is told; until then its failing is nobody's
    asked.set(address, answer);
  }
  setTimeout(() => asked.clear(), KEPT_MS);
}

/** The answer that was asked ahead, once. */
export function takeEarly(address: string): Promise<Response> | null {
  const answer = asked.get(address) ?? null;
  asked.delete(address);
  return answer;
}
