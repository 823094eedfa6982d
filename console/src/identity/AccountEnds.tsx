// Two dialogs for operators: what is left of an account is moved or written off, a project gets another organisation.
import { Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { post } from "../api/client.ts";
import { me as meQuery, people as peopleQuery, users as usersQuery } from "../api/queries.ts";
import type { Person } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { money, plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import { operand, quoted } from "../parts/shell.ts";

interface Ends {
  person: Person;
  close: () => void;
}

const LISTS = [peopleQuery, usersQuery, meQuery];

interface FieldProps {
  label: string;
  description?: string;
  text: string;
  set: (text: string) => void;
  "data-autofocus"?: boolean;
}

function Field({ text, set, ...words }: FieldProps) {
  return (
    <TextInput
      {...words}
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
  const act = useChange(() => post(path, body), { lists: LISTS, said: `${name} has no money left`, close });
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
        {name} has {money(person.balance.amount, person.balance.currency)} left. Nothing of the account may run.
      </Text>
      <Field
        label="Move to the project"
        description="Name or id, of the same organisation. Empty: the money is written off."
        text={to}
        set={setTo}
        data-autofocus
      />
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
  const said = `${name} belongs to ${plain(body.organisation)} now`;
  const act = useChange(() => post(path, body), { lists: LISTS, said, close });
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
        The project goes to another organisation with its money, hosts and all else, without an offer. Its present
        members and tokens end.
      </Text>
      <Field label="Organisation" description="Name or id" text={organisation} set={setOrganisation} data-autofocus />
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
