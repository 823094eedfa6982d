// Signs in and out. A secret in the address's fragment is taken once and removed at once; a fragment reaches no
// server.
import { useCallback, useEffect, useState } from "react";
import { ApiProblem, post, SESSION, SIGN_IN, SIGN_IN_PASSWORD, send } from "../api/client.ts";
import { INVITATION_KEY, me, meBefore, queryClient, signedOut } from "../api/queries.ts";
import { keepProject, keepSecret, signOutHere } from "../api/secret.ts";
import type { LinkRedeemed, Me, SignedIn } from "../api/types.ts";
import { FRAGMENTS } from "../app/early.ts";
import { isFilled } from "../parts/filled.ts";
import { type CameBack, takeCameBack } from "./providerFlow.ts";

/** A secret that signs in: a token, as `windrow up` prints it, or a sign-in link of an account, which works once. */
export interface Entry {
  kind: "token" | "link";
  text: string;
}

/**
 * What an address brings: a secret that signs in, of an invitation, or of a link by which a password is set; or the
 * answer of an identity provider.
 */
export type Brought = Entry | { kind: "invitation"; text: string } | { kind: "password"; text: string } | CameBack;

/**
 * Read and remove a provider's answer, `#token=…`, `#sign-in=…`, `#invitation=…` or `#password=…`. Runs before the
 * first page is drawn, so that no script or history sees it later.
 */
export function takeBrought(): Brought | null {
  const back = takeCameBack();
  if (back !== null) return back;
  const words = new URLSearchParams(window.location.hash.slice(1));
  const found = Object.entries(FRAGMENTS).filter(([word]) => words.has(word));
  if (found.length > 0)
    window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return found.map(([word, kind]) => ({ kind, text: words.get(word) ?? "" })).find((one) => one.text !== "") ?? null;
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
export async function begin({ kind, text }: Entry): Promise<SignedIn> {
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

/** The same by address and password. code: of the second factor; empty: none was asked for. */
export const beginByPassword = (address: string, password: string, code: string): Promise<SignedIn> =>
  post<SignedIn>(SIGN_IN_PASSWORD, { address: address.trim(), password, ...(code && { code: code.trim() }) });

/** True where this user has to show a second factor as well. */
export const needsCode = (failure: unknown): boolean =>
  failure instanceof ApiProblem && failure.problem.code === "second_factor_required";

/** The person, and the project where it is nobody's. */
export const nameOf = (me: Me): string => me.user?.name ?? me.account.name;

/** Who this session is; it need not be the one in use. */
export async function whoIs(session: SignedIn): Promise<Me> {
  return (await (await send("GET", "/me", { secret: session.secret })).json()) as Me;
}

/** True if both are the same person or, of tokens that are nobody's, the same project. */
export const isSame = (one: Me, other: Me): boolean =>
  one.user || other.user ? one.user?.id === other.user?.id : one.account.id === other.account.id;

/** Go on with this session. What was read in another one is forgotten, but for a form that its person goes on with. */
export async function use(session: SignedIn): Promise<void> {
  const before = isFilled() ? meBefore() : null;
  const goesOn = before !== null && isSame(before, await whoIs(session));
  keepSecret(session.secret);
  if (!goesOn) return readAgain();
  await queryClient.fetchQuery({ ...me, staleTime: 0 });
  void queryClient.invalidateQueries();
}

/** Let this tab, and tabs opened later, act in another project of the user. */
export async function switchProject(projectId: string): Promise<void> {
  await post(`/projects/${encodeURIComponent(projectId)}/use`);
  keepProject(projectId);
}

/** Forget all that was read, and ask who is signed in. */
export async function readAgain(): Promise<void> {
  await queryClient.cancelQueries(); // one that is under way would still say what the session before was told
  forget();
  await queryClient.fetchQuery({ ...me, staleTime: 0 });
}

/** All but who is signed in, and the invitation on whose page somebody signs in just now. */
function forget(): void {
  const kept: unknown[] = [me.queryKey[0], INVITATION_KEY];
  queryClient.removeQueries({ predicate: ({ queryKey }) => !kept.includes(queryKey[0]) });
}

/** End a session that was begun and not used. */
export const discard = (session: SignedIn): Promise<Response> => send("DELETE", SESSION, { secret: session.secret });

export async function signOut(): Promise<void> {
  await send("DELETE", SESSION);
  signOutHere();
  signedOut();
  forget();
}
