// Which product is shown: rent, provide or operate. The browser remembers the last one.
import { useQuery } from "@tanstack/react-query";
import { useRouterState } from "@tanstack/react-router";
import { useEffect, useSyncExternalStore } from "react";
import { me as meQuery } from "../api/queries.ts";
import { type Product, productAt } from "./pages.ts";

const KEY = "windrow.product";
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

const last = (): string | null => window.localStorage.getItem(KEY);

export function chooseProduct(product: Product): void {
  window.localStorage.setItem(KEY, product);
  for (const tell of listeners) tell();
}

/** The product at this address. A page of another one takes its menu along, and it stays. */
export function useProduct(): Product {
  const me = useQuery(meQuery).data;
  const path = useRouterState({ select: (state) => state.location.pathname });
  const kept = useSyncExternalStore(subscribe, last);
  const product = productAt(path, me?.roles ?? [], kept);
  useEffect(() => {
    if (me && kept !== product) chooseProduct(product);
  }, [me, kept, product]);
  return product;
}
