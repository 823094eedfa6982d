// The dialog that acts only after the name of its object was typed.
import { Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { FormDialog } from "./FormDialog.tsx";
import { plain } from "./format.ts";

interface Confirmed {
  title: string;
  /** Null: nothing is typed. */
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
  return (
    <FormDialog title={title} close={close} act={act} ready={typed === name || confirmed} submit={button} danger>
      <Text size="sm">{text}</Text>
      {name !== null && (
        <TextInput
          label={`Type ${plain(name)} to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
        />
      )}
      {children}
    </FormDialog>
  );
}
