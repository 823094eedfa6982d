// Every page of the console, a row each: its address, its name, who sees it, what it loads. The router, the menu, the
// keys and the palette are made from these rows.
import type { ComponentType } from "react";
import type { Role } from "../api/types.ts";
import { READERS } from "../identity/roles.ts";
import {
  AuditIcon,
  ClusterIcon,
  CommandIcon,
  EventIcon,
  FleetIcon,
  HealthIcon,
  JoinIcon,
  OfferIcon,
  OverviewIcon,
  PeopleIcon,
  PlusIcon,
  PriceIcon,
  ReceiptIcon,
  RegionIcon,
  ResourceIcon,
  RouteIcon,
  SecretIcon,
  SettingsIcon,
  TokenIcon,
  UserIcon,
  UsersIcon,
  VolumeIcon,
} from "../parts/icons.tsx";

export const GROUPS = ["Fleet", "Rent", "Organisation", "Installation"] as const;

/** Who may read rentals: their project's renters, viewers and admins, and who oversees the market. */
const RENTALS: readonly Role[] = ["operator", "auditor", "renter", "viewer", "admin"];

interface Row {
  path: `/${string}`;
  /** Also the tab's title: never a name that somebody else chose. */
  name: string;
  load: () => Promise<ComponentType>;
  /** Without it: a page that is reached from others. */
  menu?: {
    group: (typeof GROUPS)[number];
    icon: ComponentType<{ size?: number }>;
    /** Typed after `g`. */
    key: string;
    /** Without any: everybody. */
    roles?: readonly Role[];
    /** Words that find it in the palette, besides its name. */
    also?: string;
  };
}

