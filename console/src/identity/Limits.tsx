// Spending limits: how much of them is used, the fields of a form, and the dialog that sets them.
import { Group, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { put, remove } from "../api/client.ts";
import { limitsOf, limits as limitsQuery } from "../api/queries.ts";
import type { SpendingLimit } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { DASH, plain } from "../parts/format.ts";
import { Loaded } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Meter, State } from "../parts/state.tsx";
import type { Column } from "../tables/table.ts";
import {
  draftOfLimits,
  isEmpty,
  LIMIT_KINDS,
  type LimitsDraft,
  type LimitsFaults,
  limitCommand,
  limitsPath,
  limitsText,
  type Spender,
  toLimits,
  usedLimits,
  usedText,
} from "./limits.ts";

type Limits = ReadonlyMap<string, SpendingLimit>;

/** The limits that the user sees, by the ids of whose they are. */
export function useLimits(): Limits {
  const rows = useQuery(limitsQuery).data;
  return useMemo(() => new Map((rows ?? []).map((row) => [row.id, row])), [rows]);
}

/** The column of a list whose rows may have limits. */
export const limitsColumn = <Row,>(limits: Limits, id: (row: Row) => string): Column<Row> => ({
  id: "limits",
  name: "Spent / limit",
  value: (row) => limitsText(limits.get(id(row))),
  cell: (row) => <UsedLimits limit={limits.get(id(row))} />,
});

function UsedLimits({ limit }: { limit: SpendingLimit | undefined }) {
  const used = usedLimits(limit);
  if (used.length === 0) return <>{DASH}</>;
  return (
    <Stack gap={2} className="wr-meter-wide" miw={200}>
      {used.map(({ label, text, share, held }) => (
        <div key={label}>
          <Group justify="space-between" gap={6}>
            <Text size="xs" className="wr-quiet" span>
              {label}
              {held && `, ${held} set aside`}
            </Text>
            {share === 1 && <State state="reached" tone="warn" />}
          </Group>
          <Meter ratio={share} text={text} label={label} />
        </div>
      ))}
    </Stack>
  );
}

interface FieldsProps {
  /** What is used so far. */
  now?: SpendingLimit;
  draft: LimitsDraft;
  change: (draft: LimitsDraft) => void;
  faults: LimitsFaults;
}

function LimitFields({ now, draft, change, faults }: FieldsProps) {
  return (
    <>
      {LIMIT_KINDS.map((kind, index) => {
        const { field, label, hint } = kind;
        return (
          <TextInput
            key={field}
            label={label}
            description={now && kind.used ? `${hint} Used: ${usedText(kind, now)}.` : hint}
            placeholder="no limit"
            autoComplete="off"
            inputMode="decimal"
            maxLength={30}
            value={draft[field]}
            error={faults[field]}
            onChange={(event) => change({ ...draft, [field]: event.currentTarget.value })}
            data-autofocus={(now && index === 0) || undefined}
          />
        );
      })}
    </>
  );
}

/** Behind a heading, in a form that makes what may be limited. */
export function MoreLimits(props: FieldsProps) {
  return (
    <details className="wr-details">
      <summary>Spending limits</summary>
      <Stack gap="sm">
        <LimitFields {...props} />
      </Stack>
    </details>
  );
}

export function SetLimits({ spender, close }: { spender: Spender; close: () => void }) {
  const query = useQuery(limitsOf(limitsPath(spender)));
  if (query.data) return <ChangeLimits spender={spender} now={query.data} close={close} />;
  return (
    <Dialog onClose={close} title={titleOf(spender)}>
      <Loaded query={query}>{() => null}</Loaded>
    </Dialog>
  );
}

const titleOf = ({ name }: Spender): string => `Spending limits of ${plain(name)}`;

function ChangeLimits({ spender, now, close }: { spender: Spender; now: SpendingLimit; close: () => void }) {
  const [draft, setDraft] = useState(() => draftOfLimits(now));
  const { body, faults } = toLimits(draft);
  const [path, ends] = [limitsPath(spender), isEmpty(body)];
  const said = `The spending of ${plain(spender.name)} ${ends ? "is not limited any more" : "is limited"}`;
  const passed = LIMIT_KINDS.some(
    ({ field, used, holds }) => holds && used && draft[field] !== "" && Number(draft[field]) <= Number(now[used]),
  );
  const act = useChange(() => (ends ? remove(path) : put(path, body)), { lists: [limitsQuery], said, close });
  return (
    <FormDialog
      title={titleOf(spender)}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0 && !(ends && now.updated_at === null)}
      fields={LIMIT_KINDS.map(({ field }) => field)}
      danger={passed}
      submit={
        passed
          ? "Set the limits and end what runs"
          : ends && now.updated_at !== null
            ? "Remove the limits"
            : "Set the limits"
      }
    >
      <Text size="sm">
        A request that would pass a limit is refused. What runs is ended before it passes a limit per month or in all.
        Leave a field empty for no limit.
      </Text>
      <LimitFields now={now} draft={draft} change={setDraft} faults={{ ...faultsOf(act.error), ...faults }} />
      {passed && (
        <Text size="sm" className="wr-tone-bad" role="status">
          This is no more than what is used already: what runs is ended at once.
        </Text>
      )}
      <Same
        method={ends ? "DELETE" : "PUT"}
        path={path}
        body={ends ? undefined : body}
        command={limitCommand(spender, body)}
      />
    </FormDialog>
  );
}
