// The dialogs of the second factor: an authenticator app is set up in three steps, or removed.
import { Button, CopyButton, Group, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { encode } from "uqr";
import { post, put } from "../api/client.ts";
import { sessions as sessionsQuery, user as userQuery } from "../api/queries.ts";
import type { Factor, RecoveryCodes } from "../api/types.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { DialogFoot } from "../parts/DialogFoot.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { DownloadIcon } from "../parts/icons.tsx";
import { Command, ProblemNote } from "../parts/page.tsx";
import { keep } from "../tables/Csv.tsx";
import { codesFile, inFours } from "./account.ts";

const CODE_MIN = 6;

/** The user is read again: whether there is a second factor has changed, and other sessions have ended. */
function useAfter(): () => void {
  const client = useQueryClient();
  return () => {
    void client.invalidateQueries({ queryKey: userQuery.queryKey });
    void client.invalidateQueries({ queryKey: sessionsQuery.queryKey });
  };
}

export function SetUpFactor({ close }: { close: () => void }) {
  const [password, setPassword] = useState("");
  const begin = useMutation({ mutationFn: () => post<Factor>("/user/second-factor", { password }), gcTime: 0 });
  if (begin.data) return <Confirm factor={begin.data} close={close} />;
  return (
    <FormDialog
      title="Set up a second factor"
      close={close}
      act={begin}
      ready={password !== ""}
      submit="Show the QR code"
    >
      <Text size="sm">After your password, signing in then asks for a code of an authenticator app on your phone.</Text>
      <PasswordInput
        label="Present password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
        data-autofocus
      />
    </FormDialog>
  );
}

function Confirm({ factor, close }: { factor: Factor; close: () => void }) {
  const [code, setCode] = useState("");
  const after = useAfter();
  const act = useMutation({
    mutationFn: () => put<RecoveryCodes>("/user/second-factor", { code: code.trim() }),
    gcTime: 0,
    onSuccess: after,
  });
  if (act.data) return <Codes codes={act.data.recovery_codes} close={close} />;
  const isReady = code.trim().length >= CODE_MIN;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) act.mutate();
  };
  return (
    <Dialog onClose={close} title="Scan the code" closeOnClickOutside={false}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <Text size="sm">Scan this with the authenticator app, or type the secret below it into the app.</Text>
          <QrCode text={factor.uri} />
          <Command text={inFours(factor.secret)} label="secret" />
          <TextInput
            label="Code"
            description="The six digits that the app shows now."
            inputMode="numeric"
            autoComplete="one-time-code"
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
            data-autofocus
          />
          {act.error && <ProblemNote error={act.error} />}
          <DialogFoot close={close} disabled={!isReady} loading={act.isPending}>
            Turn it on
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}

/** Dark on white in both schemes: cameras read no other. */
function QrCode({ text }: { text: string }) {
  const { size, path } = useMemo(() => {
    const { data, size } = encode(text, { border: 3 });
    const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join("");
    return { size, path };
  }, [text]);
  return (
    <svg role="img" aria-label="QR code with the secret" viewBox={`0 0 ${size} ${size}`} className="wr-qr">
      <path d={`M0 0h${size}v${size}H0z`} fill="#fff" />
      <path d={path} fill="#000" shapeRendering="crispEdges" />
    </svg>
  );
}

/** The recovery codes, this once. */
function Codes({ codes, close }: { codes: readonly string[]; close: () => void }) {
  const save = () => keep(new Blob([codesFile(codes)], { type: "text/plain;charset=utf-8" }), "windrow-codes.txt");
  return (
    <Dialog onClose={close} title="Keep these codes" closeOnClickOutside={false} closeOnEscape={false}>
      <Stack gap="sm">
        <Text size="sm">
          The second factor is on. Keep these codes where your phone is not: each works once, in place of a code of the
          app. They are shown only now.
        </Text>
        <div className="wr-command">
          <pre tabIndex={0} role="region" aria-label="recovery codes">
            {codes.join("\n")}
          </pre>
        </div>
        <Group justify="flex-end">
          <CopyButton value={codes.join("\n")} timeout={1500}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy}>
                {copied ? "Copied" : "Copy"}
              </Button>
            )}
          </CopyButton>
          <Button variant="default" leftSection={<DownloadIcon size={14} />} onClick={save}>
            Download
          </Button>
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

export function RemoveFactor({ close }: { close: () => void }) {
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const after = useAfter();
  const act = useMutation({
    mutationFn: () => post("/user/second-factor/remove", { password, code: code.trim() }),
    onSuccess: () => {
      after();
      notifications.show({ message: "The second factor is removed" });
      close();
    },
  });
  return (
    <FormDialog
      title="Remove the second factor"
      close={close}
      act={act}
      ready={password !== "" && code.trim().length >= CODE_MIN}
      submit="Remove"
      danger
    >
      <Text size="sm">Signing in then asks for your password alone. Recovery codes stop working.</Text>
      <PasswordInput
        label="Present password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
        data-autofocus
      />
      <TextInput
        label="Code"
        description="Of your authenticator app, or a recovery code."
        autoComplete="one-time-code"
        value={code}
        onChange={(event) => setCode(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
