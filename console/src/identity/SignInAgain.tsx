// The dialog that asks for the password, a code or a token again before an act of weight; the request then goes on.
// Who signs in by an identity provider leaves for its page instead, and comes back to this one.
import { Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { askWith } from "../api/again.ts";
import { post, SESSION_PROOF } from "../api/client.ts";
import { identities as identitiesQuery, user as userQuery } from "../api/queries.ts";
import type { Me, SessionProof } from "../api/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { plain } from "../parts/format.ts";
import { ProblemNote } from "../parts/page.tsx";
import { proofWays } from "./account.ts";
import { leaveToSignIn } from "./providerFlow.ts";

type Way = keyof SessionProof;
type Answer = (done: boolean) => void;

const FIELDS: Readonly<Record<Way, { label: string; other: string; complete: string }>> = {
  password: { label: "Password", other: "Use the password", complete: "current-password" },
  code: { label: "Code", other: "Use a code of the app", complete: "one-time-code" },
  token: { label: "Token", other: "Use a token", complete: "off" },
};

/** Shows nothing until a request is refused for want of it. */
export function SignInAgain({ me }: { me: Me }) {
  const [answer, setAnswer] = useState<{ give: Answer } | null>(null);
  useEffect(() => askWith(() => new Promise<boolean>((give) => setAnswer({ give }))), []);
  if (answer === null) return null;
  const close = (done: boolean) => {
    setAnswer(null);
    answer.give(done);
  };
  return <Ask me={me} close={close} />;
}

function Ask({ me, close }: { me: Me; close: Answer }) {
  const user = useQuery({ ...userQuery, enabled: me.user !== null });
  const ways = proofWays(user.data ?? null);
  const [chosen, choose] = useState<Way | null>(null);
  const [text, setText] = useState("");
  const way = chosen ?? ways[0] ?? "token";
  const act = useMutation({
    mutationFn: () => post(SESSION_PROOF, { [way]: way === "password" ? text : text.trim() } satisfies SessionProof),
    gcTime: 0,
    onSuccess: () => close(true),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text !== "") act.mutate();
  };
  const change = (other: Way) => {
    act.reset();
    setText("");
    choose(other);
  };
  return (
    <Dialog onClose={() => close(false)} title="Sign in again" closeOnClickOutside={false}>
      <form onSubmit={submit} noValidate aria-label="Sign in again">
        <Stack gap="sm">
          <Text size="sm">
            You signed in more than ten minutes ago, and this changes who may do what. Sign in again here, or sign out
            and in again.
          </Text>
          {me.user !== null && <ByProvider />}
          <PasswordInput
            key={way}
            label={FIELDS[way].label}
            autoComplete={FIELDS[way].complete}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-autofocus
          />
          <Group gap="lg">
            {ways
              .filter((one) => one !== way)
              .map((one) => (
                <Button key={one} variant="subtle" color="gray" px={0} onClick={() => change(one)}>
                  {FIELDS[one].other}
                </Button>
              ))}
          </Group>
          {act.error && <ProblemNote error={act.error} />}
          <DialogFoot close={() => close(false)} disabled={text === ""} loading={act.isPending}>
            Go on
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

/** A button for each linked identity. The act is begun anew afterwards. */
function ByProvider() {
  const linked = useQuery(identitiesQuery).data ?? [];
  const act = useMutation({ mutationFn: (provider: string) => leaveToSignIn(provider) });
  if (linked.length === 0) return null;
  return (
    <Stack gap="xs">
      {linked.map(({ provider }) => (
        <Button key={provider} variant="default" loading={act.isPending} onClick={() => act.mutate(provider)}>
          Sign in again by {plain(provider)}
        </Button>
      ))}
      {act.error && <ProblemNote error={act.error} />}
    </Stack>
  );
}
