// The sign-in page: by a token, typed or in the address, or by a sign-in link of an operator.
import { Button, Group, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import type { Me, SignedIn } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Command, ProblemNote } from "../parts/page.tsx";
import { type Brought, begin, discard, use } from "./session.ts";

/** brought: what came in the address; it is tried at once. me: who is signed in already, if anybody. */
export function SignInPage({ brought, me, done }: { brought: Brought | null; me: Me | null; done: () => void }) {
  const [other, setOther] = useState<SignedIn | null>(null);
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(brought !== null);
  const tried = useRef<Brought | null>(null);
  // A link works once: not before its person says so.
  const [meant, setMeant] = useState(me === null || brought?.kind !== "link");

  const enter = useCallback(
    async (entered: Brought) => {
      setBusy(true);
      setError(null);
      try {
        const session = await begin(entered);
        // A link of somebody else's must not quietly put this browser into their account.
        if (brought?.kind !== "link" && me !== null && me.account.id !== session.account.id) return setOther(session);
        await use(session);
        done();
      } catch (failure) {
        setError(failure);
      } finally {
        setBusy(false);
      }
    },
    [done, me, brought],
  );
  useEffect(() => {
    if (!meant || brought === null || tried.current === brought) return;
    tried.current = brought;
    void enter(brought);
  }, [brought, enter, meant]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) void enter({ kind: "token", text: token });
  };
  if (me !== null && !meant)
    return <OtherAccount from={me.account.name} to={null} go={() => setMeant(true)} stay={done} />;
  if (me !== null && other !== null) {
    const stay = async () => {
      await discard(other).catch(() => undefined); // it ends unused in three days by itself
      done();
    };
    return (
      <OtherAccount
        from={me.account.name}
        to={other.account.name}
        go={() => void use(other).then(done)}
        stay={() => void stay()}
      />
    );
  }
  return (
    <main style={{ maxWidth: 420, margin: "14vh auto 0", padding: "0 20px" }}>
      <Stack gap="lg">
        <div className="wr-brand" style={{ fontSize: 18 }}>
          <img src="/windrow.svg" width={32} height={32} alt="" />
          Windrow
        </div>
        <form onSubmit={submit}>
          <Stack gap="sm">
            <Title order={1}>Sign in</Title>
            <PasswordInput
              label="Token"
              description="Paste your access token."
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              autoComplete="current-password"
              autoFocus
              data-autofocus
              disabled={busy}
            />
            <Button type="submit" size="sm" loading={busy} disabled={!token.trim() && !busy}>
              Sign in
            </Button>
            {error !== null && <ProblemNote error={error} />}
          </Stack>
        </form>
        <Stack gap={6}>
          <Text size="sm" className="wr-quiet">
            No token at hand? On the machine that runs <code>windrow up</code>, this makes one:
          </Text>
          <Command text="windrow token add browser" label="command that makes a token" />
        </Stack>
      </Stack>
    </main>
  );
}

/** to: whose account the link opens; null: that shows only when it is used up. */
function OtherAccount({ from, to, go, stay }: { from: string; to: string | null; go: () => void; stay: () => void }) {
  return (
    <main style={{ maxWidth: 420, margin: "14vh auto 0", padding: "0 20px" }}>
      <Stack gap="sm">
        <Title order={1}>Change the account?</Title>
        <Text size="sm">
          {to === null ? (
            "This is a sign-in link of another account."
          ) : (
            <>
              This link signs in as <strong>{plain(to)}</strong>.
            </>
          )}{" "}
          This browser is signed in as <strong>{plain(from)}</strong>. Go on only if you expected this link.
        </Text>
        <Group gap="xs">
          <Button onClick={stay}>Stay signed in as {plain(from)}</Button>
          <Button variant="default" onClick={go}>
            {to === null ? "Use the link" : `Sign in as ${plain(to)}`}
          </Button>
        </Group>
      </Stack>
    </main>
  );
}
