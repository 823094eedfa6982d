// The page New. Its three steps are what runs, where it runs and its limits; all have defaults.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useMemo, useState } from "react";
import { jobPlan, offers as offersQuery, plan as planQuery, templates as templatesQuery } from "../api/queries.ts";
import type { ClusterRequest, JobRequest } from "../api/types.ts";
import { useCreate } from "../clusters/create.ts";
import { Quote } from "../clusters/Quote.tsx";
import { asCommand, mayIdle, toRequest } from "../clusters/request.ts";
import type { Parcel } from "../folders/reading.ts";
import { commandFor } from "../folders/sifting.ts";
import { JobQuote } from "../jobs/JobQuote.tsx";
import { asJobCommand, toJob } from "../jobs/jobs.ts";
import { SubmitJob } from "../jobs/SubmitJob.tsx";
import { useSubmitJob } from "../jobs/submit.tsx";
import { plain } from "../parts/format.ts";
import { AskBeforeLeavingForm } from "../parts/Leaving.tsx";
import { LinkButton } from "../parts/LinkButton.tsx";
import { Loaded, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Cards } from "./Cards.tsx";
import {
  BLANK_CHOICE,
  type Choice,
  changed,
  isFilled,
  keyFault,
  RECIPES,
  recipeOf,
  toJobDraft,
  toMachine,
  type What,
} from "./choice.ts";
import { Details, type Faults } from "./Details.tsx";
import { hand } from "./handed.ts";
import { Limits } from "./Limits.tsx";
import { absentPlace, asItIs, firstPlace, type Place, placeId, placesOf } from "./places.ts";
import { Where } from "./Where.tsx";

export function NewPage() {
  const query = useQuery(offersQuery);
  const search = useSearch({ from: "/new" });
  // Another entry of the New menu begins another form.
  return (
    <div className="wr-page">
      <Loaded query={query} lines={8}>
        {(offers) => <Steps key={search.what ?? ""} places={placesOf(offers)} />}
      </Loaded>
    </div>
  );
}

/** What was chosen, and the place that is meant by it. */
function useChoice(places: readonly Place[]) {
  const search = useSearch({ from: "/new" });
  const [choice, setChoice] = useState<Choice>(() => {
    const what = RECIPES.find((one) => one.id === search.what)?.id ?? BLANK_CHOICE.what;
    return { ...BLANK_CHOICE, what, gpus: Math.min(64, Math.max(1, Math.floor(Number(search.gpus)) || 1)) };
  });
  const [parcel, setParcel] = useState<Parcel | null>(null);
  const [place, pick] = usePlace(places, recipeOf(choice.what).needsGpu);
  const change = (part: Partial<Choice>) => setChoice((before) => ({ ...before, ...part }));
  const ways = (part: Choice["also"]) => setChoice((before) => changed(before, part));
  const choose = (found: Parcel | null) => {
    setParcel(found);
    if (found && !choice.command.trim()) change(commandFor(found.files.map((one) => one.name)));
  };
  return { choice, place, pick, parcel, change, ways, choose, filled: isFilled(choice) || parcel !== null };
}

/** The chosen place. What is chosen first, by a person or for one, stays chosen: no other one comes in its stead. */
function usePlace(places: readonly Place[], needsGpu: boolean) {
  const { tier, simulated } = useSearch({ from: "/new" });
  const [held, hold] = useState<Place | null>(() => {
    if (!tier) return null;
    const id = placeId(tier, simulated === "true");
    return places.find((one) => one.id === id) ?? absentPlace(tier, simulated === "true");
  });
  /** For what needs a GPU, while the one that is held has none. */
  const [heldGpu, holdGpu] = useState<Place | null>(null);
  const isHeld = held !== null && (held.isGpu || !needsGpu);
  const chosen = isHeld ? held : needsGpu ? heldGpu : null;
  const first = chosen === null ? firstPlace(places, needsGpu) : null;
  if (first) (held === null ? hold : holdGpu)(first);
  const now = chosen ?? first;
  return [now && asItIs(now, places), hold] as const;
}

/** What the quote beside the form says of this very request. */
function useQuote(machine: ClusterRequest, job: JobRequest, isJob: boolean): "asked" | "fits" | "refused" | "failed" {
  const ofMachine = useQuery({ ...planQuery(machine), enabled: false });
  const ofJob = useQuery({ ...jobPlan(job), enabled: false });
  const { data, error } = isJob ? ofJob : ofMachine;
  if (error) return "failed";
  return data === undefined ? "asked" : data.fits || data.fits_soon ? "fits" : "refused";
}

