// The page of an invitation's link: shows what it gives; a new user, or the one who is signed in, accepts it.
import { Button, Group, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { INVITATION_ACCEPT, post } from "../api/client.ts";
import { invitationOf } from "../api/queries.ts";
import type { InvitationOpened, Me, Organisation, SignedIn } from "../api/types.ts";
import { faultsOf, isAtFields } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Facts, Loaded, ProblemNote } from "../parts/page.tsx";
import { When } from "../parts/state.tsx";
import { PASSWORD_MIN, toNewUser } from "./account.ts";
import { CommandLine } from "./CommandLine.tsx";
import { Outside } from "./Outside.tsx";
import { projectsText, roleName } from "./roles.ts";
import { SignInPage } from "./SignInPage.tsx";
import { nameOf, needsCode, readAgain, use } from "./session.ts";

export function InvitationPage({ secret, me, done }: { secret: string; me: Me | null; done: () => void }) {
  const query = useQuery(invitationOf(secret));
  const [isSigningIn, setSigningIn] = useState(false);
  if (isSigningIn && me === null)
    return (
      <SignInPage
        brought={null}
        me={null}
        done={() => setSigningIn(false)}
        note="Sign in; then you can accept the invitation."
      />
    );
  return (
    <Outside>
      <Title order={1}>Invitation</Title>
      <Loaded query={query}>
        {(invitation) => (
          <>
            <Given invitation={invitation} />
            {me !== null && <Join secret={secret} me={me} invitation={invitation} done={done} />}
            <NewUser secret={secret} invitation={invitation} done={done} isOther={me !== null} />
            <CommandLine invitation={secret}>
              Or accept on the command line: this installs <code>windrow</code> and asks for the same.
            </CommandLine>
          </>
        )}
      </Loaded>
      <Group>
        {me === null ? (
          <Button variant="subtle" color="gray" px={0} onClick={() => setSigningIn(true)}>
            I have a user: sign in first
          </Button>
        ) : (
          <Button variant="subtle" color="gray" px={0} onClick={done}>
            Go on without accepting
          </Button>
        )}
      </Group>
    </Outside>
  );
}

function Given({ invitation }: { invitation: InvitationOpened }) {
  return (
    <Facts
      rows={[
        ["Organisation", plain(invitation.organisation)],
        ["Role in it", invitation.role ? roleName(invitation.role) : "Member"],
        ["Projects", projectsText(invitation.projects)],
        ["For", invitation.address === null ? "Whoever has the link" : plain(invitation.address)],
        ["Expires", <When key="e" at={invitation.expires_at} />],
      ]}
    />
  );
}

interface JoinProps {
  secret: string;
  me: Me;
  invitation: InvitationOpened;
  done: () => void;
}

function Join({ secret, me, invitation, done }: JoinProps) {
  const act = useMutation({
    mutationFn: () => post<Organisation>("/invitation/join", { secret }),
    onSuccess: async () => {
      await readAgain();
      const message = `You are a member of ${plain(invitation.organisation)}. Its projects are in the menu at the top.`;
      notifications.show({ message });
      done();
    },
  });
  if (me.user === null) return null; // a project's own token accepts nothing
  return (
    <Stack gap="sm">
      <Text size="sm">
        You are signed in as <strong>{plain(nameOf(me))}</strong>.
      </Text>
      <Button size="sm" loading={act.isPending} onClick={() => act.mutate()}>
        Accept as {plain(nameOf(me))}
      </Button>
      {act.error && <ProblemNote error={act.error} />}
    </Stack>
  );
}

interface NewUserProps {
  secret: string;
  invitation: InvitationOpened;
  /** Somebody is signed in: the new user is another one. */
  isOther: boolean;
  done: () => void;
}

function NewUser({ secret, invitation, isOther, done }: NewUserProps) {
  const [draft, setDraft] = useState({ name: "", address: "", password: "" });
  const [code, setCode] = useState<string | null>(null);
  const { body, faults } = toNewUser(secret, draft, invitation.address);
  const isReady = Object.keys(faults).length === 0 && code !== "";
  const act = useMutation({
    mutationFn: async () => use(await post<SignedIn>(INVITATION_ACCEPT, { ...body, ...(code && { code }) })),
    gcTime: 0,
    onSuccess: done,
    onError: (failure) => needsCode(failure) && setCode((before) => before ?? ""),
  });
  const told = faultsOf(act.error);
  const isShown = isAtFields(act.error, ["name", "address", "password"]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) act.mutate();
  };
  return (
    <form onSubmit={submit} onInput={() => isShown && act.reset()} noValidate aria-label="New user">
      <Stack gap="sm">
        <Text size="sm">
          {isOther ? "Or accept as a new user:" : "Choose how you will sign in from now on."} Who has a user here gives
          its address and password.
        </Text>
        <TextInput
          label="Your name"
          autoComplete="name"
          maxLength={100}
          value={draft.name}
          error={told.name}
          onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
        />
        <TextInput
          label="Mail address"
          type="email"
          autoComplete="username"
          readOnly={invitation.address !== null}
          description={invitation.address === null ? "You sign in with it." : "The invitation is for this address."}
          value={invitation.address ?? draft.address}
          error={told.address ?? (draft.password && faults.address)}
          onChange={(event) => setDraft({ ...draft, address: event.currentTarget.value })}
        />
        <PasswordInput
          label="Password"
          description={`At least ${PASSWORD_MIN} characters.`}
          autoComplete="new-password"
          value={draft.password}
          error={(draft.password && faults.password) || told.password}
          onChange={(event) => setDraft({ ...draft, password: event.currentTarget.value })}
        />
        {code !== null && (
          <TextInput
            label="Code"
            description="There is a user with this address: a code of its app, or a recovery code."
            autoComplete="one-time-code"
            value={code}
            onChange={(event) => setCode(event.currentTarget.value.trim())}
          />
        )}
        <Button
          type="submit"
          size="sm"
          variant={isOther ? "default" : "filled"}
          disabled={!isReady}
          loading={act.isPending}
        >
          {isOther ? "Accept as a new user" : "Accept and sign in"}
        </Button>
        {act.error && !needsCode(act.error) && !isShown && <ProblemNote error={act.error} />}
      </Stack>
    </form>
  );
}