export const PAGES = [
  {
    path: "/",
    name: "Overview",
    menu: { group: "Fleet", icon: OverviewIcon, key: "v", also: "home dashboard revenue" },
    load: async () => (await import("../fleet/OverviewPage.tsx")).OverviewPage,
  },
  {
    path: "/fleet",
    name: "Fleet",
    menu: { group: "Fleet", icon: FleetIcon, key: "f", also: "hosts gpus table" },
    load: async () => (await import("../fleet/FleetPage.tsx")).FleetPage,
  },
  {
    path: "/fleet/map",
    name: "Fleet map",
    load: async () => (await import("../fleet/HeatPage.tsx")).HeatPage,
  },
  {
    path: "/hosts/$hostId",
    name: "Host",
    load: async () => (await import("../hosts/HostPage.tsx")).HostPage,
  },
  {
    path: "/gpus/$gpuId",
    name: "GPU",
    load: async () => (await import("../hosts/GpuPage.tsx")).GpuPage,
  },
  {
    path: "/join",
    name: "Join a host",
    menu: { group: "Fleet", icon: JoinIcon, key: "j", roles: ["operator", "provider"], also: "add onboard" },
    load: async () => (await import("../hosts/JoinPage.tsx")).JoinPage,
  },
  {
    path: "/clusters",
    name: "Clusters",
    menu: { group: "Rent", icon: ClusterIcon, key: "c", roles: RENTALS },
    load: async () => (await import("../clusters/ClustersPage.tsx")).ClustersPage,
  },
  {
    path: "/clusters/new",
    name: "New cluster",
    menu: { group: "Rent", icon: PlusIcon, key: "n", roles: ["renter"], also: "create rent run" },
    load: async () => (await import("../clusters/NewClusterPage.tsx")).NewClusterPage,
  },
  {
    path: "/clusters/$clusterId",
    name: "Cluster",
    load: async () => (await import("../clusters/ClusterPage.tsx")).ClusterPage,
  },
  {
    path: "/jobs",
    name: "Jobs",
    menu: { group: "Rent", icon: CommandIcon, key: "b", roles: RENTALS, also: "queue batch train" },
    load: async () => (await import("../jobs/JobsPage.tsx")).JobsPage,
  },
  {
    path: "/jobs/new",
    name: "New job",
    menu: { group: "Rent", icon: PlusIcon, key: "w", roles: ["renter"], also: "submit batch" },
    load: async () => (await import("../jobs/NewJobPage.tsx")).NewJobPage,
  },
  {
    path: "/jobs/$jobId",
    name: "Job",
    load: async () => (await import("../jobs/JobPage.tsx")).JobPage,
  },
  {
    path: "/volumes",
    name: "Volumes",
    menu: { group: "Rent", icon: VolumeIcon, key: "d", roles: ["renter"], also: "data folders disks storage" },
    load: async () => (await import("../volumes/VolumesPage.tsx")).VolumesPage,
  },
  {
    path: "/secrets",
    name: "Secrets",
    menu: {
      group: "Rent",
      icon: SecretIcon,
      key: "k",
      roles: ["renter", "viewer", "admin"],
      also: "variables environment keys passwords login",
    },
    load: async () => (await import("../secrets/SecretsPage.tsx")).SecretsPage,
  },
  {
    path: "/shared",
    name: "Shared with me",
    menu: { group: "Rent", icon: UserIcon, key: "z", also: "shares received clusters jobs of others" },
    load: async () => (await import("../identity/SharedPage.tsx")).SharedPage,
  },
  {
    path: "/usage",
    name: "Usage & billing",
    menu: { group: "Rent", icon: OverviewIcon, key: "g", roles: RENTALS, also: "spend costs budget forecast money" },
    load: async () => (await import("../market/UsagePage.tsx")).UsagePage,
  },
  {
    path: "/earnings",
    name: "Earnings",
    menu: {
      group: "Fleet",
      icon: PriceIcon,
      key: "1",
      roles: ["operator", "auditor", "provider"],
      also: "revenue income occupancy money lost",
    },
    load: async () => (await import("../market/EarningsPage.tsx")).EarningsPage,
  },
  {
    path: "/receipts",
    name: "Receipts",
    menu: { group: "Rent", icon: ReceiptIcon, key: "r", roles: RENTALS, also: "costs paid" },
    load: async () => (await import("../market/ReceiptsPage.tsx")).ReceiptsPage,
  },
  {
    path: "/receipts/$receiptId",
    name: "Receipt",
    load: async () => (await import("../market/ReceiptsPage.tsx")).ReceiptPage,
  },
  {
    path: "/offers",
    name: "Offers",
    menu: { group: "Rent", icon: OfferIcon, key: "o", also: "prices tiers" },
    load: async () => (await import("../market/OffersPage.tsx")).OffersPage,
  },
  {
    path: "/route",
    name: "Where to run",
    menu: { group: "Rent", icon: RouteIcon, key: "u", also: "router recommend backend cost compare script" },
    load: async () => (await import("../routing/RoutePage.tsx")).RoutePage,
  },
  {
    path: "/prices",
    name: "Prices elsewhere",
    menu: { group: "Rent", icon: PriceIcon, key: "y", also: "compare clouds cost price book" },
    load: async () => (await import("../market/PricesPage.tsx")).PricesPage,
  },
  {
    path: "/resources",
    name: "Resources",
    menu: { group: "Fleet", icon: ResourceIcon, key: "x", also: "registry hybrid cloud edge premise compute" },
    load: async () => (await import("../resources/ResourcesPage.tsx")).ResourcesPage,
  },
  {
    path: "/members",
    name: "Members",
    menu: {
      group: "Organisation",
      icon: UsersIcon,
      key: "l",
      roles: READERS,
      also: "organisation invite invitations projects users roles",
    },
    load: async () => (await import("../identity/MembersPage.tsx")).MembersPage,
  },
  {
    path: "/events",
    name: "Events",
    menu: { group: "Installation", icon: EventIcon, key: "e", roles: ["operator", "auditor"] },
    load: async () => (await import("../records/EventsPage.tsx")).EventsPage,
  },
  {
    path: "/commands",
    name: "Commands",
    menu: { group: "Installation", icon: CommandIcon, key: "m", also: "orders history" },
    load: async () => (await import("../records/CommandsPage.tsx")).CommandsPage,
  },
  {
    path: "/commands/$commandId",
    name: "Command",
    load: async () => (await import("../records/CommandsPage.tsx")).CommandPage,
  },
  {
    path: "/audit",
    name: "Audit",
    menu: {
      group: "Installation",
      icon: AuditIcon,
      key: "a",
      roles: ["operator", "auditor"],
      also: "who did what verify chain",
    },
    load: async () => (await import("../records/AuditPage.tsx")).AuditPage,
  },
  {
    path: "/people",
    name: "People",
    menu: {
      group: "Installation",
      icon: PeopleIcon,
      key: "p",
      roles: ["operator"],
      also: "accounts users invite credit suspend",
    },
    load: async () => (await import("../identity/PeoplePage.tsx")).PeoplePage,
  },
  {
    path: "/identity-providers",
    name: "Identity providers",
    menu: {
      group: "Installation",
      icon: UserIcon,
      key: "q",
      roles: ["operator", "auditor"],
      also: "openid connect oidc sso single sign-on company login",
    },
    load: async () => (await import("../identity/ProvidersPage.tsx")).ProvidersPage,
  },
  {
    path: "/tokens",
    name: "Tokens",
    menu: { group: "Installation", icon: TokenIcon, key: "t", also: "access keys" },
    load: async () => (await import("../identity/TokensPage.tsx")).TokensPage,
  },
  {
    path: "/device",
    name: "Sign in a device",
    load: async () => (await import("../identity/DevicePage.tsx")).DevicePage,
  },
  {
    path: "/regions",
    name: "Regions",
    menu: {
      group: "Installation",
      icon: RegionIcon,
      key: "i",
      roles: ["operator", "auditor"],
      also: "access accesses relays drain",
    },
    load: async () => (await import("../accesses/RegionsPage.tsx")).RegionsPage,
  },
  {
    path: "/health",
    name: "Health",
    menu: {
      group: "Installation",
      icon: HealthIcon,
      key: "h",
      roles: ["operator", "auditor"],
      also: "relays accesses master",
    },
    load: async () => (await import("../accesses/HealthPage.tsx")).HealthPage,
  },
  {
    path: "/settings",
    name: "Settings",
    menu: { group: "Installation", icon: SettingsIcon, key: "s", also: "colours dark light sessions account password" },
    load: async () => (await import("../identity/SettingsPage.tsx")).SettingsPage,
  },
] as const satisfies readonly Row[];

