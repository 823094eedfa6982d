// Reads a list from its newest end: repeats its first page, and reads older pages on request.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Paged } from "../api/queries.ts";
import type { Page } from "../api/types.ts";

export interface Older<T> {
  rows: readonly T[];
  /** There are older ones that were not read yet. */
  more: boolean;
  loading: boolean;
  error: unknown;
  load: () => void;
  /** Without it: older. */
  word?: "later";
}

/** A paged list as a table takes it. Another key of its first page begins it again. */
export function usePaged<T>(list: Paged<T>, id: (row: T) => string) {
  const query = useQuery(list.first);
  const older = useOlder(JSON.stringify(list.first.queryKey), query.data, list.before, id);
  return { rows: query.data && older.rows, query, older, id };
}

function useOlder<T>(
  key: string,
  first: Page<T> | undefined,
  before: (cursor: string) => Promise<Page<T>>,
  id: (row: T) => string,
): Older<T> {
  const [held, setHeld] = useState<{ key: string; rows: readonly T[]; cursor: string | null } | null>(null);
  useEffect(() => setHeld((now) => (now && now.key !== key ? null : now)), [key]);
  const mine = held?.key === key ? held : null;
  const rows = union(first?.items ?? [], mine?.rows ?? [], id);
  const cursor = mine ? mine.cursor : (first?.next_cursor ?? null);
  const load = useMutation({
    mutationFn: before,
    // The rows of the first page are kept as well: newer rows push them off that page later on.
    onSuccess: (page) => setHeld({ key, rows: union(rows, page.items, id), cursor: page.next_cursor }),
  });
  return {
    rows,
    more: cursor !== null,
    loading: load.isPending,
    error: load.error,
    load: () => cursor && load.mutate(cursor),
  };
}

function union<T>(newer: readonly T[], older: readonly T[], id: (row: T) => string): readonly T[] {
  if (older.length === 0) return newer;
  const known = new Set(newer.map(id));
  return [...newer, ...older.filter((row) => !known.has(id(row)))];
}
