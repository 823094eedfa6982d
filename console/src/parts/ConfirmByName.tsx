// The dialog that acts only after the name of its object was typed.
import { Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { DialogFoot } from "./DialogFoot.tsx";
import { plain } from "./format.ts";
import { ProblemNote } from "./page.tsx";

interface Confirmed {
  title: string;
  /** Null: nothing that is typed confirms it. */
  name: string | null;
  button: string;
  act: { mutate: () => void; isPending: boolean; error: Error | null };
  /** True: the name need not be typed. */
  confirmed?: boolean;
  close: () => void;
  /** What happens, in words. */
  text: ReactNode;
  /** Further fields, and the same call elsewhere. */
  children: ReactNode;
}

export function ConfirmByName({ title, name, button, act, confirmed = false, close, text, children }: Confirmed) {
  const [typed, setTyped] = useState("");
  const ready = typed === name || confirmed;
  return (
    <Modal opened onClose={close} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) act.mutate();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{text}</Text>
          <TextInput
            label={`Type ${plain(name)} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
          {children}
          {act.error && <ProblemNote error={act.error} />}
          <DialogFoot close={close} color="red" disabled={!ready} loading={act.isPending}>
            {button}
          </DialogFoot>
        </Stack>
      </form>
    </Modal>
  );
}
