// The form of a new job; beside it, live, the host that would run it now.
import { Button, Checkbox, NumberInput, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { freshKey, post, send } from "../api/client.ts";
import { jobPlan } from "../api/queries.ts";
import type { JobsSubmitted } from "../api/types.ts";
import { Refusal } from "../clusters/Refusal.tsx";
import { RegistryLogin } from "../clusters/RegistryLogin.tsx";
import { NO_LOGIN, shownWith, withLogin } from "../clusters/request.ts";
import { jobChange } from "../clusters/ways.ts";
import { perHour, plain } from "../parts/format.ts";
import { PageHead, Panel, ProblemNote, TYPING_MS, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { State, TestMoney } from "../parts/state.tsx";
import { Compared } from "../routing/Compared.tsx";
import { SecretUses } from "../secrets/SecretUses.tsx";
import { Mounts } from "../volumes/Mounts.tsx";
import { asJobCommand, BLANK_JOB, type JobDraft, PROGRAM, toJob } from "./jobs.ts";
import { tarOf } from "./tar.ts";

export function NewJobPage() {
  const search = useSearch({ from: "/jobs/new" });
  const { program } = useLocation().state;
  const [draft, setDraft] = useState<JobDraft>(() => ({
    ...BLANK_JOB,
    program: program ?? "",
    tier: search.tier ?? "",
    host: search.host ?? "",
    route: search.route ?? "",
    budget: search.budget ?? "",
    cpus: Number(search.cpus) || BLANK_JOB.cpus,
    gpus: Number(search.gpus) || 0,
  }));
  const [tried, setTried] = useState(false);
  const change = (part: Partial<JobDraft>) => setDraft((before) => ({ ...before, ...part }));
  const { request, login, faults } = useMemo(() => toJob(draft), [draft]);
  const sound = Object.keys(faults).length === 0;
  const navigate = useNavigate();
  const client = useQueryClient();
  // Another program is another job: the one before may have its own program already.
  const key = useMemo(() => ({ request, program: draft.program, text: freshKey() }), [request, draft.program]);
  const submit = useMutation({
    mutationFn: async () => {
      const made = await post<JobsSubmitted>("/jobs", withLogin(request, login), key.text);
      const waits = made.jobs[0]!;
      // Asked again after an answer that got lost, the same job may have its program already.
      if (draft.program.trim() && waits.folder_bytes === null)
        await send("PUT", `/jobs/${encodeURIComponent(waits.id)}/files`, {
          body: new Blob([tarOf(PROGRAM, draft.program)]),
        });
      return made;
    },
    gcTime: 0, // what was sent has the login
    onSuccess: ({ jobs }) => {
      change(NO_LOGIN);
      void client.invalidateQueries({ queryKey: ["jobs"] });
      void navigate({ to: "/jobs/$jobId", params: { jobId: jobs[0]!.id } });
    },
  });
  const field = (name: keyof JobDraft) => ({
    value: String(draft[name]),
    error: tried ? faults[name] : undefined,
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <div className="wr-page">
      <PageHead
        above={
          <Link className="wr-link" to="/jobs">
            Jobs
          </Link>
        }
        title="New job"
      />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (sound) submit.mutate();
        }}
        noValidate
      >
        <div className="wr-columns">
          <div className="wr-stack">
            <Panel title="Workload">
              <Stack gap="sm">
                <Textarea
                  label="Program"
                  description={`Optional. Python, sent as ${PROGRAM}; without it only the command runs.`}
                  autosize
                  minRows={2}
                  maxRows={14}
                  {...field("program")}
                  styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                  spellCheck={false}
                />
                <Textarea
                  label="Command"
                  description={
                    "Runs without a shell; for pipes or variables write sh -c '…'. A folder is sent from a " +
                    "terminal: windrow job submit."
                  }
                  placeholder={draft.program.trim() ? `python ${PROGRAM}` : "python -c 'print(6 * 7)'"}
                  autosize
                  minRows={2}
                  maxRows={8}
                  {...field("command")}
                  styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                  data-autofocus
                />
                <Textarea
                  label="Python packages"
                  description="Installed before the command, a line each."
                  placeholder={"numpy\ntorch==2.13"}
                  autosize
                  minRows={1}
                  maxRows={6}
                  {...field("packages")}
                  styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                />
                <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
                  <TextInput label="Name" placeholder="(generated)" {...field("name")} />
                  <TextInput label="Container image" placeholder="none" {...field("image")} />
                  <NumberInput
                    label="GPUs"
                    min={0}
                    max={64}
                    value={draft.gpus}
                    onChange={(value) => change({ gpus: Number(value) || 0 })}
                  />
                  <TextInput
                    label="Which GPUs"
                    description="A model, or the memory that each has at least."
                    placeholder="any"
                    {...field("gpu")}
                  />
                  <TextInput label="Tier" placeholder="any" {...field("tier")} />
                  <TextInput label="Host" placeholder="any" {...field("host")} />
                  <NumberInput
                    label="Processors"
                    min={1}
                    max={1024}
                    value={draft.cpus}
                    onChange={(value) => change({ cpus: Number(value) || 1 })}
                  />
                </SimpleGrid>
                {draft.route && (
                  <Text size="sm" className="wr-quiet">
                    Its cost is compared with the estimate, which holds for the tier or host below.
                  </Text>
                )}
                {(draft.image || draft.entrypoint) && (
                  <TextInput
                    label="Entrypoint"
                    description="Program in place of the image's own; '' for none, so that the command runs by itself."
                    placeholder="the image's own"
                    spellCheck={false}
                    {...field("entrypoint")}
                  />
                )}
                {(draft.image || login) && <RegistryLogin draft={draft} change={change} faults={tried ? faults : {}} />}
                <Mounts
                  value={draft.volumes}
                  change={(volumes) => change({ volumes })}
                  hosts={1}
                  error={tried ? faults.volumes : undefined}
                />
                <SecretUses
                  value={draft.secrets}
                  change={(secrets) => change({ secrets })}
                  error={tried ? faults.secrets : undefined}
                />
                <Checkbox
                  label="Rehearse on simulated hosts"
                  description="Nothing is computed there; output and readings are made up."
                  checked={draft.simulated}
                  onChange={(event) => change({ simulated: event.currentTarget.checked })}
                />
              </Stack>
            </Panel>
            <Panel title="Limits">
              <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
                <NumberInput
                  label="Retries if the host fails"
                  min={0}
                  max={100}
                  value={draft.retries}
                  onChange={(value) => change({ retries: Number(value) || 0 })}
                />
                <TextInput
                  label="Maximum run time (minutes)"
                  placeholder="no limit"
                  inputMode="decimal"
                  {...field("minutes")}
                />
                <TextInput label="Budget" placeholder="no limit" inputMode="decimal" {...field("budget")} />
                <TextInput label="After these jobs" placeholder="job_…" {...field("after")} />
              </SimpleGrid>
            </Panel>
          </div>
          <aside className="wr-stack">
            <Preview draft={draft} sound={sound} change={change} />
            {!draft.simulated && <Compared asked={draft} use={change} />}
            {submit.error && (
              <Panel label="Error">
                <ProblemNote error={submit.error} />
              </Panel>
            )}
            <Button type="submit" size="md" loading={submit.isPending}>
              Submit job
            </Button>
            {tried && !sound && (
              <Text size="sm" role="alert" className="wr-tone-bad">
                Please fill in: {Object.values(faults).join("; ")}.
              </Text>
            )}
            <Same
              method="POST"
              path="/jobs"
              body={shownWith(request, login)}
              command={asJobCommand(request, login !== null)}
            />
          </aside>
        </div>
      </form>
    </div>
  );
}

function Preview({
  draft,
  sound,
  change,
}: {
  draft: JobDraft;
  sound: boolean;
  change: (part: Partial<JobDraft>) => void;
}) {
  const [settled] = useDebouncedValue(draft, TYPING_MS);
  const { request } = useMemo(() => toJob(settled), [settled]);
  const query = useQuery({
    ...jobPlan(request),
    placeholderData: keepPreviousData,
    enabled: sound && settled === draft,
  });
  const plan = query.data;
  return (
    <Panel title="Quote" actions={<TestMoney />}>
      {!sound ? (
        <Text size="sm" className="wr-quiet">
          {draft.command.trim() ? "The form is not complete yet." : "Write a command or paste a program first."}
        </Text>
      ) : query.error ? (
        <ProblemNote error={query.error} retry={() => void query.refetch()} />
      ) : !plan ? (
        <Waiting />
      ) : plan.fits ? (
        <Stack gap={4}>
          <State state="Fits now" tone="ok" />
          <Text fw={650}>{perHour(plan.price_per_hour)}</Text>
          <Text size="sm">{plan.placement.map((place) => plain(place.host_name)).join(", ")}</Text>
        </Stack>
      ) : (
        <Stack gap="sm">
          {plan.refusal && !plan.refusal.is_possible ? (
            <State state="Cannot run as it is" tone="bad" />
          ) : (
            <State state="Waits in the queue" tone="busy" />
          )}
          {plan.refusal && <Refusal refusal={plan.refusal} use={(changes) => change(jobChange(changes))} />}
        </Stack>
      )}
    </Panel>
  );
}
