// Signing in and out. A token in the address's hash (as `windrow up` prints it) is taken once and removed at once.
import { useCallback, useEffect, useState } from "react";
import { send } from "./api/client.ts";
import { me, queryClient, signedOut } from "./api/queries.ts";

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

export async function signIn(token: string): Promise<void> {
  await send("POST", "/session", { body: { token: token.trim() } });
  await queryClient.cancelQueries({ queryKey: me.queryKey }); // one that is under way would still say: nobody
  await queryClient.fetchQuery({ ...me, staleTime: 0 });
}

export async function signOut(): Promise<void> {
  await send("DELETE", "/session");
  queryClient.clear();
  signedOut();
}
