// Signing in with a token: typed, or taken from the address that `windrow up` printed.
import { Button, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useCallback, useEffect, useState, type FormEvent } from "react";
import { Command, ProblemNote } from "../parts/page.tsx";
import { signIn } from "../session.ts";

/** brought: a token that came in the address; it is tried at once. */
export function SignInPage({ brought, done }: { brought: string | null; done: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(brought !== null);

  const enter = useCallback(async (tried: string) => {
    setBusy(true);
    setError(null);
    try {
      await signIn(tried);
      done();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }, [done]);
  useEffect(() => {
    if (brought !== null) void enter(brought);
  }, [brought, enter]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) void enter(token);
  };
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
