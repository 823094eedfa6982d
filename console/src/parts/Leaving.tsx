// The question before a page is left with what would be lost, or that goes on.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useBlocker } from "@tanstack/react-router";
import { useCallback, useRef, useState } from "react";
import { Dialog } from "./Dialog.tsx";
import { useFilled } from "./filled.ts";

/** when: there is something to lose; the browser asks too, before it closes or loads again. */
export function AskBeforeLeaving({ when, title, text }: { when: boolean; title: string; text: string }) {
  useFilled(when);
  const asked = useRef<unknown>(undefined);
  const [answered, answer] = useState<unknown>(null);
  // Back and then Forward is here again, and answers the question: the router would load the page anew to stay on it.
  const leaves = useCallback(({ current, next }: Record<"current" | "next", { pathname: string; search: unknown }>) => {
    const isHere = current.pathname === next.pathname && JSON.stringify(current.search) === JSON.stringify(next.search);
    if (isHere) answer(asked.current);
    return !isHere;
  }, []);
  const blocker = useBlocker({ shouldBlockFn: leaves, disabled: !when, withResolver: true });
  asked.current = blocker.proceed;
  if (blocker.status !== "blocked" || blocker.proceed === answered) return null;
  return (
    <Dialog title={title} onClose={blocker.reset}>
      <Stack gap="sm">
        <Text size="sm">{text}</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={blocker.proceed}>
            Leave the page
          </Button>
          <Button onClick={blocker.reset} data-autofocus>
            Stay here
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

/** Of a form. filled: something in it was changed; sending: files of it are on their way. */
export function AskBeforeLeavingForm({ filled, sending = false }: { filled: boolean; sending?: boolean }) {
  return sending ? (
    <AskBeforeLeaving
      when
      title="Files are being sent"
      text="They go on being sent on another page of the console, and a message says when the job is submitted. If you
        close or reload this window, they are not."
    />
  ) : (
    <AskBeforeLeaving when={filled} title="Leave this form?" text="What you filled in is lost." />
  );
}