/** The same objects as long as they say the same: a quote is asked for once its draft has settled. */
function useDrafts(choice: Choice, place: Place | null, sends: boolean) {
  const where = JSON.stringify(place && { ...place, free: 0, total: 0, price: "" });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what of the place a draft has
  return useMemo(() => {
    const [machine, job] = [toMachine(choice, place), toJobDraft(choice, place)];
    return { machine, job, asMachine: toRequest(machine), asJob: toJob(job, sends) };
  }, [choice, where, sends]);
}

function Steps({ places }: { places: readonly Place[] }) {
  const navigate = useNavigate();
  const { choice, place, pick, parcel, change, ways, choose, filled } = useChoice(places);
  const { machine, job, asMachine, asJob } = useDrafts(choice, place, parcel !== null);
  const [tried, setTried] = useState(false);
  const create = useCreate(asMachine.request, null);
  const { submit, sent, stop } = useSubmitJob({ request: asJob.request, login: null, parcel, program: "" });
  const isJob = choice.what === "job";
  const asked: Faults = isJob ? asJob.faults : asMachine.faults;
  const faults: Faults = { ...keyFault(choice, place), ...asked };
  const wrong = Object.values(faults);
  const isPlaced = place?.isOffered ?? false;
  const hasQuote = Object.keys(asked).length === 0 && isPlaced;
  const sound = hasQuote && wrong.length === 0;
  const quote = useQuote(asMachine.request, toJob(job).request, isJob);
  // Nobody pays a price that was of another choice, and no machine waits in a queue as a job does.
  const isReady = isPlaced && !(hasQuote && (quote === "asked" || (quote === "refused" && !isJob)));
  const shown = tried ? faults : {};
  const start = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (!isReady) return;
    if (sound && isJob) submit.mutate();
    else if (sound) create.mutate();
  };
  const allOptions = () =>
    void (isJob
      ? navigate({ to: "/jobs/new", state: hand({ job, parcel }), ignoreBlocker: true })
      : navigate({ to: "/clusters/new", state: hand({ machine }), ignoreBlocker: true }));
  return (
    <form noValidate onSubmit={start}>
      <AskBeforeLeavingForm filled={filled} sending={sent !== null} />
      <PageHead
        title={isJob ? "New job" : "New machine"}
        actions={
          <Button variant="default" onClick={allOptions}>
            All options
          </Button>
        }
      />
      <div className="wr-columns">
        <div className="wr-stack">
          <Panel title="1. What">
            <Stack gap="sm">
              <Cards<What>
                label="What runs"
                value={choice.what}
                change={(what) => change({ what, image: null, also: {} })}
                cards={RECIPES}
              />
              <Saved />
              <Details choice={choice} change={change} faults={shown} place={place} parcel={parcel} choose={choose} />
            </Stack>
          </Panel>
          <Where choice={choice} change={change} pick={pick} places={places} place={place} />
          <Limits choice={choice} change={change} faults={faults} tried={tried} mayIdle={!isJob && mayIdle(machine)} />
        </div>
        <aside className="wr-stack">
          {isJob ? (
            <>
              <JobQuote draft={job} sound={hasQuote} change={ways} />
              <SubmitJob {...{ submit, sent, stop }} disabled={!isReady} />
            </>
          ) : (
            <>
              <Quote draft={machine} sound={hasQuote} change={ways} />
              <StartMachine create={create} disabled={!isReady} />
            </>
          )}
          {tried && wrong.length > 0 && (
            <Text size="sm" role="alert" className="wr-tone-bad">
              Please fill in: {wrong.join("; ")}.
            </Text>
          )}
          <Same
            method="POST"
            path={isJob ? "/jobs" : "/clusters"}
            body={isJob ? asJob.request : asMachine.request}
            command={isJob ? asJobCommand(asJob.request, false, parcel) : asCommand(asMachine.request)}
          />
        </aside>
      </div>
    </form>
  );
}

function StartMachine({ create, disabled }: { create: ReturnType<typeof useCreate>; disabled: boolean }) {
  return (
    <>
      {create.error && (
        <Panel label="Error">
          <ProblemNote error={create.error} />
        </Panel>
      )}
      <Button type="submit" size="md" loading={create.isPending} disabled={disabled}>
        Start machine
      </Button>
    </>
  );
}

/** Requests that the project keeps by name go on in the form with all options. */
function Saved() {
  const templates = useQuery(templatesQuery).data ?? [];
  if (templates.length === 0) return null;
  return (
    <Group gap="xs" role="group" aria-label="Saved templates">
      <Text size="sm">Saved templates:</Text>
      {templates.map(({ name }) => (
        <LinkButton key={name} to="/clusters/new" search={{ template: name }} size="compact-sm">
          {plain(name)}
        </LinkButton>
      ))}
    </Group>
  );
}
