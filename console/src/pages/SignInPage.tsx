// Signing in with a token: typed, or taken from the address that `windrow up` printed.
import { Button, Group, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useCallback, useEffect, useRef, useState, type FormEvent } from "react";
import { Command, ProblemNote } from "../parts/page.tsx";
import type { Me, SignedIn } from "../api/types.ts";
import { plain } from "../format.ts";
import { begin, discard, use } from "../session.ts";

/** brought: a token that came in the address; it is tried at once. me: who is signed in already, if anybody. */
export function SignInPage({ brought, me, done }: { brought: string | null; me: Me | null; done: () => void }) {
  const [other, setOther] = useState<SignedIn | null>(null);
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(brought !== null);
  const tried = useRef<string | null>(null);

  const enter = useCallback(async (entered: string) => {
    setBusy(true);
    setError(null);
    try {
      const session = await begin(entered);
      // A link of somebody else's must not quietly put this browser into their account.
      if (me !== null && me.account.id !== session.account.id) return setOther(session);
      await use(session);
      done();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }, [done, me]);
  useEffect(() => {
    if (brought !== null && tried.current !== brought) void enter(brought);
    tried.current = brought;
  }, [brought, enter]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) void enter(token);
  };
  if (me !== null && other !== null) {
    const stay = async () => {
      await discard(other).catch(() => undefined); // it ends unused in three days by itself
      done();
    };
    return <OtherAccount from={me.account.name} to={other.account.name} go={() => void use(other).then(done)} stay={() => void stay()} />;
  }
  return (
    <main style={{ maxWidth: 420, margin: "14vh auto 0", padding: "0 20px" }}>
      <Stack gap="lg">
        <div className="wr-brand" style={{ fontSize: 18 }}><img src="/windrow.svg" width={32} height={32} alt="" />Windrow</div>
        <form onSubmit={submit}>
          <Stack gap="sm">
            <Title order={1}>Sign in</Title>
            <PasswordInput label="Token" description="An API token of this installation." value={token} onChange={(event) => setToken(event.currentTarget.value)} autoComplete="current-password" autoFocus data-autofocus disabled={busy} />
            <Button type="submit" size="sm" loading={busy} disabled={!token.trim() && !busy}>Sign in</Button>
            {error !== null && <ProblemNote error={error} />}
          </Stack>
        </form>
        <Stack gap={6}>
          <Text size="sm" className="wr-quiet">No token at hand? On the machine that runs <code>windrow up</code>, this makes one:</Text>
          <Command text="windrow token add browser" label="command that makes a token" />
        </Stack>
      </Stack>
    </main>
  );
}

function OtherAccount({ from, to, go, stay }: { from: string; to: string; go: () => void; stay: () => void }) {
  return (
    <main style={{ maxWidth: 420, margin: "14vh auto 0", padding: "0 20px" }}>
      <Stack gap="sm">
        <Title order={1}>Change the account?</Title>
        <Text size="sm">This link signs in as <strong>{plain(to)}</strong>. This browser is signed in as <strong>{plain(from)}</strong>. Go on only if you expected this link.</Text>
        <Group gap="xs">
          <Button onClick={stay}>Stay signed in as {plain(from)}</Button>
          <Button variant="default" onClick={go}>Sign in as {plain(to)}</Button>
        </Group>
      </Stack>
    </main>
  );
}
