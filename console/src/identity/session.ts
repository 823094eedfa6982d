// Signs in and out. A token or link in the address's fragment is taken once and removed at once; a fragment reaches
// no server.
import { useCallback, useEffect, useState } from "react";
import { ApiProblem, post, SESSION, SIGN_IN, send } from "../api/client.ts";
import { me, queryClient, signedOut } from "../api/queries.ts";
import { keepSecret, signOutHere } from "../api/secret.ts";
import type { LinkRedeemed, SignedIn } from "../api/types.ts";

/** A secret in an address: a token, as `windrow up` prints it, or a sign-in link of an account, which works once. */
export interface Brought {
  kind: "token" | "link";
  text: string;
}

/**
 * Read and remove `#token=…` or `#sign-in=…`. Runs before the first page is drawn, so that no script or history
 * sees it later.
 */
export function takeBrought(): Brought | null {
  const words = new URLSearchParams(window.location.hash.slice(1));
  const [token, link] = [words.get("token"), words.get("sign-in")];
  if (token !== null || link !== null)
    window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return link ? { kind: "link", text: link } : token ? { kind: "token", text: token } : null;
}

// Taken when the script starts, before anything is drawn.
const atStart = takeBrought();

/** The secret of the address, also when a later address brings another; null once it was used. */
export function useBrought(): [Brought | null, () => void] {
  const [brought, setBrought] = useState(atStart);
  useEffect(() => {
    const changed = () => setBrought((before) => takeBrought() ?? before);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const used = useCallback(() => setBrought(null), []);
  return [brought, used];
}

/** A browser drops what is under way when the machine's network changes; the token would be lost with it. */
const TRIES = 3;
const AGAIN_MS = 300;

/** Begin a session; nobody uses it yet. A sign-in link is used up by it. */
export async function begin({ kind, text }: Brought): Promise<SignedIn> {
  const token = kind === "token" ? text : (await post<LinkRedeemed>(SIGN_IN, { secret: text.trim() })).token.token;
  for (let left = TRIES; ; left -= 1) {
    try {
      return await post<SignedIn>(SESSION, { token: token.trim() });
    } catch (failure) {
      if (left <= 1 || !(failure instanceof ApiProblem && failure.problem.status === 0)) throw failure;
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

/** Go on with this session. What was read in another one is forgotten. */
export async function use(session: SignedIn): Promise<void> {
  keepSecret(session.secret);
  await queryClient.cancelQueries(); // one that is under way would still say what the session before was told
  queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== me.queryKey[0] });
  await queryClient.fetchQuery({ ...me, staleTime: 0 });
}

/** End a session that was begun and not used. */
export const discard = (session: SignedIn): Promise<Response> => send("DELETE", SESSION, { secret: session.secret });

export async function signOut(): Promise<void> {
  await send("DELETE", SESSION);
  signOutHere();
  signedOut();
  queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== me.queryKey[0] });
}
