// Which address shows which screen. Search words are plain text; each screen reads its own.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Frame, Lost, PageFailed } from "./Frame.tsx";
import { parseSearch, type SearchWords, stringifySearch } from "./fleet/filter.ts";
import { OverviewPage } from "./pages/OverviewPage.tsx";

const root = createRootRoute({ component: Frame, notFoundComponent: Lost, errorComponent: PageFailed });
const words = (search: Record<string, unknown>): SearchWords =>
  Object.fromEntries(Object.entries(search).map(([key, value]) => [key, String(value)]));

const overview = createRoute({ getParentRoute: () => root, path: "/", component: OverviewPage });
const fleet = createRoute({
  getParentRoute: () => root,
  path: "/fleet",
  component: lazyRouteComponent(() => import("./pages/FleetPage.tsx"), "FleetPage"),
  validateSearch: words,
});
const heat = createRoute({
  getParentRoute: () => root,
  path: "/fleet/map",
  component: lazyRouteComponent(() => import("./pages/HeatPage.tsx"), "HeatPage"),
  validateSearch: words,
});
const host = createRoute({
  getParentRoute: () => root,
  path: "/hosts/$hostId",
  component: lazyRouteComponent(() => import("./pages/HostPage.tsx"), "HostPage"),
  validateSearch: words,
});
const gpu = createRoute({
  getParentRoute: () => root,
  path: "/gpus/$gpuId",
  component: lazyRouteComponent(() => import("./pages/GpuPage.tsx"), "GpuPage"),
  validateSearch: words,
});
const clusters = createRoute({
  getParentRoute: () => root,
  path: "/clusters",
  component: lazyRouteComponent(() => import("./pages/ClustersPage.tsx"), "ClustersPage"),
});
const newCluster = createRoute({
  getParentRoute: () => root,
  path: "/clusters/new",
  component: lazyRouteComponent(() => import("./pages/NewClusterPage.tsx"), "NewClusterPage"),
  validateSearch: words,
});
const cluster = createRoute({
  getParentRoute: () => root,
  path: "/clusters/$clusterId",
  component: lazyRouteComponent(() => import("./pages/ClusterPage.tsx"), "ClusterPage"),
});
const jobs = createRoute({
  getParentRoute: () => root,
  path: "/jobs",
  component: lazyRouteComponent(() => import("./pages/JobsPage.tsx"), "JobsPage"),
});
const newJob = createRoute({
  getParentRoute: () => root,
  path: "/jobs/new",
  component: lazyRouteComponent(() => import("./pages/NewJobPage.tsx"), "NewJobPage"),
});
const job = createRoute({
  getParentRoute: () => root,
  path: "/jobs/$jobId",
  component: lazyRouteComponent(() => import("./pages/JobPage.tsx"), "JobPage"),
});
const volumes = createRoute({
  getParentRoute: () => root,
  path: "/volumes",
  component: lazyRouteComponent(() => import("./pages/VolumesPage.tsx"), "VolumesPage"),
});
const receipts = createRoute({
  getParentRoute: () => root,
  path: "/receipts",
  component: lazyRouteComponent(() => import("./pages/ReceiptsPage.tsx"), "ReceiptsPage"),
});
const receipt = createRoute({
  getParentRoute: () => root,
  path: "/receipts/$receiptId",
  component: lazyRouteComponent(() => import("./pages/ReceiptsPage.tsx"), "ReceiptPage"),
});
const offers = createRoute({
  getParentRoute: () => root,
  path: "/offers",
  component: lazyRouteComponent(() => import("./pages/OffersPage.tsx"), "OffersPage"),
});
const join = createRoute({
  getParentRoute: () => root,
  path: "/join",
  component: lazyRouteComponent(() => import("./pages/JoinPage.tsx"), "JoinPage"),
});
const events = createRoute({
  getParentRoute: () => root,
  path: "/events",
  component: lazyRouteComponent(() => import("./pages/EventsPage.tsx"), "EventsPage"),
  validateSearch: words,
});
const tokens = createRoute({
  getParentRoute: () => root,
  path: "/tokens",
  component: lazyRouteComponent(() => import("./pages/TokensPage.tsx"), "TokensPage"),
});
const people = createRoute({
  getParentRoute: () => root,
  path: "/people",
  component: lazyRouteComponent(() => import("./pages/PeoplePage.tsx"), "PeoplePage"),
});
const commands = createRoute({
  getParentRoute: () => root,
  path: "/commands",
  component: lazyRouteComponent(() => import("./pages/CommandsPage.tsx"), "CommandsPage"),
  validateSearch: words,
});
const command = createRoute({
  getParentRoute: () => root,
  path: "/commands/$commandId",
  component: lazyRouteComponent(() => import("./pages/CommandsPage.tsx"), "CommandPage"),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  component: lazyRouteComponent(() => import("./pages/AuditPage.tsx"), "AuditPage"),
  validateSearch: words,
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/SettingsPage.tsx"), "SettingsPage"),
});
const regions = createRoute({
  getParentRoute: () => root,
  path: "/regions",
  component: lazyRouteComponent(() => import("./pages/RegionsPage.tsx"), "RegionsPage"),
});
const health = createRoute({
  getParentRoute: () => root,
  path: "/health",
  component: lazyRouteComponent(() => import("./pages/HealthPage.tsx"), "HealthPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    fleet,
    heat,
    host,
    gpu,
    clusters,
    newCluster,
    cluster,
    jobs,
    newJob,
    job,
    volumes,
    receipts,
    receipt,
    offers,
    join,
    events,
    commands,
    command,
    audit,
    people,
    tokens,
    settings,
    regions,
    health,
  ]),
  parseSearch,
  stringifySearch,
  scrollRestoration: true,
  defaultErrorComponent: PageFailed, // inside the frame: what failed is one page, and the way to the others stays
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