/** A page of the menu. */
export type MenuPage = Pick<Row, "name"> & {
  path: Extract<(typeof PAGES)[number], { menu: unknown }>["path"];
  menu: NonNullable<Row["menu"]>;
  /** The menu has pages below this address: only the address itself is this page. */
  exact: boolean;
};

const isBelow = (path: string, other: string): boolean => path.startsWith(other === "/" ? other : `${other}/`);

const MENU: readonly MenuPage[] = PAGES.flatMap((page) => ("menu" in page ? [page] : [])).map((page, _, all) => ({
  ...page,
  exact: all.some((other) => other !== page && isBelow(other.path, page.path)),
}));

export function menuFor(roles: readonly Role[]): MenuPage[] {
  return MENU.filter(({ menu }) => !menu.roles || menu.roles.some((role) => roles.includes(role)));
}

/** True if the menu shows this page to somebody with these roles; a page without a row in it is open to everybody. */
export function mayOpen(path: string, roles: readonly Role[]): boolean {
  return !MENU.some((page) => page.path === path) || menuFor(roles).some((page) => page.path === path);
}

export function titleOf(address: string): string {
  const parts = address.split("/");
  const fits = (path: string) =>
    path.split("/").length === parts.length &&
    path.split("/").every((part, index) => part === parts[index] || part.startsWith("$"));
  const page = PAGES.find((one) => one.path === address) ?? PAGES.find((one) => fits(one.path));
  return [page?.name, "Windrow"].filter(Boolean).join(" · ");
}

/** Rates how well a typed text fits a name: 1 is best, null is not at all. Words beside the name count least. */
export function closeness(typed: string, name: string, also = ""): number | null {
  const wanted = typed.trim().toLowerCase();
  const text = name.toLowerCase();
  if (!wanted) return 0;
  if (text.startsWith(wanted)) return 1;
  if (` ${text}`.includes(` ${wanted}`)) return 2;
  if (text.includes(wanted)) return 3;
  return ` ${also.toLowerCase()}`.includes(` ${wanted}`) ? 4 : null;
}
