// The screens that can be gone to by name, key or palette, and who sees them. Pure.
import type { Role } from "./api/types.ts";

export interface Place {
  to:
    | "/"
    | "/fleet"
    | "/join"
    | "/clusters"
    | "/clusters/new"
    | "/jobs"
    | "/jobs/new"
    | "/volumes"
    | "/receipts"
    | "/offers"
    | "/events"
    | "/commands"
    | "/audit"
    | "/tokens"
    | "/people"
    | "/regions"
    | "/health"
    | "/settings";
  name: string;
  icon:
    | "overview"
    | "fleet"
    | "join"
    | "cluster"
    | "plus"
    | "job"
    | "volume"
    | "receipt"
    | "offer"
    | "event"
    | "command"
    | "audit"
    | "token"
    | "people"
    | "region"
    | "health"
    | "settings";
  /** Typed after `g`. */
  key: string;
  /** Without any: everybody. */
  roles?: readonly Role[];
  /** Words that find it in the palette, besides its name. */
  also?: string;
}

export const PLACES: readonly (readonly [string, readonly Place[]])[] = [
  [
    "Fleet",
    [
      { to: "/", name: "Overview", icon: "overview", key: "v", also: "home dashboard revenue" },
      { to: "/fleet", name: "Fleet", icon: "fleet", key: "f", also: "hosts gpus table" },
      {
        to: "/join",
        name: "Join a host",
        icon: "join",
        key: "j",
        roles: ["operator", "provider"],
        also: "add onboard",
      },
    ],
  ],
  [
    "Rent",
    [
      { to: "/clusters", name: "Clusters", icon: "cluster", key: "c" },
      {
        to: "/clusters/new",
        name: "New cluster",
        icon: "plus",
        key: "n",
        roles: ["operator", "renter"],
        also: "create rent run",
      },
      { to: "/jobs", name: "Jobs", icon: "job", key: "b", also: "queue batch train" },
      { to: "/jobs/new", name: "New job", icon: "plus", key: "w", roles: ["operator", "renter"], also: "submit batch" },
      {
        to: "/volumes",
        name: "Volumes",
        icon: "volume",
        key: "d",
        roles: ["renter"],
        also: "data folders disks storage",
      },
      { to: "/receipts", name: "Receipts", icon: "receipt", key: "r", also: "costs paid" },
      { to: "/offers", name: "Offers", icon: "offer", key: "o", also: "prices tiers" },
    ],
  ],
  [
    "Installation",
    [
      { to: "/events", name: "Events", icon: "event", key: "e", roles: ["operator", "provider", "auditor"] },
      { to: "/commands", name: "Commands", icon: "command", key: "m", also: "orders history" },
      {
        to: "/audit",
        name: "Audit",
        icon: "audit",
        key: "a",
        roles: ["operator", "auditor"],
        also: "who did what verify chain",
      },
      {
        to: "/people",
        name: "People",
        icon: "people",
        key: "p",
        roles: ["operator"],
        also: "accounts users invite credit suspend",
      },
      { to: "/tokens", name: "Tokens", icon: "token", key: "t", also: "access keys" },
      {
        to: "/regions",
        name: "Regions",
        icon: "region",
        key: "i",
        roles: ["operator", "auditor"],
        also: "access accesses relays drain",
      },
      {
        to: "/health",
        name: "Health",
        icon: "health",
        key: "h",
        roles: ["operator", "auditor"],
        also: "relays accesses master",
      },
      { to: "/settings", name: "Settings", icon: "settings", key: "s", also: "colours dark light sessions account" },
    ],
  ],
];

export const mayGo = (place: Place, roles: readonly Role[]): boolean =>
  !place.roles || place.roles.some((role) => roles.includes(role));

export function placesFor(roles: readonly Role[]): Place[] {
  return PLACES.flatMap(([, places]) => places).filter((place) => mayGo(place, roles));
}

const INNER: readonly (readonly [RegExp, string])[] = [
  [/^\/fleet\/map$/, "Fleet map"],
  [/^\/hosts\//, "Host"],
  [/^\/gpus\//, "GPU"],
  [/^\/clusters\/(?!new$)/, "Cluster"],
  [/^\/jobs\/(?!new$)/, "Job"],
  [/^\/receipts\//, "Receipt"],
  [/^\/commands\//, "Command"],
];

/** What the tab is called: never a name that somebody else chose. */
export function titleOf(path: string): string {
  const inner = INNER.find(([pattern]) => pattern.test(path))?.[1];
  const place = PLACES.flatMap(([, places]) => places).find((one) => one.to === path)?.name;
  return [inner ?? place, "Windrow"].filter(Boolean).join(" · ");
}

/**
 * How well a typed text finds a name: whole beginnings first, then words, then letters anywhere in order; null: not
 * at all.
 */
export function closeness(typed: string, name: string, also = ""): number | null {
  const wanted = typed.trim().toLowerCase();
  const text = name.toLowerCase();
  if (!wanted) return 0;
  if (text.startsWith(wanted)) return 1;
  if (` ${text}`.includes(` ${wanted}`)) return 2;
  if (text.includes(wanted)) return 3;
  return ` ${also.toLowerCase()}`.includes(` ${wanted}`) ? 4 : null;
}
