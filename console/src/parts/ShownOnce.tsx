// The dialog that shows a secret this once: a link, a token.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { cli as cliQuery } from "../api/queries.ts";
import { Dialog } from "./Dialog.tsx";
import { plain } from "./format.ts";
import { Command } from "./page.tsx";
import { When } from "./state.tsx";

interface ShownOnceProps {
  title: string;
  /** The name of the secret, for those who hear it alone. */
  label: string;
  secret: string;
  close: () => void;
  children: ReactNode;
  /** Below the secret. */
  note?: ReactNode;
}

export function ShownOnce({ title, label, secret, close, children, note }: ShownOnceProps) {
  return (
    <Dialog onClose={close} title={title} closeOnClickOutside={false}>
      <Stack gap="sm">
        <Text size="sm">{children}</Text>
        <Command text={secret} label={label} />
        {note && (
          <Text size="sm" className="wr-quiet">
            {note}
          </Text>
        )}
        <Group justify="flex-end">
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

interface LinkShownProps {
  title: string;
  label: string;
  link: string;
  until: string;
  close: () => void;
  /** Who gets it, and what it opens. */
  children: ReactNode;
}

export function LinkShown({ link, until, ...rest }: LinkShownProps) {
  const beware = useQuery(cliQuery).data?.link_note;
  const note = (
    <>
      It is shown only now, works once and expires <When at={until} />.
      {beware && (
        <span className="wr-note" role="note" style={{ marginTop: 8 }}>
          <span>{plain(beware)}</span>
        </span>
      )}
    </>
  );
  return <ShownOnce secret={link} note={note} {...rest} />;
}

export function TokenShown({ title, token, close }: { title: string; token: string; close: () => void }) {
  return (
    <ShownOnce title={title} label="token" secret={token} close={close}>
      Copy it now: you will not see it again.
    </ShownOnce>
  );
}
