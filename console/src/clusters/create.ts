// Rents a machine, and opens its page.
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { freshKey, post } from "../api/client.ts";
import type { ClusterAccepted, ClusterRequest, RegistryLogin } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { useMounted } from "../parts/mounted.ts";
import { withLogin } from "./request.ts";

/** done: before its page is opened. */
export function useCreate(request: ClusterRequest, login: RegistryLogin | null, done?: () => void) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const mounted = useMounted();
  // The same request asked again, after an answer that got lost, must not rent twice; a changed one is another.
  const key = useMemo(() => ({ request, text: freshKey() }), [request]);
  return useMutation({
    mutationFn: () => post<ClusterAccepted>("/clusters", withLogin(request, login), key.text),
    gcTime: 0, // what was sent has the login
    onError: () => void client.invalidateQueries({ queryKey: ["plan"] }),
    onSuccess: ({ cluster }) => {
      done?.();
      client.setQueryData(["cluster", cluster.id], cluster);
      void client.invalidateQueries({ queryKey: ["clusters"] });
      if (!mounted.current) notifications.show({ message: `${plain(cluster.name)} is being started.` });
      else void navigate({ to: "/clusters/$clusterId", params: { clusterId: cluster.id }, ignoreBlocker: true });
    },
  });
}
