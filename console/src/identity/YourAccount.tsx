// The own user in the settings: name, mail address, password, second factor, its end.
import { Button, Group, PasswordInput, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { post, put } from "../api/client.ts";
import { me as meQuery, sessions as sessionsQuery, signedOut, user as userQuery } from "../api/queries.ts";
import { signOutHere } from "../api/secret.ts";
import type { Profile } from "../api/types.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Facts, Id, Loaded, Panel } from "../parts/page.tsx";
import { needsPassword, PASSWORD_MIN, passwordFault, toProfileChange } from "./account.ts";
import { RemoveMember } from "./MemberDialogs.tsx";
import { roleName } from "./roles.ts";
import { RemoveFactor, SetUpFactor } from "./SecondFactor.tsx";

type Left = Profile["organisations"][number];
type Asked = "profile" | "password" | "factor" | "no factor" | "delete" | Left;

export function YourAccount() {
  const query = useQuery(userQuery);
  const [asked, ask] = useState<Asked | null>(null);
  const close = () => ask(null);
  return (
    <Panel title="Your account">
      <Loaded query={query}>
        {(user) => (
          <>
            <Said user={user} ask={ask} />
            {asked === "profile" && <ChangeProfile user={user} close={close} />}
            {asked === "password" && <ChangePassword user={user} close={close} />}
            {asked === "factor" && <SetUpFactor close={close} />}
            {asked === "delete" && <DeleteYourself user={user} close={close} />}
            {asked === "no factor" && <RemoveFactor close={close} />}
            {typeof asked === "object" && asked && <RemoveMember member={asked} leaves={asked} close={close} />}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Said({ user, ask }: { user: Profile; ask: (asked: Asked) => void }) {
  const row = (text: ReactNode, asks: Asked, label: string, about: string, disabled = false) => (
    <Group key={about} gap="sm" justify="space-between">
      <span>{text}</span>
      <Button variant="default" onClick={() => ask(asks)} disabled={disabled} aria-label={`${label} ${about}`}>
        {label}
      </Button>
    </Group>
  );
  const factor = user.has_second_factor
    ? `On, ${user.recovery_codes_left ?? 0} recovery codes left`
    : user.has_password
      ? "Off"
      : "Off: set a password first";
  return (
    <Facts
      rows={[
        ["Name", row(plain(user.name), "profile", "Change", "name and address")],
        [
          "Mail address",
          user.address === null
            ? row("None: needed to sign in with a password", "profile", "Set", "mail address")
            : plain(user.address),
        ],
        [
          "Password",
          row(
            user.has_password ? "Set" : user.address === null ? "None: set a mail address first" : "None",
            "password",
            user.has_password ? "Change" : "Set",
            "password",
            user.address === null,
          ),
        ],
        [
          "Second factor",
          user.has_second_factor
            ? row(factor, "no factor", "Remove", "second factor")
            : row(factor, "factor", "Set up", "second factor", !user.has_password),
        ],
        ...user.organisations.map(
          (one) =>
            [
              "Organisation",
              row(`${plain(one.name)}: ${one.role ? roleName(one.role) : "member"}`, one, "Leave", plain(one.name)),
            ] as const,
        ),
        ["User id", <Id key="id" id={user.id} />],
        ["Your user", row("Name, address, password and sessions can be erased", "delete", "Delete", "your user")],
      ]}
    />
  );
}

function ChangeProfile({ user, close }: { user: Profile; close: () => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState({ name: user.name, address: user.address ?? "", password: "" });
  const body = toProfileChange(draft, user);
  const act = useMutation({
    mutationFn: () => put<Profile>("/user", body),
    gcTime: 0,
    onSuccess: (now) => {
      client.setQueryData(userQuery.queryKey, now);
      void client.invalidateQueries({ queryKey: meQuery.queryKey });
      notifications.show({ message: "Your account is changed" });
      close();
    },
  });
  const told = faultsOf(act.error);
  return (
    <FormDialog
      title="Name and mail address"
      close={close}
      act={act}
      ready={body !== null}
      fields={["name", "address"]}
      submit="Change"
    >
      <TextInput
        label="Name"
        autoComplete="name"
        maxLength={100}
        value={draft.name}
        error={told.name}
        onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
        data-autofocus
      />
      <TextInput
        label="Mail address"
        description="You sign in with it."
        type="email"
        autoComplete="email"
        value={draft.address}
        error={told.address}
        onChange={(event) => setDraft({ ...draft, address: event.currentTarget.value })}
      />
      {needsPassword(draft, user) && (
        <PasswordInput
          label="Present password"
          description="Needed for another mail address."
          autoComplete="current-password"
          value={draft.password}
          onChange={(event) => setDraft({ ...draft, password: event.currentTarget.value })}
        />
      )}
    </FormDialog>
  );
}

function DeleteYourself({ user, close }: { user: Profile; close: () => void }) {
  const [typed, setTyped] = useState("");
  const [password, setPassword] = useState("");
  const act = useMutation({
    mutationFn: () => post("/user/delete", { name: typed, ...(user.has_password && { password }) }),
    gcTime: 0,
    onSuccess: () => {
      signOutHere();
      signedOut();
    },
  });
  const isReady = typed === user.name && (password !== "" || !user.has_password);
  return (
    <FormDialog title="Delete your user" close={close} act={act} ready={isReady} submit="Delete your user" danger>
      <Text size="sm">
        Name, mail address, password, second factor, identities and sessions are erased for good; your tokens stop at
        once. What your projects own stays. Where you are the only member, the projects go as well, once they are empty.
      </Text>
      {user.has_password && (
        <PasswordInput
          label="Present password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          data-autofocus
        />
      )}
      <TextInput
        label={`Type ${plain(user.name)} to confirm`}
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

function ChangePassword({ user, close }: { user: Profile; close: () => void }) {
  const client = useQueryClient();
  const [present, setPresent] = useState("");
  const [password, setPassword] = useState("");
  const fault = passwordFault(password);
  const act = useMutation({
    mutationFn: () => put("/user/password", { ...(user.has_password && { present }), password }),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: userQuery.queryKey });
      void client.invalidateQueries({ queryKey: sessionsQuery.queryKey });
      notifications.show({ message: "Your password is changed; other browsers are signed out" });
      close();
    },
  });
  const isReady = !fault && (present !== "" || !user.has_password);
  const title = user.has_password ? "Change the password" : "Set a password";
  return (
    <FormDialog title={title} close={close} act={act} ready={isReady} fields={["password"]} submit={title}>
      <Text size="sm">All other browsers that you are signed in with are signed out. Tokens stay.</Text>
      {user.has_password && (
        <PasswordInput
          label="Present password"
          autoComplete="current-password"
          value={present}
          onChange={(event) => setPresent(event.currentTarget.value)}
          data-autofocus
        />
      )}
      <PasswordInput
        label="New password"
        description={`At least ${PASSWORD_MIN} characters.`}
        autoComplete="new-password"
        value={password}
        error={(password && fault) || faultsOf(act.error).password}
        onChange={(event) => setPassword(event.currentTarget.value)}
        {...(user.has_password ? {} : { "data-autofocus": true })}
      />
    </FormDialog>
  );
}
