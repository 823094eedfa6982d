// The form of a new job with all its fields; beside it, live, the host that would run it now.
import { Text } from "@mantine/core";
import { Link, useLocation, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { NO_LOGIN, shownWith } from "../clusters/request.ts";
import { commandFor } from "../folders/sifting.ts";
import { handed } from "../new/handed.ts";
import { AskBeforeLeavingForm } from "../parts/Leaving.tsx";
import { PageHead } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Compared } from "../routing/Compared.tsx";
import { JobForm } from "./JobForm.tsx";
import { JobQuote } from "./JobQuote.tsx";
import { asJobCommand, BLANK_JOB, type JobDraft, toJob } from "./jobs.ts";
import { SubmitJob } from "./SubmitJob.tsx";
import { useSubmitJob } from "./submit.tsx";

export function NewJobPage() {
  const search = useSearch({ from: "/jobs/new" });
  const { program: pasted, handed: number } = useLocation().state;
  const [draft, setDraft] = useState<JobDraft>(() => ({
    ...BLANK_JOB,
    program: pasted ?? "",
    tier: search.tier ?? "",
    host: search.host ?? "",
    route: search.route ?? "",
    budget: search.budget ?? "",
    backend: search.backend ?? "",
    spot: search.spot === "true",
    cpus: Number(search.cpus) || BLANK_JOB.cpus,
    gpus: Number(search.gpus) || 0,
    ...handed(number).job,
  }));
  const [parcel, setParcel] = useState(() => handed(number).parcel ?? null);
  const [begun] = useState(draft);
  const [tried, setTried] = useState(false);
  const change = (part: Partial<JobDraft>) => setDraft((before) => ({ ...before, ...part }));
  const program = parcel ? "" : draft.program;
  const asked = useMemo(() => ({ ...draft, program }), [draft, program]);
  const { request, login, faults } = useMemo(() => toJob(asked, parcel !== null), [asked, parcel]);
  const sound = Object.keys(faults).length === 0;
  const sending = { request, login, parcel, program, done: () => change(NO_LOGIN) };
  const { submit, sent, stop } = useSubmitJob(sending);
  const choose = (found: typeof parcel) => {
    setParcel(found);
    if (found && !draft.command.trim()) change(commandFor(found.files.map((one) => one.name)));
  };
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
        <AskBeforeLeavingForm filled={draft !== begun || parcel !== null} sending={sent !== null} />
        <div className="wr-columns">
          <JobForm draft={draft} change={change} faults={tried ? faults : {}} parcel={parcel} choose={choose} />
          <aside className="wr-stack">
            <JobQuote draft={draft} sound={sound} change={change} pastes />
            {!draft.simulated && <Compared asked={draft} use={change} />}
            <SubmitJob {...{ submit, sent, stop }} />
            {tried && !sound && (
              <Text size="sm" role="alert" className="wr-tone-bad">
                Please fill in: {Object.values(faults).join("; ")}.
              </Text>
            )}
            <Same
              method="POST"
              path="/jobs"
              body={shownWith(request, login)}
              command={asJobCommand(request, login !== null, parcel)}
            />
          </aside>
        </div>
      </form>
    </div>
  );
}
