// The dialog that shows a link with a secret, this once.
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Command } from "./page.tsx";
import { When } from "./state.tsx";

interface LinkShownProps {
  title: string;
  /** The name of the link, for those who hear it alone. */
  label: string;
  link: string;
  until: string;
  close: () => void;
  /** Who gets it, and what it opens. */
  children: ReactNode;
}

export function LinkShown({ title, label, link, until, close, children }: LinkShownProps) {
  return (
    <Modal opened onClose={close} title={title} closeOnClickOutside={false}>
      <Stack gap="sm">
        <Text size="sm">{children}</Text>
        <Command text={link} label={label} />
        <Text size="sm" className="wr-quiet">
          It is shown only now, works once and expires <When at={until} />.
        </Text>
        <Group justify="flex-end">
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
