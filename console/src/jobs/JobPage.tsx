// The page of one job: attempts, log, dependencies, output files, costs.
import { Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { AlertsOf } from "../alerts/AlertsOf.tsx";
import { freshKey, post, send } from "../api/client.ts";
import { forecast as forecastQuery, job as jobQuery, jobs as jobsQuery, me as meQuery } from "../api/queries.ts";
import type { Job, JobAttempt } from "../api/types.ts";
import { useJobWord } from "../clusters/called.ts";
import { Findings } from "../clusters/Findings.tsx";
import { Log } from "../clusters/Log.tsx";
import { Places } from "../clusters/Places.tsx";
import { Usage } from "../clusters/Usage.tsx";
import { FolderPicker, Sent } from "../folders/FolderPicker.tsx";
import type { Parcel } from "../folders/reading.ts";
import { SendingProblem, sendFiles } from "../folders/sending.tsx";
import { isRenter, mayEnd } from "../identity/rights.ts";
import { SharePanel, useReach } from "../identity/SharePanel.tsx";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { amount, bytes, DASH, duration, plain, took, words } from "../parts/format.ts";
import { DownloadIcon } from "../parts/icons.tsx";
import { AskBeforeLeaving } from "../parts/Leaving.tsx";
import { ObjectHead } from "../parts/ObjectHead.tsx";
import { Amount, Command, Empty, Facts, Figure, Loaded, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { quoted } from "../parts/shell.ts";
import { TestMoney, When } from "../parts/state.tsx";
import { classText } from "../queue/queue.ts";
import { WhyHere } from "../queue/WhyHere.tsx";
import { JobWaits } from "../queue/WhyWaits.tsx";
import { EventList } from "../records/EventList.tsx";
import { rangeOf } from "../routing/KeptEstimates.tsx";
import { keep } from "../tables/Csv.tsx";
import { JobGraph } from "./JobGraph.tsx";
import { JobImpact } from "./JobImpact.tsx";
import { isOver, waitsForFiles } from "./jobs.ts";

export function JobPage() {
  const { jobId } = useParams({ from: "/jobs/$jobId" });
  const query = useQuery(jobQuery(jobId));
  return (
    <div className="wr-page">
      <Loaded query={query} lines={12}>
        {(job) => <JobView job={job} />}
      </Loaded>
    </div>
  );
}

function JobView({ job }: { job: Job }) {
  const over = isOver(job);
  const last = job.attempts.at(-1);
  const known = useQuery(jobsQuery.first).data?.items ?? [];
  const me = useQuery(meQuery).data;
  const mine = isRenter(me, job.account_id);
  const { uses, manages } = useReach(job.id, job.account_id);
  return (
    <>
      <ObjectHead
        up={{ to: "/jobs", name: "Jobs" }}
        title={job.name}
        state={job.state}
        simulated={job.request.simulated}
        id={job.id}
        actions={(over ? mine : manages || mayEnd(me, job.account_id)) && <Actions job={job} />}
      />
      <AlertsOf cause={job.group_id} />
      {job.reason && !job.refusal && !job.queue && (
        <div
          className={`wr-note ${job.state === "Failed" || job.state === "Lost" ? "wr-note-bad" : ""}`}
          style={{ marginBottom: 14 }}
        >
          <strong>{words(job.state)}</strong>
          <span className="wr-break">{plain(job.reason)}</span>
        </div>
      )}
      {(job.refusal || job.queue) && (
        <div style={{ marginBottom: 16 }}>
          <JobWaits job={job} changes={mine} />
        </div>
      )}
      <div className="wr-figures" style={{ marginBottom: 16 }}>
        <Figure label="cost so far" value={<Amount text={job.cost_so_far} />} note={<TestMoney />} />
        {job.request.budget && <Figure label="budget" value={amount(job.request.budget)} />}
        {job.exit_code !== null && <Figure label="exit code" value={job.exit_code} />}
        <Figure label="attempts" value={attemptsText(job)} />
      </div>
      <div className="wr-columns">
        <div className="wr-stack">
          {manages && waitsForFiles(job) && <SendFolder job={job} />}
          <JobGraph job={job} known={known} />
          <Places tries={job.tries} backend={job.request.backend} reason={job.state === "Queued" ? job.reason : null} />
          <Panel title="Output" bare>
            {uses ? (
              <Log
                path={`/jobs/${encodeURIComponent(job.id)}/logs`}
                name={job.request.name}
                over={over}
                waiting="Nothing was written yet. What the command prints shows here once it runs."
              />
            ) : (
              <Empty title="The log is private">
                The renter of a job reads its log, and with whom it is shared to use.
              </Empty>
            )}
          </Panel>
          {last?.started_at && last.cluster_id && (
            <Usage clusterId={last.cluster_id} endedAt={last.ended_at} hosts={1} gpus={job.request.gpus} />
          )}
          {job.request.gpus > 0 && last?.started_at && <Findings of={`/jobs/${job.id}`} over={over} />}
          {job.request.gpus > 0 && <JobImpact job={job} />}
          <Panel title="Events" bare>
            <EventList subject={job.id} follow={!over} />
          </Panel>
        </div>
        <aside className="wr-stack">
          {uses && (
            <Panel title="Output files">
              <Artefacts job={job} />
            </Panel>
          )}
          <Panel title="Attempts">
            <Attempts job={job} />
          </Panel>
          {job.request.route_id && mine && <Forecast routeId={job.request.route_id} jobId={job.id} over={over} />}
          {last && !job.queue && (
            <Panel title="Why here">
              <WhyHere id={job.id} />
            </Panel>
          )}
          <Panel title="Configuration">
            <Asked job={job} />
          </Panel>
          <SharePanel object={{ kind: "job", id: job.id, accountId: job.account_id }} />
        </aside>
      </div>
    </>
  );
}

/** Its files were not sent with it, or sending them broke off. */
function SendFolder({ job }: { job: Job }) {
  const client = useQueryClient();
  const [parcel, choose] = useState<Parcel | null>(null);
  const [sent, setSent] = useState<{ bytes: number; of: number } | null>(null);
  const act = useMutation({
    mutationFn: (files: Parcel["files"]) =>
      sendFiles(`/jobs/${encodeURIComponent(job.id)}/files`, files, (bytes, of) => setSent({ bytes, of })),
    onSettled: () => setSent(null),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["job", job.id] }),
  });
  return (
    <Panel title="Its folder is missing">
      <Stack gap="sm">
        <Text size="sm">
          This job starts once its folder is here. If it is not being sent in another window, send it now, or cancel the
          job.
        </Text>
        <FolderPicker parcel={parcel} change={choose} />
        {sent && <Sent sent={sent} />}
        {act.error && <SendingProblem error={act.error} />}
        {parcel && (
          <Group>
            <Button loading={act.isPending} onClick={() => act.mutate(parcel.files)}>
              Send {plain(parcel.title)}
            </Button>
          </Group>
        )}
        <AskBeforeLeaving
          when={act.isPending}
          title="Files are being sent"
          text="They go on being sent on another page of the console. If you close or reload this window, they are not."
        />
      </Stack>
    </Panel>
  );
}

