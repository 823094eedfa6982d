// The dialog of reports by mail: lists the schedules, and adds one for the report that the page shows.
import { ActionIcon, Group, NativeSelect, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { post, remove } from "../api/client.ts";
import { schedules as schedulesQuery } from "../api/queries.ts";
import type { ReportRequest, ReportSchedule } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { When } from "../parts/state.tsx";
import { PERIODS, TIMES, type Wanted } from "./reports.ts";

const PATH = "/report-schedules";

export function Schedules({ wanted, close }: { wanted: Wanted; close: () => void }) {
  const known = useQuery(schedulesQuery).data ?? [];
  const [name, setName] = useState("Windrow report");
  const [cron, setCron] = useState(TIMES[0]![0]);
  const [period, setPeriod] = useState("last-month");
  const { measure, by, view, time_zone } = wanted.words;
  const body = { name: name.trim(), cron, period, measure, by, view, time_zone, filters: wanted.filters };
  const act = useChange(() => post(PATH, body), { lists: [schedulesQuery], said: "The report is sent by mail", close });
  return (
    <FormDialog
      title="Reports by mail"
      close={close}
      act={act}
      ready={name.trim() !== ""}
      fields={["name"]}
      submit="Send this report"
    >
      {known.map((one) => (
        <Known key={one.id} one={one} />
      ))}
      <Text size="sm">
        What this page shows, with the totals in the mail and a link to the rest. It goes to your address.
      </Text>
      <TextInput
        label="Subject"
        value={name}
        error={faultsOf(act.error).name}
        maxLength={100}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <NativeSelect
        label="When"
        description={`By the clock of ${time_zone}.`}
        value={cron}
        onChange={(event) => setCron(event.currentTarget.value)}
        data={TIMES.map(([value, label]) => ({ value, label }))}
      />
      <NativeSelect
        label="Period"
        value={period}
        onChange={(event) => setPeriod(event.currentTarget.value)}
        data={PERIODS.map(([value, label]) => ({ value, label }))}
      />
      <Same method="POST" path={PATH} body={body} command={commandOf(body)} />
    </FormDialog>
  );
}

const commandOf = ({ name, cron, period, by, measure, filters }: ReportRequest): string => {
  const where = Object.entries(filters ?? {}).map((one) => one.join("="));
  const options = { cron, period, measure, by, where: where.join(",") };
  const given = Object.entries(options).flatMap(([word, value]) => (value ? [`--${word}`, quoted(value)] : []));
  return ["windrow report schedule add", quoted(name), ...given].join(" ");
};

function Known({ one }: { one: ReportSchedule }) {
  const said = `${plain(one.name)} is sent no more`;
  const act = useChange(() => remove(`${PATH}/${one.id}`), { lists: [schedulesQuery], said });
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap">
      <Text size="sm">
        {plain(one.name)}, next <When at={one.next_at} />
        {one.problem && <>. The last one was not sent: {plain(one.problem)}</>}
      </Text>
      <ActionIcon onClick={() => act.mutate()} loading={act.isPending} aria-label={`Stop ${plain(one.name)}`}>
        ✕
      </ActionIcon>
    </Group>
  );
}
