// Every page of the console, a row each: its address, its name, who sees it, in which products, what it loads. The
// router, the menus, the keys and the palette are made from these rows.
import type { ComponentType } from "react";
import type { Role } from "../api/types.ts";
import { READERS } from "../identity/roles.ts";
import {
  AuditIcon,
  BellIcon,
  CloudIcon,
  ClusterIcon,
  CommandIcon,
  EventIcon,
  FleetIcon,
  HealthIcon,
  HomeIcon,
  JoinIcon,
  OfferIcon,
  PeopleIcon,
  PlusIcon,
  PriceIcon,
  QueueIcon,
  ReceiptIcon,
  RegionIcon,
  ReportIcon,
  ResourceIcon,
  RouteIcon,
  SecretIcon,
  SettingsIcon,
  TokenIcon,
  UserIcon,
  UsersIcon,
  VolumeIcon,
} from "../parts/icons.tsx";

/** What one does here: each has a menu and a home of its own. */
export type Product = "rent" | "provide" | "operate";
const ALL: readonly Product[] = ["rent", "provide", "operate"];
const PRODUCTS: readonly (readonly [product: Product, name: string, roles: readonly Role[]])[] = [
  ["rent", "Rent", ["renter", "viewer", "admin"]],
  ["provide", "Provide", ["provider"]],
  ["operate", "Operate", ["operator", "auditor"]],
];
/** The parts of a menu; the first has no title. */
export const GROUPS = ["Main", "Money", "People", "System"] as const;

/** Who may read rentals: their project's renters, viewers and admins, and who oversees the market. */
const RENTALS: readonly Role[] = ["operator", "auditor", "renter", "viewer", "admin"];

