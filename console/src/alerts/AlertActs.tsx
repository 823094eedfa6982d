// What people do with an alert: acknowledge it, silence it for a while, comment on it, name who looks after it.
import { Autocomplete, Button, Group, Menu, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../api/client.ts";
import { me as meQuery } from "../api/queries.ts";
import type { Alert, WholeAlert } from "../api/types.ts";
import { nameOf } from "../identity/session.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { Same } from "../parts/Same.tsx";
import { operand, quoted } from "../parts/shell.ts";
import { showUndo } from "../parts/undo.tsx";
import { mayAct, SPANS } from "./alerts.ts";
import { useNames } from "./names.ts";

type Verb = "acknowledge" | "silence" | "unsilence" | "assign" | "comment";

export const pathOf = (alert: Pick<Alert, "id">, verb: Verb): string =>
  `/alerts/${encodeURIComponent(alert.id)}/${verb}`;

const refused = (failure: Error) => notifications.show({ color: "red", message: failure.message });

/** Reads alerts and inbox again: the bell does the same for what others do. */
export function useAlertsAgain(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["alerts"] });
}

export function useAlertAct(alert: Alert, verb: Verb, said: string, close?: () => void) {
  const again = useAlertsAgain();
  return useMutation({
    mutationFn: (body: object | undefined) => post<WholeAlert>(pathOf(alert, verb), body),
    onSuccess: () => {
      void again();
      if (said) notifications.show({ message: said });
      close?.();
    },
    ...(close ? {} : { onError: refused }),
  });
}

export function AlertActs({ alert, isSmall = false }: { alert: Alert; isSmall?: boolean }) {
  const roles = useQuery(meQuery).data?.roles ?? [];
  const [commenting, setCommenting] = useState(false);
  const acknowledge = useAlertAct(alert, "acknowledge", `You look after: ${plain(alert.title)}`);
  if (!mayAct(roles)) return null;
  const label = (verb: string) => ({ "aria-label": `${verb}: ${plain(alert.title)}` });
  const looks = isSmall ? ({ variant: "subtle", size: "compact-sm" } as const) : ({ variant: "default" } as const);
  return (
    <Group gap={4} justify="flex-end" wrap={isSmall ? "nowrap" : "wrap"}>
      {alert.state === "firing" && (
        <Button
          {...looks}
          {...(isSmall ? {} : { variant: "filled" })}
          loading={acknowledge.isPending}
          onClick={() => acknowledge.mutate({})}
          {...label("Acknowledge")}
        >
          Acknowledge
        </Button>
      )}
      {alert.state === "silenced" ? (
        <EndSilence alert={alert} looks={looks} label={label} />
      ) : (
        alert.state !== "resolved" && <SilenceMenu alert={alert} looks={looks} label={label} />
      )}
      {isSmall && (
        <Button {...looks} onClick={() => setCommenting(true)} {...label("Comment")}>
          Comment
        </Button>
      )}
      {commenting && <CommentDialog alert={alert} close={() => setCommenting(false)} />}
    </Group>
  );
}

interface SilenceProps {
  alert: Alert;
  looks: object;
  label: (verb: string) => object;
}

function EndSilence({ alert, looks, label }: SilenceProps) {
  const end = useAlertAct(alert, "unsilence", `Told again: ${plain(alert.title)}`);
  return (
    <Button {...looks} loading={end.isPending} onClick={() => end.mutate(undefined)} {...label("End the silence")}>
      End the silence
    </Button>
  );
}

function SilenceMenu({ alert, looks, label }: SilenceProps) {
  const again = useAlertsAgain();
  const end = async () => {
    await post(pathOf(alert, "unsilence"));
    await again();
  };
  const silence = useMutation({
    mutationFn: (span: (typeof SPANS)[number]) => post(pathOf(alert, "silence"), { duration_s: span[0] }),
    onSuccess: (_, [, name]) => {
      void again();
      showUndo(`Silenced for ${name}: ${plain(alert.title)}`, end);
    },
    onError: refused,
  });
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button {...looks} loading={silence.isPending} rightSection={<ChevronIcon size={12} />} {...label("Silence")}>
          Silence
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Tell nothing of it</Menu.Label>
        {SPANS.map((span) => (
          <Menu.Item key={span[0]} onClick={() => silence.mutate(span)}>
            For {span[1]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function CommentDialog({ alert, close }: { alert: Alert; close: () => void }) {
  const [text, setText] = useState("");
  const act = useAlertAct(alert, "comment", "The comment is in the alert's history", close);
  const body = { text: text.trim() };
  return (
    <FormDialog
      title={`Comment on: ${plain(alert.title)}`}
      close={close}
      act={{ ...act, mutate: () => act.mutate(body) }}
      ready={body.text !== ""}
      submit="Comment"
    >
      <Textarea
        label="Comment"
        autosize
        minRows={2}
        maxLength={2000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        data-autofocus
      />
      <Same
        method="POST"
        path={pathOf(alert, "comment")}
        body={body}
        command={`windrow alert comment ${operand(alert.id)} ${quoted(body.text || "TEXT")}`}
      />
    </FormDialog>
  );
}

export function Assign({ alert }: { alert: Alert }) {
  const me = useQuery(meQuery).data;
  const [asked, ask] = useState(false);
  const mine = me ? nameOf(me) : "";
  const toMe = useAlertAct(alert, "assign", "You look after this alert");
  if (!me || !mayAct(me.roles)) return null;
  return (
    <Group gap={4} wrap="nowrap" ml={-8}>
      {alert.assignee !== mine && (
        <Button
          variant="subtle"
          size="compact-sm"
          loading={toMe.isPending}
          onClick={() => toMe.mutate({ assignee: mine })}
        >
          Assign to me
        </Button>
      )}
      <Button variant="subtle" color="gray" size="compact-sm" onClick={() => ask(true)}>
        Assign
      </Button>
      {asked && <AssignDialog alert={alert} close={() => ask(false)} />}
    </Group>
  );
}

function AssignDialog({ alert, close }: { alert: Alert; close: () => void }) {
  const [name, setName] = useState(alert.assignee ?? "");
  const body = { assignee: name.trim() };
  const said = body.assignee ? `${plain(body.assignee)} looks after this alert` : "Nobody looks after this alert";
  const act = useAlertAct(alert, "assign", said, close);
  const known = [...new Set(Object.values(useNames()))];
  return (
    <FormDialog
      title="Who looks after it"
      close={close}
      act={{ ...act, mutate: () => act.mutate(body) }}
      ready
      fields={["assignee"]}
      submit="Assign"
    >
      <Autocomplete
        label="Name"
        description="Empty: nobody."
        data={known}
        maxLength={200}
        value={name}
        error={faultsOf(act.error).assignee}
        onChange={setName}
        data-autofocus
      />
      <Same
        method="POST"
        path={pathOf(alert, "assign")}
        body={body}
        command={`windrow alert assign ${operand(alert.id)} ${quoted(body.assignee)}`}
      />
    </FormDialog>
  );
}
