// The page of a password link: sets a new password, then asks to sign in with it.
import { Button, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { PASSWORD_LINK, post } from "../api/client.ts";
import { faultsOf, isAtFields } from "../parts/faults.ts";
import { ProblemNote } from "../parts/page.tsx";
import { PASSWORD_MIN, passwordFault } from "./account.ts";
import { Outside } from "./Outside.tsx";
import { SignInPage } from "./SignInPage.tsx";

export function PasswordPage({ secret, done }: { secret: string; done: () => void }) {
  const [password, setPassword] = useState("");
  const fault = passwordFault(password);
  const act = useMutation({ mutationFn: () => post(PASSWORD_LINK, { secret, password }) });
  if (act.isSuccess)
    return <SignInPage brought={null} me={null} done={done} note="Your password is changed. Sign in." />;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!fault) act.mutate();
  };
  return (
    <Outside>
      <Title order={1}>New password</Title>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <Text size="sm">All browsers that you are signed in with are signed out. Tokens stay.</Text>
          <PasswordInput
            label="New password"
            description={`At least ${PASSWORD_MIN} characters.`}
            autoComplete="new-password"
            value={password}
            error={(password && fault) || faultsOf(act.error).password}
            onChange={(event) => {
              setPassword(event.currentTarget.value);
              act.reset();
            }}
            autoFocus
          />
          <Button type="submit" size="sm" disabled={fault !== undefined} loading={act.isPending}>
            Change the password
          </Button>
          {act.error && !isAtFields(act.error, ["password"]) && <ProblemNote error={act.error} />}
        </Stack>
      </form>
    </Outside>
  );
}
