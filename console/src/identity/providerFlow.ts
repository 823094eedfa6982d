// Goes to an identity provider's page and comes back. The secret that ties the answer to this tab stays in its storage;
// no cookie is set.
import { IDENTITIES, post, put, SIGN_IN_FINISH, SIGN_IN_PROVIDER } from "../api/client.ts";
import type { ComeBack, LinkedIdentity, ProviderStarted, SignedIn } from "../api/types.ts";
import { ownPath, providerOf } from "./addresses.ts";

const PLACE = "windrow.provider";

interface Flow {
  state: string;
  secret: string;
  /** True: to link the user who is signed in. */
  links: boolean;
  /** The page to go on with. */
  page: string;
}

/** The answer of a provider. flow: null where this tab began none. */
export interface CameBack {
  kind: "provider";
  text: string;
  words: URLSearchParams;
  flow: Flow | null;
}

async function leave(started: Promise<ProviderStarted>, links: boolean): Promise<void> {
  const { url, state, secret } = await started;
  const page = window.location.pathname + window.location.search;
  window.sessionStorage.setItem(PLACE, JSON.stringify({ state, secret, links, page } satisfies Flow));
  window.location.assign(url);
}

export const leaveToSignIn = (provider: string): Promise<void> =>
  leave(post<ProviderStarted>(SIGN_IN_PROVIDER, { provider }), false);

/** password: the present one; empty where the user has none. */
export const leaveToLink = (provider: string, password: string): Promise<void> =>
  leave(post<ProviderStarted>(IDENTITIES, { provider, ...(password && { password }) }), true);

function takeFlow(): Flow | null {
  try {
    const kept = window.sessionStorage.getItem(PLACE);
    window.sessionStorage.removeItem(PLACE);
    return kept === null ? null : (JSON.parse(kept) as Flow);
  } catch {
    return null; // storage is switched off, or holds something else
  }
}

/** Read the answer in the address `/oidc/NAME?code=…`, and put the page to go on with in its place. */
export function takeCameBack(): CameBack | null {
  const text = providerOf(window.location.pathname);
  if (text === null) return null;
  const words = new URLSearchParams(window.location.search);
  const flow = takeFlow();
  window.history.replaceState(window.history.state, "", ownPath(flow?.page ?? "/"));
  return { kind: "provider", text, words, flow };
}

function bodyOf({ text, words, flow }: CameBack): ComeBack {
  if (flow === null) throw new Error("This sign-in was begun in another tab or browser. Begin again.");
  const own = { provider: text, state: words.get("state") ?? "", secret: flow.secret };
  const [code, iss, error] = [words.get("code"), words.get("iss"), words.get("error")];
  return { ...own, ...(code && { code }), ...(iss && { iss }), ...(error && { error: error.slice(0, 200) }) };
}

export const finishSignIn = async (back: CameBack): Promise<SignedIn> => post<SignedIn>(SIGN_IN_FINISH, bodyOf(back));

export const finishLink = async (back: CameBack): Promise<LinkedIdentity> =>
  put<LinkedIdentity>(IDENTITIES, bodyOf(back));
