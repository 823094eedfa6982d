// The sign-in page: by an identity provider, by mail address and password, by a token, or by a link of an operator.
import { Button, Group, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import { PASSWORD_FORGOTTEN, post } from "../api/client.ts";
import { signInProviders } from "../api/queries.ts";
import type { Me, SignedIn } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Command, ProblemNote } from "../parts/page.tsx";
import { Outside } from "./Outside.tsx";
import { leaveToSignIn } from "./providerFlow.ts";
import { begin, beginByPassword, discard, type Entry, isSame, nameOf, needsCode, use, whoIs } from "./session.ts";

interface SignInProps {
  /** A secret of the address; it is tried at once. */
  brought: Entry | null;
  /** Who is signed in already, if anybody. */
  me: Me | null;
  done: () => void;
  /** A line above the form. */
  note?: string | null;
}

export function SignInPage({ brought, me, done, note }: SignInProps) {
  const [other, setOther] = useState<{ session: SignedIn; who: Me } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(brought !== null);
  const tried = useRef<Entry | null>(null);
  // A link works once: not before its person says so.
  const [meant, setMeant] = useState(me === null || brought?.kind !== "link");

  const enter = useCallback(
    async (entered: Entry) => {
      setBusy(true);
      setError(null);
      try {
        const session = await begin(entered);
        if (brought?.kind !== "link" && me !== null) {
          // A link of somebody else's must not quietly put this browser into their account.
          const who = await whoIs(session);
          if (!isSame(me, who)) return setOther({ session, who });
        }
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

  if (me !== null && !meant) return <OtherAccount from={nameOf(me)} to={null} go={() => setMeant(true)} stay={done} />;
  if (me !== null && other !== null) {
    const stay = async () => {
      await discard(other.session).catch(() => undefined); // it ends unused in three days by itself
      done();
    };
    const go = () => void use(other.session).then(done);
    return <OtherAccount from={nameOf(me)} to={nameOf(other.who)} go={go} stay={() => void stay()} />;
  }
  return (
    <Outside>
      <Title order={1}>Sign in</Title>
      {note && (
        <Text size="sm" role="status">
          {note}
        </Text>
      )}
      {error !== null && <ProblemNote error={error} />}
      <Providers />
      <Ways first={brought?.kind === "token" ? "token" : "password"} enter={enter} busy={busy} done={done} />
      <Text size="sm" className="wr-quiet">
        Did you start this market? Open the address that <code>windrow up</code> printed, or run{" "}
        <code>windrow open</code> on its machine: either signs you in.
      </Text>
    </Outside>
  );
}

/** The identity providers, if there are any. */
function Providers() {
  const query = useQuery(signInProviders);
  const act = useMutation({ mutationFn: (name: string) => leaveToSignIn(name) });
  if (!query.data?.length) return null;
  return (
    <Stack gap="xs">
      {query.data.map(({ name }) => (
        <Button key={name} variant="default" size="sm" loading={act.isPending} onClick={() => act.mutate(name)}>
          Continue with {plain(name)}
        </Button>
      ))}
      {act.error && <ProblemNote error={act.error} />}
    </Stack>
  );
}

interface WaysProps {
  first: "password" | "token";
  enter: (entered: Entry) => Promise<void>;
  busy: boolean;
  done: () => void;
}

type Way = WaysProps["first"] | "forgotten";

const OTHER_WAYS: Readonly<Record<Way, readonly (readonly [Way, string])[]>> = {
  password: [
    ["forgotten", "Forgot the password"],
    ["token", "Use a token instead"],
  ],
  token: [["password", "Use a password instead"]],
  forgotten: [["password", "Back to the sign-in"]],
};

function Ways({ first, enter, busy, done }: WaysProps) {
  const [way, setWay] = useState<Way>(first);
  return (
    <>
      {way === "password" && <ByPassword done={done} busy={busy} />}
      {way === "token" && <ByToken enter={enter} busy={busy} />}
      {way === "forgotten" && <Forgotten />}
      <Group gap="lg">
        {OTHER_WAYS[way].map(([other, label]) => (
          <Button key={other} variant="subtle" color="gray" px={0} onClick={() => setWay(other)} disabled={busy}>
            {label}
          </Button>
        ))}
      </Group>
    </>
  );
}

function ByPassword({ done, busy }: { done: () => void; busy: boolean }) {
  const [address, setAddress] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState<string | null>(null);
  const act = useMutation({
    mutationFn: async () => use(await beginByPassword(address, password, code ?? "")),
    gcTime: 0,
    onSuccess: done,
    onError: (failure) => needsCode(failure) && setCode((before) => before ?? ""),
  });
  const isReady = address.trim() !== "" && password !== "" && code !== "";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) act.mutate();
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <TextInput
          label="Mail address"
          type="email"
          autoComplete="username"
          value={address}
          onChange={(event) => setAddress(event.currentTarget.value)}
          autoFocus
          disabled={busy}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          disabled={busy}
        />
        {code !== null && (
          <TextInput
            label="Code"
            description="Of your authenticator app, or a recovery code."
            autoComplete="one-time-code"
            autoCapitalize="off"
            spellCheck={false}
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
            autoFocus
          />
        )}
        <Button type="submit" size="sm" loading={busy || act.isPending} disabled={!isReady && !busy && !act.isPending}>
          Sign in
        </Button>
        {act.error && !needsCode(act.error) && <ProblemNote error={act.error} />}
      </Stack>
    </form>
  );
}

/** Asks for a link to a new password. The answer does not tell whether there is such a user, nor does this. */
function Forgotten() {
  const [address, setAddress] = useState("");
  const act = useMutation({ mutationFn: () => post(PASSWORD_FORGOTTEN, { address: address.trim() }) });
  if (act.isSuccess)
    return (
      <Text size="sm" role="status">
        If there is a user with this address, a mail with a link to a new password is on its way. The link works once,
        for half an hour.
      </Text>
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (address.includes("@")) act.mutate();
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <TextInput
          label="Mail address"
          description="You get a mail with a link to a new password."
          type="email"
          autoComplete="username"
          value={address}
          onChange={(event) => setAddress(event.currentTarget.value)}
          autoFocus
        />
        <Button type="submit" size="sm" loading={act.isPending} disabled={!address.includes("@")}>
          Send the link
        </Button>
        {act.error && <ProblemNote error={act.error} />}
      </Stack>
    </form>
  );
}

function ByToken({ enter, busy }: { enter: (entered: Entry) => Promise<void>; busy: boolean }) {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) void enter({ kind: "token", text: token });
  };
  return (
    <>
      <form onSubmit={submit}>
        <Stack gap="sm">
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
        </Stack>
      </form>
      <Stack gap={6}>
        <Text size="sm" className="wr-quiet">
          No token at hand? On the machine that runs <code>windrow up</code>, this makes one:
        </Text>
        <Command text="windrow token add browser" label="command that makes a token" />
      </Stack>
    </>
  );
}

/** to: who the link signs in; null: that shows only when it is used up. */
function OtherAccount({ from, to, go, stay }: { from: string; to: string | null; go: () => void; stay: () => void }) {
  return (
    <main style={{ maxWidth: 420, margin: "0 auto", padding: "14vh 20px 0" }}>
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