interface Row {
  path: `/${string}`;
  /** Also the tab's title: never a name that somebody else chose. */
  name: string;
  load: () => Promise<ComponentType>;
  /** Without it: a page that is reached from others. */
  menu?: {
    /** In whose menus it stands; in none: it is found by its key, in the palette and under New. */
    products: readonly Product[];
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
    name: "Home",
    menu: { products: ALL, group: "Main", icon: HomeIcon, key: "v", also: "overview dashboard revenue balance" },
    load: async () => (await import("../home/HomePage.tsx")).HomePage,
  },
  {
    path: "/fleet",
    name: "Fleet",
    menu: {
      products: ["provide", "operate"],
      group: "Main",
      icon: FleetIcon,
      key: "f",
      also: "hosts gpus table faulty broken offline idle rented",
    },
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
    path: "/regions",
    name: "Relays",
    menu: {
      products: ["operate"],
      group: "Main",
      icon: RegionIcon,
      key: "i",
      roles: ["operator", "auditor"],
      also: "access accesses regions drain relay stop relay",
    },
    load: async () => (await import("../accesses/RegionsPage.tsx")).RegionsPage,
  },
  {
    path: "/join",
    name: "Add a host",
    menu: {
      products: [],
      group: "Main",
      icon: JoinIcon,
      key: "j",
      roles: ["operator", "provider"],
      also: "join onboard",
    },
    load: async () => (await import("../hosts/JoinPage.tsx")).JoinPage,
  },
  {
    path: "/shop",
    name: "GPUs & prices",
    menu: { products: ["rent"], group: "Main", icon: OfferIcon, key: "2", also: "shop market offers models h100" },
    load: async () => (await import("../market/ShopPage.tsx")).ShopPage,
  },
  {
    path: "/offers",
    name: "Pricing",
    menu: {
      products: ["provide", "operate"],
      group: "Money",
      icon: OfferIcon,
      key: "o",
      roles: ["operator", "auditor", "provider"],
      also: "offers set price prices tiers asks",
    },
    load: async () => (await import("../market/OffersPage.tsx")).OffersPage,
  },
  {
    path: "/clusters",
    name: "Machines",
    menu: {
      products: ["rent", "operate"],
      group: "Main",
      icon: ClusterIcon,
      key: "c",
      roles: RENTALS,
      also: "clusters pods instances",
    },
    load: async () => (await import("../clusters/ClustersPage.tsx")).ClustersPage,
  },
  {
    path: "/new",
    name: "New",
    menu: {
      products: [],
      group: "Main",
      icon: PlusIcon,
      key: "n",
      roles: ["renter"],
      also: "start rent machine job jupyter notebook pytorch vllm ssh ray folder",
    },
    load: async () => (await import("../new/NewPage.tsx")).NewPage,
  },
  {
    path: "/clusters/new",
    name: "New machine",
    menu: {
      products: [],
      group: "Main",
      icon: PlusIcon,
      key: "3",
      roles: ["renter"],
      also: "new cluster create rent run",
    },
    load: async () => (await import("../clusters/NewClusterPage.tsx")).NewClusterPage,
  },
  {
    path: "/clusters/$clusterId",
    name: "Machine",
    load: async () => (await import("../clusters/ClusterPage.tsx")).ClusterPage,
  },
  {
    path: "/jobs",
    name: "Jobs",
    menu: {
      products: ["rent", "operate"],
      group: "Main",
      icon: CommandIcon,
      key: "b",
      roles: RENTALS,
      also: "batch train",
    },
    load: async () => (await import("../jobs/JobsPage.tsx")).JobsPage,
  },
  {
    path: "/jobs/new",
    name: "New job",
    menu: { products: [], group: "Main", icon: PlusIcon, key: "w", roles: ["renter"], also: "submit batch" },
    load: async () => (await import("../jobs/NewJobPage.tsx")).NewJobPage,
  },
  {
    path: "/jobs/$jobId",
    name: "Job",
    load: async () => (await import("../jobs/JobPage.tsx")).JobPage,
  },
  {
    path: "/queue",
    name: "Queue",
    menu: {
      products: ["rent", "operate"],
      group: "Main",
      icon: QueueIcon,
      key: "6",
      roles: RENTALS,
      also: "waiting order shares quotas quota",
    },
    load: async () => (await import("../queue/QueuePage.tsx")).QueuePage,
  },
  {
    path: "/alerts",
    name: "Alerts",
    menu: {
      products: ALL,
      group: "Main",
      icon: BellIcon,
      key: "5",
      also: "rules silences channels webhook mail notifications inbox",
    },
    load: async () => (await import("../alerts/AlertsPage.tsx")).AlertsPage,
  },
  {
    path: "/alerts/$alertId",
    name: "Alert",
    load: async () => (await import("../alerts/AlertPage.tsx")).AlertPage,
  },
  {
    path: "/volumes",
    name: "Volumes",
    menu: {
      products: ["rent"],
      group: "Main",
      icon: VolumeIcon,
      key: "d",
      roles: ["renter"],
      also: "data folders disks storage",
    },
    load: async () => (await import("../volumes/VolumesPage.tsx")).VolumesPage,
  },
  {
    path: "/secrets",
    name: "Secrets",
    menu: {
      products: ["rent"],
      group: "Main",
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
    menu: {
      products: ["rent"],
      group: "People",
      icon: UserIcon,
      key: "z",
      also: "shares received clusters jobs of others",
    },
    load: async () => (await import("../identity/SharedPage.tsx")).SharedPage,
  },
  {
    path: "/usage",
    name: "Usage & billing",
    menu: {
      products: ["rent", "operate"],
      group: "Money",
      icon: PriceIcon,
      key: "g",
      roles: RENTALS,
      also: "spend costs budget forecast money",
    },
    load: async () => (await import("../market/UsagePage.tsx")).UsagePage,
  },
  {
    path: "/earnings",
    name: "Earnings",
    menu: {
      products: ["provide", "operate"],
      group: "Money",
      icon: PriceIcon,
      key: "1",
      roles: ["operator", "auditor", "provider"],
      also: "revenue income occupancy money lost",
    },
    load: async () => (await import("../market/EarningsPage.tsx")).EarningsPage,
  },
  {
    path: "/reports",
    name: "Reports",
    menu: {
      products: ALL,
      group: "Money",
      icon: ReportIcon,
      key: "4",
      also: "statement csv schedule mail occupancy incidents utilisation cost",
    },
    load: async () => (await import("../reports/ReportsPage.tsx")).ReportsPage,
  },
  {
    path: "/receipts",
    name: "Receipts",
    menu: {
      products: ["rent", "operate"],
      group: "Money",
      icon: ReceiptIcon,
      key: "r",
      roles: RENTALS,
      also: "costs paid",
    },
    load: async () => (await import("../market/ReceiptsPage.tsx")).ReceiptsPage,
  },
  {
    path: "/receipts/$receiptId",
    name: "Receipt",
    load: async () => (await import("../market/ReceiptsPage.tsx")).ReceiptPage,
  },
  {
    path: "/route",
    name: "Where to run",
    menu: {
      products: ["rent"],
      group: "Main",
      icon: RouteIcon,
      key: "u",
      also: "router recommend backend cost compare script",
    },
    load: async () => (await import("../routing/RoutePage.tsx")).RoutePage,
  },
  {
    path: "/prices",
    name: "Prices elsewhere",
    menu: { products: ALL, group: "Money", icon: PriceIcon, key: "y", also: "compare clouds cost price book" },
    load: async () => (await import("../market/PricesPage.tsx")).PricesPage,
  },
  {
    path: "/resources",
    name: "Resources",
    menu: {
      products: ["operate"],
      group: "Main",
      icon: ResourceIcon,
      key: "x",
      also: "registry hybrid cloud edge premise compute",
    },
    load: async () => (await import("../resources/ResourcesPage.tsx")).ResourcesPage,
  },
  {
    path: "/clouds",
    name: "Clouds",
    menu: {
      products: ["operate"],
      group: "Main",
      icon: CloudIcon,
      key: "7",
      roles: ["operator", "auditor"],
      also: "backends purchases buy aws ec2 ssh spot caps sweep",
    },
    load: async () => (await import("../clouds/CloudsPage.tsx")).CloudsPage,
  },
  {
    path: "/members",
    name: "Members",
    menu: {
      products: ALL,
      group: "People",
      icon: UsersIcon,
      key: "l",
      roles: READERS,
      also: "organisation invite invitations projects users roles limit limits budget",
    },
    load: async () => (await import("../identity/MembersPage.tsx")).MembersPage,
  },
  {
    path: "/events",
    name: "Events",
    menu: { products: ["operate"], group: "System", icon: EventIcon, key: "e", roles: ["operator", "auditor"] },
    load: async () => (await import("../records/EventsPage.tsx")).EventsPage,
  },
  {
    path: "/commands",
    name: "Commands",
    menu: { products: [], group: "System", icon: CommandIcon, key: "m", also: "orders history" },
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
      products: ["operate"],
      group: "System",
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
      products: ["operate"],
      group: "People",
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
      products: ["operate"],
      group: "People",
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
    menu: { products: ALL, group: "People", icon: TokenIcon, key: "t", also: "access keys" },
    load: async () => (await import("../identity/TokensPage.tsx")).TokensPage,
  },
  {
    path: "/device",
    name: "Sign in a device",
    load: async () => (await import("../identity/DevicePage.tsx")).DevicePage,
  },
  {
    path: "/health",
    name: "Health",
    menu: {
      products: ["operate"],
      group: "System",
      icon: HealthIcon,
      key: "h",
      roles: ["operator", "auditor"],
      also: "system relays accesses master",
    },
    load: async () => (await import("../accesses/HealthPage.tsx")).HealthPage,
  },
  {
    path: "/settings",
    name: "Settings",
    menu: {
      products: ALL,
      group: "System",
      icon: SettingsIcon,
      key: "s",
      also: "colours dark light sessions account password",
    },
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

/** The pages that these roles may open; of one product: those of its menu. */
export function menuFor(roles: readonly Role[], product?: Product): MenuPage[] {
  return MENU.filter(
    ({ menu }) =>
      (!product || menu.products.includes(product)) && (!menu.roles || menu.roles.some((role) => roles.includes(role))),
  );
}

/** True if the menu shows this page to somebody with these roles; a page without a row in it is open to everybody. */
export function mayOpen(path: string, roles: readonly Role[]): boolean {
  return !MENU.some((page) => page.path === path) || menuFor(roles).some((page) => page.path === path);
}

/** Pages that more may read at their address than have them in a menu; null: everybody. */
const MORE: Partial<Record<string, readonly Role[] | null>> = { "/offers": null, "/events": ["provider"] };

/**
 * The page at an address, where its requests are not for these roles; null: it can be drawn. isAbout: it is about one
 * thing, whose own rights count.
 */
export function closedAt(address: string, roles: readonly Role[], isAbout = false): MenuPage | null {
  const path = address.replace(/\/+$/, "") || "/";
  const more = MORE[path];
  const isOpen = mayOpen(path, roles) || more === null || more?.some((role) => roles.includes(role));
  if (isOpen || (isAbout && path === "/events")) return null;
  return MENU.find((page) => page.path === path) ?? null;
}

/** The products of somebody with these roles, by name; who has no role of any looks around as a renter does. */
export function productsOf(roles: readonly Role[]): (readonly [Product, string])[] {
  const mine = PRODUCTS.filter(([, , of]) => of.some((role) => roles.includes(role)));
  return (mine.length ? mine : PRODUCTS.slice(0, 1)).map(([product, name]) => [product, name]);
}

/**
 * The product whose menu is shown at an address: the last one that was chosen, unless the page is of others alone; at
 * first the last of one's own.
 */
export function productAt(address: string, roles: readonly Role[], last: string | null): Product {
  const mine = productsOf(roles).map(([product]) => product);
  const kept = mine.find((one) => one === last) ?? mine.at(-1)!;
  const here = MENU.filter(({ path }) => path !== "/" && (path === address || isBelow(address, path)));
  const page = here.filter(({ menu }) => menu.products.length > 0).at(-1);
  const of = mine.filter((one) => page?.menu.products.includes(one));
  return of.length === 0 || of.includes(kept) ? kept : of[0]!;
}

type Made = readonly [name: string, path: MenuPage["path"], roles: readonly Role[], search?: Record<string, string>];

/** What the header's New button makes, each on its page. */
export const NEW: readonly Made[] = [
  ["PyTorch with Jupyter", "/new", ["renter"], { what: "jupyter" }],
  ["Machine", "/new", ["renter"]],
  ["Job", "/new", ["renter"], { what: "job" }],
  ["Host", "/join", ["operator", "provider"]],
  ["Invitation", "/members", ["org_owner", "org_admin", "admin"], { invite: "1" }],
  ["Account", "/people", ["operator"]],
];

/** The bar at the bottom of a phone, before More. */
const PHONE: Readonly<Record<Product, readonly MenuPage["path"][]>> = {
  rent: ["/", "/shop", "/clusters", "/jobs"],
  provide: ["/", "/fleet", "/earnings", "/offers"],
  operate: ["/", "/fleet", "/jobs", "/events"],
};

export const phoneBar = (roles: readonly Role[], product: Product): MenuPage[] =>
  PHONE[product].flatMap((path) => menuFor(roles, product).filter((page) => page.path === path));

export function titleOf(address: string): string {
  const parts = address.split("/");
  const fits = (path: string) =>
    path.split("/").length === parts.length &&
    path.split("/").every((part, index) => part === parts[index] || part.startsWith("$"));
  const page = PAGES.find((one) => one.path === address) ?? PAGES.find((one) => fits(one.path));
  return [page?.name, "Windrow"].filter(Boolean).join(" · ");
}

/**
 * The same where the text says more than the page is called: "price h100" finds Pricing by its first word. A word of
 * under four letters is more often the beginning of a name.
 */
export function nearness(typed: string, name: string, also: string): number | null {
  const whole = closeness(typed, name, also);
  const [first = "", ...rest] = typed.trim().split(/\s+/);
  if (whole !== null || rest.length === 0 || first.length < 4) return whole;
  const near = closeness(first, name, also);
  return near === null ? null : near + 4;
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
