// The page that an identity provider sends people back to: signs in, or links the user who is signed in.
import { Button, Group, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { identities, queryClient } from "../api/queries.ts";
import { plain } from "../parts/format.ts";
import { ProblemNote, Waiting } from "../parts/page.tsx";
import { Outside } from "./Outside.tsx";
import { type CameBack, finishLink, finishSignIn } from "./providerFlow.ts";
import { use } from "./session.ts";

async function finish(back: CameBack): Promise<void> {
  if (!back.flow?.links) return use(await finishSignIn(back));
  const linked = await finishLink(back);
  await queryClient.invalidateQueries({ queryKey: identities.queryKey });
  notifications.show({ message: `You can sign in by ${plain(linked.provider)} now` });
}

export function ReturnPage({ back, done }: { back: CameBack; done: () => void }) {
  const act = useMutation({ mutationFn: () => finish(back), gcTime: 0, onSuccess: done });
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return; // a code works once
    begun.current = true;
    act.mutate();
  }, [act]);
  return (
    <Outside>
      <Title order={1}>{back.flow?.links ? "Link an identity" : "Sign in"}</Title>
      {act.error ? (
        <>
          <ProblemNote error={act.error} />
          <Group>
            <Button onClick={done}>Back</Button>
          </Group>
        </>
      ) : (
        <Waiting lines={2} />
      )}
    </Outside>
  );
}
