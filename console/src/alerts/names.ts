// The names of those who look after alerts, by id: one's own, and of members where one may read them.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { members as membersQuery, me as meQuery } from "../api/queries.ts";
import { useMayOpen } from "../app/PageButton.tsx";
import { nameOf } from "../identity/session.ts";

export function useNames(): Record<string, string> {
  const me = useQuery(meQuery).data;
  const members = useQuery({ ...membersQuery, enabled: useMayOpen("/members") }).data;
  return useMemo(
    () => ({
      ...Object.fromEntries((members ?? []).map((one) => [one.id, one.name])),
      ...(me ? { [me.user?.id ?? me.account.id]: nameOf(me) } : {}),
    }),
    [me, members],
  );
}
