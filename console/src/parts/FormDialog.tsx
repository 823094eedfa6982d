// A dialog with a form, the problem of its request, and its buttons.
import { Stack } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import { Dialog } from "./Dialog.tsx";
import { DialogFoot } from "./DialogFoot.tsx";
import { ProblemNote } from "./page.tsx";

interface FormDialogProps {
  title: string;
  close: () => void;
  act: { mutate: () => void; isPending: boolean; error: unknown };
  ready: boolean;
  /** On the button that sends it. */
  submit: string;
  danger?: boolean;
  children: ReactNode;
}

export function FormDialog({ title, close, act, ready, submit, danger = false, children }: FormDialogProps) {
  const go = (event: FormEvent) => {
    event.preventDefault();
    if (ready) act.mutate();
  };
  return (
    <Dialog onClose={close} title={title}>
      <form onSubmit={go} noValidate>
        <Stack gap="sm">
          {children}
          {act.error !== null && <ProblemNote error={act.error} />}
          <DialogFoot close={close} {...(danger ? { color: "red" } : {})} disabled={!ready} loading={act.isPending}>
            {submit}
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}
