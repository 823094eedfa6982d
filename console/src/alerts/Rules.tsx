// The user's own alert rules with their form, and the built-in rules.
import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { remove } from "../api/client.ts";
import { me as meQuery, alertRules as query } from "../api/queries.ts";
import type { BuiltInRule, OwnRule } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Empty, Panel } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { operand } from "../parts/shell.ts";
import { State } from "../parts/state.tsx";
import { actions, identity, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { mayAct, ruleText, SEVERITY_TONES, severityName } from "./alerts.ts";
import { RuleForm, ruleLists, rulePath } from "./RuleForm.tsx";

type Asked = { deed: "add" } | { deed: "edit" | "remove"; rule: OwnRule };

const severityColumn = <Row extends Pick<OwnRule, "severity">>(): Column<Row> => ({
  id: "severity",
  name: "Severity",
  width: 120,
  value: (row) => row.severity,
  facet: true,
  facetName: severityName,
  cell: (row) => <State state={severityName(row.severity)} tone={SEVERITY_TONES[row.severity]} />,
});

const ownColumns = (acts: boolean, ask: (asked: Asked) => void): readonly Column<OwnRule>[] => [
  { id: "name", name: "Name", value: (row) => row.name },
  { id: "watches", name: "Watches", value: ruleText },
  severityColumn<OwnRule>(),
  {
    id: "owner",
    name: "Told to",
    value: (row) => (row.owner === "operators" ? "All operators" : "The project"),
    facet: true,
  },
  moment("created_at", "Made", (row) => row.created_at),
  identity((row) => row.id, { optional: true }),
  ...(acts ? [actions<OwnRule>((row) => <Deeds rule={row} ask={ask} />)] : []),
];

function Deeds({ rule, ask }: { rule: OwnRule; ask: (asked: Asked) => void }) {
  const button = (deed: "edit" | "remove", label: string, color: string) => (
    <Button
      variant="subtle"
      color={color}
      size="compact-sm"
      onClick={() => ask({ deed, rule })}
      aria-label={`${label}: ${plain(rule.name)}`}
    >
      {label}
    </Button>
  );
  return (
    <Group gap={4} justify="flex-end" wrap="nowrap">
      {button("edit", "Edit", "gray")}
      {button("remove", "Remove", "red")}
    </Group>
  );
}

const BUILT_IN: readonly Column<BuiltInRule>[] = [
  { id: "title", name: "Rule", value: (row) => row.title },
  severityColumn<BuiltInRule>(),
  { id: "signal", name: "Raised by", value: (row) => row.signal },
  { id: "audience", name: "Told to", value: (row) => row.audience, facet: true },
  { id: "remedy", name: "What to do", value: (row) => row.remedy, optional: true },
  {
    id: "code",
    name: "Code",
    value: (row) => row.code,
    cell: (row) => <code className="wr-break">{plain(row.code)}</code>,
    optional: true,
  },
];

export function Rules() {
  const found = useQuery(query);
  const me = useQuery(meQuery).data;
  const acts = mayAct(me?.roles ?? []);
  const [asked, ask] = useState<Asked | null>(null);
  const columns = useMemo(() => ownColumns(acts, ask), [acts]);
  const close = () => ask(null);
  const add = (
    <Button leftSection={<PlusIcon size={14} />} onClick={() => ask({ deed: "add" })}>
      Add a rule
    </Button>
  );
  const has = (found.data?.items.length ?? 0) > 0;
  return (
    <div className="wr-stack">
      <Panel title="Your rules" bare actions={acts && has && add}>
        <DataTable
          of={["rule", "rules"]}
          columns={columns}
          id={(row) => row.id}
          rows={found.data?.items}
          query={found}
          bare={(found.data?.items.length ?? 0) < 12}
          empty={
            <Empty
              title="No rules of your own"
              command="windrow alert rule add hot --metric gpu_temperature_celsius --above 80 --for 5m"
              action={acts && add}
            >
              A rule compares a metric for a while, or counts events. You see how often it would have fired in the last
              7 days before it is saved.
            </Empty>
          }
        />
      </Panel>
      <Panel title="Built in" bare>
        <DataTable
          of={["built-in rule", "built-in rules"]}
          columns={BUILT_IN}
          id={(row) => row.code}
          rows={found.data?.built_in}
          query={found}
          empty={<Empty title="No rules are built in" />}
        />
      </Panel>
      {asked?.deed === "add" && <RuleForm signals={found.data?.built_in ?? []} close={close} />}
      {asked?.deed === "edit" && <RuleForm rule={asked.rule} signals={found.data?.built_in ?? []} close={close} />}
      {asked?.deed === "remove" && <Remove rule={asked.rule} close={close} />}
    </div>
  );
}

function Remove({ rule, close }: { rule: OwnRule; close: () => void }) {
  const said = `The rule ${plain(rule.name)} is removed`;
  const act = useChange(() => remove(rulePath(rule.id)), { lists: ruleLists, said, close });
  return (
    <FormDialog title={`Remove ${plain(rule.name)}`} close={close} act={act} ready submit="Remove the rule" danger>
      <Text size="sm">Its open alerts are resolved at once.</Text>
      <Same method="DELETE" path={rulePath(rule.id)} command={`windrow alert rule rm ${operand(rule.id)} --yes`} />
    </FormDialog>
  );
}
