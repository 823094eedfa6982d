// Addresses that identity providers send people back to, and pages that may follow. Pure.

/** The provider in the address that it sends people back to; null: it is another address. */
export const providerOf = (path: string): string | null =>
  /^\/oidc\/([a-z0-9][a-z0-9-]{0,31})$/.exec(path)?.[1] ?? null;

/** A path of this console; the first page for everything else. */
export function ownPath(text: string): string {
  const isOwn = /^\/(?![/\\])/.test(text) && ![...text].some((one) => one < " " || one === "\\");
  return isOwn && providerOf(text.split("?")[0] ?? "") === null ? text : "/";
}
