// Why a job or a machine waits: its place, when it is expected to start, and the changes with which it starts at once.
import { Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { freshKey, post } from "../api/client.ts";
import { explain } from "../api/queries.ts";
import type { Cluster, Job, JobsSubmitted, Queued, Refusal as Told } from "../api/types.ts";
import { Refusal } from "../clusters/Refusal.tsx";
import { toDraft } from "../clusters/request.ts";
import { clusterChange } from "../clusters/ways.ts";
import { asJobCommand } from "../jobs/jobs.ts";
import { hand } from "../new/handed.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { exact, plain } from "../parts/format.ts";
import { Panel, Reasons } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { useNow, When } from "../parts/state.tsx";
import { EntryButtons } from "./EntryActs.tsx";
import { changedRequest, classText, heldHosts, isRepeatable, otherWays, standingText, whyText } from "./queue.ts";
import { WhyNot } from "./WhyHere.tsx";

type Way = Told["ways"][number];

/** changes: by its renter, who may ask for it again with a change. */
export function JobWaits({ job, changes }: { job: Job; changes: boolean }) {
  const [way, choose] = useState<Way | null>(null);
  const use = (wanted: Way) => choose(wanted);
  return (
    <>
      <WhyWaits entry={job.queue} refusal={job.refusal} use={changes && isRepeatable(job) ? use : undefined} />
      {way && <Changed job={job} way={way} close={() => choose(null)} />}
    </>
  );
}

export function MachineWaits({ cluster, changes }: { cluster: Cluster; changes: boolean }) {
  const navigate = useNavigate();
  const use = (way: Way) => {
    const machine = { ...toDraft(cluster.request), ...clusterChange(way.changes), name: "" };
    void navigate({ to: "/clusters/new", state: hand({ machine }) });
  };
  return <WhyWaits entry={cluster.queue} use={changes ? use : undefined} />;
}

interface Props {
  entry: Queued | null;
  refusal?: Told | null;
  use?: ((way: Way) => void) | undefined;
}

function WhyWaits({ entry, refusal, use }: Props) {
  const now = useNow();
  const told = useQuery({ ...explain(entry?.id ?? ""), enabled: entry !== null }).data;
  const refused = refusal ?? told?.refusal;
  const held = heldHosts(told);
  const ways = otherWays(told);
  const pick = use && {
    use: (changes: Way["changes"]) => {
      const way = refused?.ways.find((one) => one.changes === changes);
      if (way) use(way);
    },
  };
  return (
    <Panel
      title={entry ? <span title={spanText(entry)}>{standingText(entry, now)}</span> : "Why it waits"}
      label="Why it waits"
      actions={entry && <EntryButtons entry={entry} />}
    >
      <Stack gap="sm" data-testid="why-waits">
        {entry && whyText(entry.why) !== refused?.detail && <Text size="sm">{whyText(entry.why)}</Text>}
        {refused && <Refusal refusal={refused} {...pick} />}
        {entry && (
          <>
            {held.length > 0 && <Reasons reasons={held} />}
            {ways.length > 0 && (
              <div>
                <Text size="sm" fw={600}>
                  What would change it
                </Text>
                <Reasons reasons={ways} />
              </div>
            )}
            <Text size="sm" className="wr-quiet">
              {classText(entry)} · submitted <When at={entry.submitted_at} /> ·{" "}
              <Link className="wr-link wr-underlined" to="/queue">
                Show the queue
              </Link>
            </Text>
          </>
        )}
        {entry && <WhyNot id={entry.id} />}
      </Stack>
    </Panel>
  );
}

/** The interval of the expected start, for the tooltip. */
const spanText = ({ estimate }: Queued) =>
  estimate ? `Expected between ${exact(estimate.low_at)} and ${exact(estimate.high_at)}` : undefined;

/** Submits the job with the change, then cancels the one that waits. */
function Changed({ job, way, close }: { job: Job; way: Way; close: () => void }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const request = changedRequest(job, way.changes);
  const [key] = useState(freshKey);
  const act = useMutation({
    mutationFn: async () => {
      const made = await post<JobsSubmitted>("/jobs", request, key);
      await post(`/jobs/${encodeURIComponent(job.id)}/cancel`).catch(({ message }: Error) =>
        notifications.show({ color: "red", autoClose: false, message: `${plain(job.name)} still waits. ${message}` }),
      );
      return made.jobs[0]!;
    },
    onSuccess: (made) => {
      for (const queryKey of [["jobs"], ["queue"]]) void client.invalidateQueries({ queryKey });
      void navigate({ to: "/jobs/$jobId", params: { jobId: made.id } });
    },
  });
  return (
    <FormDialog title={`Change ${plain(job.name)}`} close={close} act={act} ready submit="Submit the changed job">
      <Text size="sm">{plain(way.text)}</Text>
      <Text size="sm">
        A job with this change is submitted, and this one, with its place in the queue, is cancelled.
      </Text>
      <Same method="POST" path="/jobs" body={request} command={asJobCommand(request)} />
    </FormDialog>
  );
}
