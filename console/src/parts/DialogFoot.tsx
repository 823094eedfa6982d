// The buttons under a dialog's form.
import { Button, type ButtonProps, Group } from "@mantine/core";
import type { ReactNode } from "react";

/** Cancel, and the button that does it, which takes Mantine's properties of a button. */
export function DialogFoot({
  close,
  children,
  ...does
}: ButtonProps & { close: () => void; children: ReactNode; onClick?: () => void }) {
  return (
    <Group justify="flex-end">
      <Button variant="default" onClick={close}>
        Cancel
      </Button>
      <Button type="submit" {...does}>
        {children}
      </Button>
    </Group>
  );
}
