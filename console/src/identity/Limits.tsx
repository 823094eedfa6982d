// Spending limits: how much of them is used, the fields of a form, and the dialog that sets them.
import { Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { put, remove } from "../api/client.ts";
import { limits as limitsQuery } from "../api/queries.ts";
import type { SpendingLimit } from "../api/types.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { DASH, plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import { Meter } from "../parts/state.tsx";
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
      {used.map(({ label, text, share }) => (
        <span key={label}>
          <Text size="xs" className="wr-quiet" span>
            {label}
          </Text>
          <Meter ratio={share} text={text} label={label} />
        </span>
      ))}
    </Stack>
  );
}

interface FieldsProps {
  draft: LimitsDraft;
  change: (draft: LimitsDraft) => void;
  faults: LimitsFaults;
}

export function LimitFields({ draft, change, faults }: FieldsProps) {
  return (
    <>
      {LIMIT_KINDS.map(({ field, label, hint }) => (
        <TextInput
          key={field}
          label={`Limit: ${label.toLowerCase()}`}
          description={hint}
          placeholder="no limit"
          autoComplete="off"
          inputMode="decimal"
          maxLength={30}
          value={draft[field]}
          error={faults[field]}
          onChange={(event) => change({ ...draft, [field]: event.currentTarget.value })}
        />
      ))}
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
  const client = useQueryClient();
  const [draft, setDraft] = useState(draftOfLimits(useLimits().get(spender.id)));
  const { body, faults } = toLimits(draft);
  const path = limitsPath(spender);
  const act = useMutation({
    mutationFn: () => (isEmpty(body) ? remove(path) : put<SpendingLimit>(path, body)),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: limitsQuery.queryKey });
      const said = isEmpty(body) ? "is not limited any more" : "is limited";
      notifications.show({ message: `The spending of ${plain(spender.name)} ${said}` });
      close();
    },
  });
  return (
    <FormDialog
      title={`Spending limits of ${plain(spender.name)}`}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      submit="Set the limits"
    >
      <Text size="sm">
        What would pass a limit is refused, and what runs is ended before it costs more. Empty: no limit.
      </Text>
      <LimitFields draft={draft} change={setDraft} faults={faults} />
      <Same
        method={isEmpty(body) ? "DELETE" : "PUT"}
        path={path}
        body={isEmpty(body) ? undefined : body}
        command={limitCommand(spender, body)}
      />
    </FormDialog>
  );
}
