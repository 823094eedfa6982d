// A change that a dialog or a button makes: its request, the lists that are read again, the message that is shown.
import { notifications } from "@mantine/notifications";
import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";

interface Changed {
  /** They are read again. */
  lists: readonly { queryKey: QueryKey }[];
  said: string;
  close?: () => void;
}

export function useChange(change: () => Promise<unknown>, { lists, said, close }: Changed) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => {
      for (const { queryKey } of lists) void client.invalidateQueries({ queryKey });
      notifications.show({ message: said });
      close?.();
    },
  });
}
