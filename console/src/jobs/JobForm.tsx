// Every field of a job, in the order in which one decides: what runs, on what, until when, in which image.
import { Checkbox, NativeSelect, NumberInput, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { ImagePanel } from "../clusters/ImagePanel.tsx";
import { PlaceFields } from "../clusters/PlaceFields.tsx";
import { FolderPicker } from "../folders/FolderPicker.tsx";
import type { Parcel } from "../folders/reading.ts";
import { Panel } from "../parts/page.tsx";
import { type JobDraft, type JobFaults, PROGRAM } from "./jobs.ts";

type TextField = { [F in keyof JobDraft]: string extends JobDraft[F] ? F : never }[keyof JobDraft];

export interface JobFormProps {
  draft: JobDraft;
  change: (part: Partial<JobDraft>) => void;
  faults: JobFaults;
}

/** So that all inputs of a row stand in one line. */
const HINT_LAST: ("label" | "input" | "description" | "error")[] = ["label", "input", "description", "error"];
const MONO = { input: { fontFamily: "var(--mantine-font-family-monospace)" } };

const fieldsOf = ({ draft, change, faults }: JobFormProps) => ({
  text: (name: TextField) => ({
    value: draft[name],
    error: faults[name],
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  }),
  whole: (name: "gpus" | "cpus" | "retries" | "priority" | "copies", min: number, max: number) => ({
    value: draft[name],
    min,
    max,
    onChange: (value: string | number) => change({ [name]: Number(value) || Math.max(0, min) }),
  }),
  yes: (name: "simulated" | "retriesOnExit") => ({
    checked: draft[name],
    onChange: (event: { currentTarget: { checked: boolean } }) => change({ [name]: event.currentTarget.checked }),
  }),
});

interface WithFiles extends JobFormProps {
  parcel: Parcel | null;
  choose: (parcel: Parcel | null) => void;
}

export function JobForm({ parcel, choose, ...form }: WithFiles) {
  return (
    <div className="wr-stack">
      <Workload parcel={parcel} choose={choose} {...form} />
      <Hardware {...form} />
      <PlaceFields {...form} />
      <Turn {...form} />
      <Limits {...form} />
      <ImagePanel {...form} hosts={1}>
        {(form.draft.image || form.draft.registrySecret) && (
          <TextInput
            label="Secret with the login of the registry"
            placeholder="none"
            spellCheck={false}
            {...fieldsOf(form).text("registrySecret")}
          />
        )}
      </ImagePanel>
    </div>
  );
}

function Workload({ parcel, choose, ...form }: WithFiles) {
  const { text } = fieldsOf(form);
  const program = form.draft.program.trim();
  return (
    <Panel title="Workload">
      <Stack gap="sm">
        <FolderPicker parcel={parcel} change={choose} />
        {!parcel && (
          <Textarea
            label="Program"
            description={`Optional. Python, sent as ${PROGRAM}; without it only the command runs.`}
            autosize
            minRows={2}
            maxRows={14}
            {...text("program")}
            styles={MONO}
            spellCheck={false}
          />
        )}
        <Textarea
          label="Command"
          description="Runs without a shell; for pipes or variables write sh -c '…'."
          placeholder={program ? `python ${PROGRAM}` : "python -c 'print(6 * 7)'"}
          autosize
          minRows={2}
          maxRows={8}
          {...text("command")}
          styles={MONO}
          data-autofocus
        />
        <Textarea
          label="Python packages"
          description="Installed before the command, a line each."
          placeholder={"numpy\ntorch==2.13"}
          autosize
          minRows={1}
          maxRows={6}
          {...text("packages")}
          styles={MONO}
        />
        <TextInput label="Name" placeholder="(generated)" {...text("name")} />
      </Stack>
    </Panel>
  );
}

function Hardware(form: JobFormProps) {
  const { text, whole, yes } = fieldsOf(form);
  return (
    <Panel title="Hardware">
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
          <NumberInput label="GPUs" {...whole("gpus", 0, 64)} />
          <TextInput label="Which GPUs" description="A model, or a memory." placeholder="any" {...text("gpu")} />
          <TextInput
            label="Slice"
            description="Of a GPU, by its profile."
            placeholder="whole GPUs"
            {...text("slice")}
          />
          <NumberInput label="CPUs" {...whole("cpus", 1, 4096)} />
          <TextInput label="Memory from (GiB)" placeholder="any" inputMode="decimal" {...text("memoryGib")} />
          <TextInput label="Price per hour, at most" placeholder="any" inputMode="decimal" {...text("maxPrice")} />
          <TextInput label="Tier" placeholder="any" {...text("tier")} />
          <TextInput label="Host" placeholder="any" {...text("host")} />
        </SimpleGrid>
        {form.draft.route && (
          <Text size="sm" className="wr-quiet">
            Its cost is compared with the estimate, which holds for the tier or host below.
          </Text>
        )}
        <Checkbox
          label="Rehearse on simulated hosts"
          description="Nothing is computed there; output and readings are made up."
          {...yes("simulated")}
        />
      </Stack>
    </Panel>
  );
}

const CLASSES = [
  { value: "", label: "Normal" },
  { value: "urgent", label: "Urgent" },
  { value: "low", label: "Low" },
  { value: "spot", label: "Spot" },
];

function Turn(form: JobFormProps) {
  const { text, whole } = fieldsOf(form);
  return (
    <Panel title="Queue">
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
        <NativeSelect
          label="Class"
          description="Urgent starts first; spot last."
          inputWrapperOrder={HINT_LAST}
          data={CLASSES}
          value={form.draft.priorityClass}
          onChange={(event) => form.change({ priorityClass: event.currentTarget.value as JobDraft["priorityClass"] })}
        />
        <NumberInput
          label="Priority"
          description="Within its class; more is earlier."
          inputWrapperOrder={HINT_LAST}
          {...whole("priority", -100, 100)}
        />
        <TextInput label="Start not before" type="datetime-local" {...text("begin")} />
        <TextInput label="After these jobs succeed" placeholder="job_…" {...text("after")} />
        <TextInput label="After these jobs end" placeholder="job_…" {...text("afterAny")} />
        <TextInput label="After these jobs fail" placeholder="job_…" {...text("afterFailure")} />
        <NumberInput label="Copies, each with its number" {...whole("copies", 0, 1000)} />
        {form.draft.copies > 0 && (
          <TextInput label="Copies at once, at most" placeholder="all" inputMode="numeric" {...text("atOnce")} />
        )}
      </SimpleGrid>
    </Panel>
  );
}

function Limits(form: JobFormProps) {
  const { text, whole, yes } = fieldsOf(form);
  return (
    <Panel title="Limits">
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
          <NumberInput label="Retries if the host fails" {...whole("retries", 0, 100)} />
          <TextInput
            label="Maximum run time (minutes)"
            placeholder="no limit"
            inputMode="decimal"
            {...text("minutes")}
          />
          <TextInput label="Budget" placeholder="no limit" inputMode="decimal" {...text("budget")} />
          <TextInput label="Ends by" type="datetime-local" {...text("deadline")} />
          <TextInput
            label="Checkpoint every (seconds)"
            placeholder="60"
            inputMode="decimal"
            {...text("checkpointSeconds")}
          />
        </SimpleGrid>
        <Checkbox label="Retry also after an exit code other than 0" {...yes("retriesOnExit")} />
      </Stack>
    </Panel>
  );
}
