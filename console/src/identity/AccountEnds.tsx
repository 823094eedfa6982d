// Two dialogs for operators: what is left of an account is moved or written off, a project gets another organisation.
import { Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../api/client.ts";
import { me as meQuery, people as peopleQuery, users as usersQuery } from "../api/queries.ts";
import type { Person } from "../api/types.ts";
import { operand, quoted } from "../clusters/request.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { money, plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";

interface Ends {
  person: Person;
  close: () => void;
}

function useChange(path: string, body: unknown, said: string, close: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => post<Person>(path, body),
    onSuccess: () => {
      for (const { queryKey } of [peopleQuery, usersQuery, meQuery]) void client.invalidateQueries({ queryKey });
      notifications.show({ message: said });
      close();
    },
  });
}

function Field({ label, text, set }: { label: string; text: string; set: (text: string) => void }) {
  return (
    <TextInput
      label={label}
      autoComplete="off"
      maxLength={400}
      value={text}
      onChange={(event) => set(event.currentTarget.value)}
    />
  );
}

export function Settle({ person, close }: Ends) {
  const [to, setTo] = useState("");
  const [reason, setReason] = useState("");
  const path = `/accounts/${encodeURIComponent(person.id)}/settle`;
  const body = { reason: reason.trim(), ...(to.trim() && { to: to.trim() }) };
  const name = plain(person.name);
  const act = useChange(path, body, `${name} has no money left`, close);
  const words = [...(body.to ? [`--to ${operand(body.to)}`] : []), `--reason ${quoted(body.reason || "WHY")}`];
  return (
    <FormDialog
      title={`Settle ${name}`}
      close={close}
      act={act}
      ready={body.reason !== ""}
      submit={body.to ? "Move the money" : "Write it off"}
      danger
    >
      <Text size="sm">
        {money(person.balance.amount, person.balance.currency)} are left. They move to another project of its
        organisation; without one they are written off. Nothing of it may run.
      </Text>
      <Field label="Move to the project" text={to} set={setTo} />
      <Field label="Reason" text={reason} set={setReason} />
      <Same
        method="POST"
        path={path}
        body={body}
        command={`windrow credit settle ${operand(person.id)} ${words.join(" ")}`}
      />
    </FormDialog>
  );
}

export function TransferAccount({ person, close }: Ends) {
  const [organisation, setOrganisation] = useState("");
  const [reason, setReason] = useState("");
  const path = `/accounts/${encodeURIComponent(person.id)}/transfer`;
  const body = { organisation: organisation.trim(), reason: reason.trim() };
  const name = plain(person.name);
  const act = useChange(path, body, `${name} belongs to ${plain(body.organisation)} now`, close);
  const words = `--to ${operand(body.organisation || "ORG")} --reason ${quoted(body.reason || "WHY")}`;
  return (
    <FormDialog
      title={`Transfer ${name}`}
      close={close}
      act={act}
      ready={body.organisation !== "" && body.reason !== ""}
      submit="Transfer"
      danger
    >
      <Text size="sm">
        The project goes to another organisation with its money, hosts and all else, without an offer. All of its
        members and tokens until now end.
      </Text>
      <Field label="Organisation" text={organisation} set={setOrganisation} />
      <Field label="Reason" text={reason} set={setReason} />
      <Same
        method="POST"
        path={path}
        body={body}
        command={`windrow account transfer ${operand(person.id)} ${words} --yes`}
      />
    </FormDialog>
  );
}
