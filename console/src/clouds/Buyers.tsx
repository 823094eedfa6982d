// The dialog of who may have machines bought at a backend: projects with their caps and what each has spent.
import { Button, NativeSelect, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { put, remove } from "../api/client.ts";
import { people as accountsQuery, buyers as query } from "../api/queries.ts";
import type { CloudBackend, CloudBuyer } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { count, percent, plain } from "../parts/format.ts";
import { Empty, ProblemNote, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Meter } from "../parts/state.tsx";
import { type BuyerDraft, buyerCommand, capRatio, draftOfBuyer, NO_BUYER, ofCap, toBuyer } from "./clouds.ts";

interface Of {
  backend: CloudBackend;
  close: () => void;
}

export function Buyers({ backend, close }: Of) {
  const list = query(backend.name);
  const found = useQuery(list);
  const accounts = useQuery(accountsQuery).data ?? [];
  const [draft, setDraft] = useState<BuyerDraft>(NO_BUYER);
  const change = (part: Partial<BuyerDraft>) => setDraft({ ...draft, ...part });
  const account = draft.account || (accounts[0]?.id ?? "");
  const { body, faults } = toBuyer(draft);
  const path = `/backends/${encodeURIComponent(backend.name)}/buyers`;
  const nameOf = (id: string) => plain(accounts.find((one) => one.id === id)?.name ?? id);
  const isKnown = found.data?.some((one) => one.account_id === account) ?? false;
  const allow = useChange(() => put(`${path}/${encodeURIComponent(account)}`, body), {
    lists: [list],
    said: `${nameOf(account)} may buy at ${plain(backend.name)}`,
    close: () => setDraft(NO_BUYER),
  });
  const told = faultsOf(allow.error);
  const money = (name: "per_day" | "in_all", label: string) => (
    <TextInput
      label={`${label} (${plain(backend.caps.currency)})`}
      placeholder="no cap"
      inputMode="decimal"
      value={draft[name]}
      error={told[name] ?? (draft[name] ? faults[name] : undefined)}
      onChange={(event) => change({ [name]: event.currentTarget.value })}
    />
  );
  return (
    <FormDialog
      title={`Who may buy at ${plain(backend.name)}`}
      close={close}
      act={allow}
      ready={account !== "" && Object.keys(faults).length === 0}
      fields={["per_day", "in_all"]}
      submit={isKnown ? "Change its caps" : "Allow the project"}
    >
      <Text size="sm">
        Work of these projects has machines bought here when this market has no room. Each machine is for its project
        alone. What is spent is real money.
      </Text>
      {found.error ? (
        <ProblemNote error={found.error} retry={() => void found.refetch()} />
      ) : !found.data ? (
        <Waiting />
      ) : found.data.length === 0 ? (
        <Empty title="No project may buy here">Allow one below. Operators can still buy by hand.</Empty>
      ) : (
        <Stack gap="sm">
          {found.data.map((one) => (
            <Buyer
              key={one.account_id}
              buyer={one}
              backend={backend}
              edit={() => setDraft(draftOfBuyer(one))}
              list={list}
            />
          ))}
        </Stack>
      )}
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <NativeSelect
          label="Project"
          data={accounts.map((one) => ({ value: one.id, label: plain(one.name) }))}
          value={account}
          onChange={(event) => change({ account: event.currentTarget.value })}
          data-autofocus
        />
        {money("per_day", "Per day")}
        {money("in_all", "In all")}
      </SimpleGrid>
      <Same
        method="PUT"
        path={`${path}/${encodeURIComponent(account || "PROJECT")}`}
        body={body}
        command={buyerCommand(backend.name, account, body)}
      />
    </FormDialog>
  );
}

interface BuyerProps {
  buyer: CloudBuyer;
  backend: CloudBackend;
  edit: () => void;
  list: { queryKey: readonly unknown[] };
}

function Buyer({ buyer, backend, edit, list }: BuyerProps) {
  const name = plain(buyer.account ?? buyer.account_id);
  const path = `/backends/${encodeURIComponent(backend.name)}/buyers/${encodeURIComponent(buyer.account_id)}`;
  const stop = useChange(() => remove(path), {
    lists: [list],
    said: `${name} buys nothing more at ${plain(backend.name)}`,
  });
  const { currency } = backend.caps;
  return (
    <div data-testid="buyer">
      <div className="wr-buyer">
        <Text size="sm" fw={650} className="wr-break">
          {name}
          <span className="wr-quiet">
            {" "}
            {count(buyer.living)} {buyer.living === 1 ? "machine" : "machines"} now
          </span>
        </Text>
        <span>
          <Button variant="subtle" size="compact-sm" onClick={edit} aria-label={`Change the caps of ${name}`}>
            Change
          </Button>
          <Button
            variant="subtle"
            color="red"
            size="compact-sm"
            loading={stop.isPending}
            onClick={() => stop.mutate()}
            aria-label={`Disallow ${name}`}
          >
            Disallow
          </Button>
        </span>
      </div>
      <SimpleGrid cols={2} spacing="sm">
        <Spent name={`Today, ${name}`} word="today" used={buyer.spent_today} cap={buyer.per_day} currency={currency} />
        <Spent
          name={`In all, ${name}`}
          word="in all"
          used={buyer.spent_in_all}
          cap={buyer.in_all}
          currency={currency}
        />
      </SimpleGrid>
      {stop.error && <ProblemNote error={stop.error} />}
    </div>
  );
}

interface SpentProps {
  name: string;
  word: string;
  used: string;
  cap: string | null;
  currency: string;
}

function Spent({ name, word, used, cap, currency }: SpentProps) {
  const ratio = capRatio(used, cap);
  return (
    <div>
      <Text size="sm">
        {ofCap(used, cap, currency)} {word}
      </Text>
      {ratio !== null && <Meter ratio={ratio} text={percent(ratio)} label={name} />}
    </div>
  );
}