function Actions({ job }: { job: Job }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const path = `/jobs/${encodeURIComponent(job.id)}`;
  const cancel = useMutation({
    mutationFn: () => post<Job>(`${path}/cancel`, undefined),
    onSuccess: (after) => client.setQueryData(["job", job.id], after),
    onError: told,
  });
  const again = useMutation({
    mutationFn: () => post<Job>(`${path}/rerun`, undefined, freshKey()),
    onSuccess: (made) => void navigate({ to: "/jobs/$jobId", params: { jobId: made.id } }),
    onError: told,
  });
  const [asks, ask] = useState(false);
  if (isOver(job))
    return (
      <Button loading={again.isPending} onClick={() => again.mutate()}>
        Run again
      </Button>
    );
  return (
    <>
      {(job.state === "Starting" || job.state === "Running") && (
        <Button variant="default" onClick={() => ask(true)}>
          Requeue
        </Button>
      )}
      <Button
        color="red"
        variant="light"
        loading={cancel.isPending}
        disabled={job.state === "Checkpointing"}
        onClick={() => cancel.mutate()}
      >
        Cancel
      </Button>
      {asks && <Requeue job={job} close={() => ask(false)} />}
    </>
  );
}

function Requeue({ job, close }: { job: Job; close: () => void }) {
  const word = useJobWord(job);
  const path = `/jobs/${encodeURIComponent(job.id)}/requeue`;
  const lists = [{ queryKey: ["job", job.id] }, { queryKey: ["jobs"] }, { queryKey: ["queue"] }];
  const act = useChange(() => post(path), { lists, said: `${plain(job.name)} is back in the queue`, close });
  return (
    <FormDialog title={`Requeue ${plain(job.name)}`} close={close} act={act} ready submit="Requeue the job">
      <Text size="sm">
        This attempt ends, and the job waits for a place again. It goes on from its newest checkpoint, and uses up no
        retry. Work since that checkpoint is lost.
      </Text>
      <Same method="POST" path={path} command={`windrow job requeue ${word}`} />
    </FormDialog>
  );
}

