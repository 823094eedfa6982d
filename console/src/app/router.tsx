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

/** Of the page that was loaded again because a file of it did not arrive: it is done once. */
const ABSENT = "windrow.absent";

/**
 * In the place of a page whose file did not arrive, since a browser never fetches it a second time: loads all again.
 * Pages are drawn only for who is signed in, so that no secret of the address is lost by that.
 */
function absent(path: string, failure: unknown): ComponentType {
  // biome-ignore lint/correctness/noComponentHookFactories: made once for a page, which then keeps nothing
  return function Absent() {
    if (window.sessionStorage.getItem(ABSENT) === path) throw failure;
    window.sessionStorage.setItem(ABSENT, path);
    window.location.reload();
    throw new Promise(() => undefined);
  };
}

async function arrived(path: string, load: () => Promise<ComponentType>): Promise<ComponentType> {
  try {
    const page = await load();
    window.sessionStorage.removeItem(ABSENT);
    return page;
  } catch (failure) {
    return absent(path, failure);
  }
}

const routeOf = <const Path extends string>(path: Path, load: () => Promise<ComponentType>) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(async () => ({ default: await arrived(path, load) })),
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
  interface HistoryState {
    /** A program that goes from one page to the next; it is too long for the address. */
    program?: string;
    /** The number of a form that goes on in another page: new/handed.ts. */
    handed?: number;
  }
  interface Register {
    router: typeof router;
  }
}
