// The message that something was done, with the button that undoes it.
import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";

const UNDO_MS = 15_000;

export function showUndo(said: string, undo: () => Promise<unknown>): void {
  notifications.show({
    message: <Undone said={said} undo={undo} />,
    autoClose: UNDO_MS,
    closeButtonProps: { "aria-label": "Close" },
  });
}

function Undone({ said, undo }: { said: string; undo: () => Promise<unknown> }) {
  const [isDone, setDone] = useState(false);
  return (
    <Group gap="xs" justify="space-between">
      {said}
      <Button
        variant="subtle"
        size="compact-sm"
        disabled={isDone}
        onClick={() => {
          setDone(true);
          void undo().catch(({ message }: Error) =>
            notifications.show({ title: "Not undone", message, color: "red", autoClose: false }),
          );
        }}
      >
        Undo
      </Button>
    </Group>
  );
}
