// The router, made from the table of pages. Search words are plain text; each page reads its own.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { parseSearch, type SearchWords, stringifySearch } from "../tables/address.ts";
import { Frame, Lost, PageFailed } from "./Frame.tsx";
import { PAGES } from "./pages.ts";

const root = createRootRoute({ component: Frame, notFoundComponent: Lost, errorComponent: PageFailed });

const words = (search: Record<string, unknown>): SearchWords =>
  Object.fromEntries(
    Object.entries(search).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
  );

const routeOf = <const Path extends string>(path: Path, load: () => Promise<ComponentType>) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(async () => ({ default: await load() })),
    validateSearch: words,
  });

type RoutesOf<Pages extends readonly { path: string }[]> = {
  -readonly [Index in keyof Pages]: ReturnType<typeof routeOf<Pages[Index]["path"]>>;
};

export const router = createRouter({
  routeTree: root.addChildren(PAGES.map((page) => routeOf(page.path, page.load)) as unknown as RoutesOf<typeof PAGES>),
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
