// Signing in and out. A token in the address's hash (as `windrow up` prints it) is taken once and removed at once.
import { useCallback, useEffect, useState } from "react";
import { post, send, SESSION } from "./api/client.ts";
import { me, queryClient, signedOut } from "./api/queries.ts";
import { keepSecret, signOutHere } from "./api/secret.ts";
import type { SignedIn } from "./api/types.ts";

/** Read and remove `#token=…`. Runs before the first page is drawn, so that no script or history sees it later. */
export function takeHashToken(): string | null {
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (token !== null) window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return token || null;
}

// Taken when the script starts, before anything is drawn.
const atStart = takeHashToken();

/** The token that the address brought, also when a later address brings another; null once it was used. */
export function useBroughtToken(): [string | null, () => void] {
  const [token, setToken] = useState(atStart);
  useEffect(() => {
    const changed = () => setToken((before) => takeHashToken() ?? before);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const used = useCallback(() => setToken(null), []);
  return [token, used];
}

/** Begin a session; nobody uses it yet. */
export const begin = (token: string): Promise<SignedIn> => post<SignedIn>(SESSION, { token: token.trim() });

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
