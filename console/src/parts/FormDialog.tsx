// A dialog with a form, the problem of its request, and its buttons.
import { Stack } from "@mantine/core";
import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { Dialog } from "./Dialog.tsx";
import { DialogFoot } from "./DialogFoot.tsx";
import { isAtFields } from "./faults.ts";
import { ProblemNote } from "./page.tsx";

interface FormDialogProps {
  title: string;
  close: () => void;
  act: { mutate: () => void; isPending: boolean; error: unknown; reset?: () => void };
  ready: boolean;
  /** Fields of the request whose faults the form shows beside them (faultsOf). */
  fields?: readonly string[];
  /** On the button that sends it. */
  submit: string;
  danger?: boolean;
  children: ReactNode;
}

const NO_FIELDS: readonly string[] = [];

export function FormDialog(props: FormDialogProps) {
  const { title, close, act, ready, fields = NO_FIELDS, submit, danger = false, children } = props;
  const form = useRef<HTMLFormElement>(null);
  const isShown = isAtFields(act.error, fields);
  useEffect(() => {
    if (isShown) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [isShown]);
  const go = (event: FormEvent) => {
    event.preventDefault();
    if (ready) act.mutate();
  };
  return (
    <Dialog onClose={close} title={title}>
      <form ref={form} onSubmit={go} onInput={() => isShown && act.reset?.()} noValidate>
        <Stack gap="sm">
          {children}
          {act.error !== null && !isShown && <ProblemNote error={act.error} />}
          <DialogFoot close={close} {...(danger ? { color: "red" } : {})} disabled={!ready} loading={act.isPending}>
            {submit}
          </DialogFoot>
        </Stack>
      </form>
    </Dialog>
  );
}