const told = (failure: Error) => notifications.show({ color: "red", message: failure.message });

function Artefacts({ job }: { job: Job }) {
  const word = useJobWord(job);
  const last = job.attempts.at(-1);
  const fetchThem = useMutation({
    mutationFn: async () => {
      const answer = await send("GET", `/jobs/${encodeURIComponent(job.id)}/artefacts`, {}, null);
      keep(await answer.blob(), `${job.name.replace(/[^A-Za-z0-9._-]+/g, "-") || "job"}.tar`);
    },
  });
  if (!last || last.files_bytes === null) {
    return (
      <Text size="sm" className="wr-quiet">
        {isOver(job) ? "No files are kept." : "The files that the job changes are kept here once it has ended."}
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      <Text size="sm">
        {bytes(last.files_bytes)} as a tar archive: the files that the job changed.
        {last.files_truncated && " The archive passed the limit and was cut."}
      </Text>
      <Group>
        <Button leftSection={<DownloadIcon />} loading={fetchThem.isPending} onClick={() => fetchThem.mutate()}>
          Download
        </Button>
      </Group>
      {fetchThem.error ? <ProblemNote error={fetchThem.error} /> : null}
      <Command text={`windrow job artefacts ${word} results/`} label="the same by command" />
    </Stack>
  );
}

/** What was forecast of the job's cost where its place was chosen, beside what it has cost. */
function Forecast({ routeId, jobId, over }: { routeId: string; jobId: string; over: boolean }) {
  const query = useQuery(forecastQuery(routeId, over));
  const told = query.data;
  if (query.error || !told) return null; // the oldest routes are forgotten
  // Of an array, or run again, only the first job is what was measured.
  const isIts = told.job_id === jobId;
  return (
    <Panel title="Forecast">
      <Facts
        rows={[
          ["Place", plain(told.backend)],
          ...(told.job_id && !isIts
            ? [
                [
                  "Of the job",
                  <Link key="j" className="wr-link" to="/jobs/$jobId" params={{ jobId: told.job_id }}>
                    that followed it first
                  </Link>,
                ] as const,
              ]
            : []),
          ["Expected cost (USD)", rangeOf(told.cost_estimate)],
          ["Expected run time", told.hours === null ? DASH : duration(told.hours * 3600)],
          ...(isIts && told.hours_taken !== null
            ? [["Run time so far", duration(told.hours_taken * 3600)] as const]
            : []),
          ...(told.held === null || !isIts ? [] : [["Cost in this range", told.held ? "yes" : "no"] as const]),
        ]}
      />
    </Panel>
  );
}

function Attempts({ job }: { job: Job }) {
  if (job.attempts.length === 0)
    return (
      <Text size="sm" className="wr-quiet">
        None yet.
      </Text>
    );
  return (
    <Stack gap="md">
      {job.attempts.map((one) => (
        <Facts key={one.number} rows={attemptRows(one, job.request.backend !== null)} />
      ))}
    </Stack>
  );
}

const attemptRows = (one: JobAttempt, isElsewhere: boolean) => [
  [
    `Attempt ${one.number}`,
    one.cluster_id ? (
      <Link key="c" className="wr-link" to="/clusters/$clusterId" params={{ clusterId: one.cluster_id }}>
        Open machine
      </Link>
    ) : (
      "at a service"
    ),
  ] as const,
  ...(one.place || isElsewhere
    ? [
        [
          "Place",
          <span key="p" className="wr-break">
            {one.place ? plain(one.place.text) : "this market"}
          </span>,
        ] as const,
      ]
    : []),
  [
    "Ended",
    one.ended_at ? (
      <span key="e" className="wr-break">
        {plain(one.outcome)}
      </span>
    ) : (
      "running"
    ),
  ] as const,
  ["Took", took(one.started_at, one.ended_at)] as const,
  ["Cost", amount(one.cost)] as const,
];

/** A move that was planned uses up no retry, so that there may be more of them than were asked for. */
const attemptsText = ({ attempts, request }: Job): string =>
  attempts.length > request.retries + 1 ? String(attempts.length) : `${attempts.length} of ${request.retries + 1}`;

const boughtAt = ({ backend, spot, optimize }: Job["request"]): string =>
  [backend === "any" ? "any backend" : plain(backend), spot && "spot first", optimize && `by ${optimize}`]
    .filter(Boolean)
    .join(", ");

function Asked({ job }: { job: Job }) {
  const asked = job.request;
  const word = useJobWord(job);
  return (
    <Stack gap="xs">
      <Facts
        rows={[
          [
            "Command",
            <code key="c" className="wr-break">
              {asked.argv.map(quoted).join(" ")}
            </code>,
          ],
          ...(asked.image ? [["Image", plain(asked.image)] as const] : []),
          ...(asked.entrypoint === null
            ? []
            : [["Entrypoint", asked.entrypoint === "" ? "none" : plain(asked.entrypoint)] as const]),
          ...(asked.packages.length ? [["Python packages", plain(asked.packages.join(", "))] as const] : []),
          ...(asked.volumes.length
            ? [
                [
                  "Volumes",
                  <span key="v" className="wr-break">
                    {plain(asked.volumes.join(", "))}
                  </span>,
                ] as const,
              ]
            : []),
          ...(Object.keys(asked.env).length
            ? [
                [
                  "Variables",
                  <span key="e" className="wr-break">
                    {plain(Object.keys(asked.env).join(", "))}
                  </span>,
                ] as const,
              ]
            : []),
          ...(asked.secrets.length ? [["Secrets", plain(asked.secrets.join(", "))] as const] : []),
          ...(asked.registry_secret === null ? [] : [["Registry login", plain(asked.registry_secret)] as const]),
          [
            "GPUs",
            asked.gpu_model
              ? `${asked.gpus} ${plain(asked.gpu_model)}`
              : asked.gpu_memory_bytes
                ? `${asked.gpus} of at least ${bytes(asked.gpu_memory_bytes)}`
                : String(asked.gpus),
          ],
          ...(asked.tier ? [["Tier", plain(asked.tier)] as const] : []),
          ...(asked.host_id === null ? [] : [["Host", plain(asked.host_id)] as const]),
          ["CPUs", String(asked.cpus)],
          ["Maximum run time", asked.max_duration_seconds === null ? "no limit" : duration(asked.max_duration_seconds)],
          ...(asked.deadline ? [["Deadline", <When key="d" at={asked.deadline} />] as const] : []),
          ["Class", classText(asked)],
          ...(asked.backend === null ? [] : [["Bought at", boughtAt(asked)] as const]),
          ...(asked.begin_at ? [["Not before", <When key="b" at={asked.begin_at} />] as const] : []),
          ["Folder", bytes(job.folder_bytes)],
          ["Submitted", <When key="s" at={job.created_at} />],
        ]}
      />
      <Same method="GET" path={`/jobs/${job.id}`} command={`windrow job show ${word}`} />
    </Stack>
  );
}
