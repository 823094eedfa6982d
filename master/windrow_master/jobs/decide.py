"""Decides the next step of one job from its folder, its parents, its cluster and the clock. Pure.

Late or repeated knowledge is harmless: each answer is judged again by the table in states.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters import end_limits
from windrow_master.clusters.model import Cluster, ClusterPhase, Workload, WorkPhase
from windrow_master.clusters.stopping import RESTS
from windrow_master.jobs.model import Job, JobId, JobState, Verdict
from windrow_master.jobs.states import FINAL, PLACEABLE, JobEvent
from windrow_master.market import metering
from windrow_master.queue.estimate import clock_text
from windrow_master.queue.model import End, When
from windrow_proto.units import HOUR, SECOND, Microcents

NOTHING: Final = Microcents(0)
COLLECT_NS: Final = 30 * SECOND
"""For the files of work that goes on costing money while they are brought in."""
COLLECT_ENDED_NS: Final = 600 * SECOND
"""For the files of work that has ended; its host keeps them until they are in, at no cost."""

RUN_ENDS_NS: Final = 60 * SECOND
"""For the end of a run at a service that was asked to end, with its log and files."""

SEND_NS: Final = 600 * SECOND
"""For its folder to come to its host, from the first time that it did not: a job does not hold a host for longer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An event for the table, the reason to show for it, and for COLLECT what follows it."""

    event: JobEvent
    reason: str = ""
    verdict: Verdict | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The Master's knowledge of the cluster of the attempt that goes on; None where there is none.

    earlier, charged: what the attempts before it, and it, were charged so far. limit: the spending limit that it comes
    to, in words; empty: none. run_price: per hour, where the attempt is a run.
    """

    cluster: Cluster | None = None
    workload: Workload | None = None
    earlier: Microcents = NOTHING
    charged: Microcents = NOTHING
    limit: str = ""
    run_price: Microcents = NOTHING

    @property
    def price_per_hour(self) -> Microcents:
        """Of the attempt that goes on."""
        return self.run_price if self.cluster is None else self.cluster.price_per_hour


def decide(job: Job, parents: Mapping[JobId, Job], seen: Seen, now_ns: int) -> Answer | None:
    """Return the next step of a job; None when there is none. parents: of the jobs it comes after those that are
    there."""
    if job.state in FINAL or job.state is JobState.CHECKPOINTING:
        return None
    if job.state is JobState.SUBMITTED or job.state in PLACEABLE:
        return _waiting(job, parents, seen, now_ns)
    return _holding(job, seen, now_ns)


def end_of(job: Job) -> End | None:
    """Return how and when a job has ended; None: it has not."""
    return End(job.state is JobState.SUCCEEDED, job.ended_at_ns or 0) if job.state in FINAL else None


def blocked_by(job: Job, parents: Mapping[JobId, Job]) -> str:
    """Return why a job can never run because of one before it; empty while it can."""
    for parent_id, when in job.request.comes_after.items():
        parent = parents.get(parent_id)
        if parent is None:
            return f"{parent_id}, which it comes after, is not there"
        end = end_of(parent)
        if end is not None and not end.satisfies(when):
            which = "whose failure it comes after" if when is When.FAILURE else "which it comes after"
            return f"{parent.name} ({parent_id}), {which}, is {parent.state.value}"
    return ""


def waits_for(job: Job, parents: Mapping[JobId, Job]) -> str:
    """Return the needs of a submitted job, in words; empty: nothing."""
    if job.request.await_files and job.folder_bytes is None:
        return "waits for its folder"
    ways = job.request.comes_after.items()
    ends = ((parents[one].name, when, end_of(parents[one])) for one, when in ways)
    names = [name for name, when, end in ends if end is None or not end.satisfies(when)]
    return f"waits for {', '.join(names)}" if names else ""


def _waiting(job: Job, parents: Mapping[JobId, Job], seen: Seen, now_ns: int) -> Answer | None:
    limit = _limit(job, seen, now_ns)
    if limit:
        return Answer(JobEvent.FAIL, limit)
    if job.state is not JobState.SUBMITTED:
        return None
    blocked = blocked_by(job, parents)
    if blocked:
        return Answer(JobEvent.CANCEL, blocked)
    if waits_for(job, parents):
        return None
    begin_ns = job.request.begin_ns or 0
    return Answer(
        JobEvent.ADMIT, f"it begins at {clock_text(begin_ns, now_ns)} at the earliest" if begin_ns > now_ns else ""
    )


def _holding(job: Job, seen: Seen, now_ns: int) -> Answer | None:
    if job.attempts[-1].run_id:  # it begins and ends as the service says
        limit = _limit(job, seen, now_ns)
        return Answer(JobEvent.COLLECT, limit, Verdict.FAILED) if limit else None
    cluster, workload = seen.cluster, seen.workload
    if cluster is None or workload is None:
        return Answer(JobEvent.FAIL, "its machine is not there")
    is_going = cluster.phase in (*RESTS, ClusterPhase.FINISHED, ClusterPhase.DELETING, ClusterPhase.DELETED)
    if workload.phase is WorkPhase.EXITED or (is_going and cluster.reason and workload.exit_code is not None):
        return _exited(job, workload)
    if is_going:
        return Answer(JobEvent.FAIL, cluster.reason or "its machine was deleted", None, workload.exit_code)
    if cluster.phase is ClusterPhase.FAILED:
        return _broken(job, workload, cluster.reason or "its machine failed")
    if workload.lost_since_ns is not None:
        return _broken(job, workload, f"{workload.host_name} is not heard of")
    limit = _limit(job, seen, now_ns)
    if limit:
        return Answer(JobEvent.COLLECT, limit, Verdict.FAILED)
    if job.state is JobState.STARTING and workload.phase is WorkPhase.RUNNING:
        return Answer(JobEvent.RUNS)
    return None


def _exited(job: Job, workload: Workload) -> Answer:
    code = workload.exit_code
    if code == 0:
        return Answer(JobEvent.COLLECT, "", Verdict.SUCCEEDED, code)
    said = "its command ended, and its exit code is not known" if code is None else f"its command ended with {code}"
    said += f": {workload.detail}" if workload.detail else ""
    # No exit code: nobody saw its end, as when its host went down and is back; that is no end of its own.
    if (code is None or job.request.retries_on_exit) and attempts_left(job):
        return Answer(JobEvent.COLLECT, said, Verdict.AGAIN, code)
    return Answer(JobEvent.COLLECT, said, Verdict.FAILED, code)


def _broken(job: Job, workload: Workload, why: str) -> Answer:
    """It went without its command having ended."""
    if attempts_left(job):
        return Answer(JobEvent.AGAIN, why, None, workload.exit_code)
    event = JobEvent.FAIL if workload.lost_since_ns is None else JobEvent.LOSE
    return Answer(event, why, None, workload.exit_code)


ENDS: Final = {
    Verdict.SUCCEEDED: JobEvent.SUCCEED,
    Verdict.FAILED: JobEvent.FAIL,
    Verdict.CANCELLED: JobEvent.CANCEL,
    Verdict.AGAIN: JobEvent.AGAIN,
}
"""The end of a job once its log and files are in, by its verdict."""


def run_ended(job: Job, exit_code: int | None, said: str) -> Answer:
    """Return what follows where a run at a service is over. exit_code None: its command did not end by itself."""
    if job.state is JobState.CHECKPOINTING and job.verdict is not None:
        return Answer(ENDS[job.verdict], job.reason, None, exit_code)
    if exit_code == 0:
        return Answer(JobEvent.SUCCEED, "", None, 0)
    why = said or ("it was lost" if exit_code is None else f"its command ended with {exit_code}")
    if (exit_code is None or job.request.retries_on_exit) and attempts_left(job):
        return Answer(JobEvent.AGAIN, why, None, exit_code)
    return Answer(JobEvent.LOSE if exit_code is None else JobEvent.FAIL, why, None, exit_code)


def unsent(job: Job, why: str, *, is_refused: bool) -> Answer:
    """Return what follows where its folder did not come to its host. is_refused: any other would refuse it too."""
    if is_refused:
        return Answer(JobEvent.FAIL, f"its host refused the folder: {why}")
    event = JobEvent.AGAIN if attempts_left(job) else JobEvent.FAIL
    return Answer(event, f"its folder did not come to its host within {SEND_NS // SECOND} s: {why}")


def attempts_left(job: Job) -> int:
    """Return how often it may begin again; what was put back into the queue and planned moves do not count."""
    return job.request.retries + 1 - sum(not one.is_requeued for one in job.attempts)


def _limit(job: Job, seen: Seen, now_ns: int) -> str:
    """Return which of its limits a job has come to; empty: none."""
    asked = job.request
    if asked.deadline_ns is not None and now_ns >= asked.deadline_ns:
        return "its deadline has passed"
    began_ns = job.attempts[-1].started_at_ns if job.has_cluster else None
    running_ns = 0 if began_ns is None else max(0, now_ns - began_ns)
    if asked.max_duration_ns is not None and running_ns >= asked.max_duration_ns:
        return end_limits.ran_out(asked.max_duration_ns)
    if asked.budget is not None and owed_soon(seen, running_ns) > asked.budget:
        return end_limits.used_up(asked.budget)
    return seen.limit


def next_limit_ns(job: Job, seen: Seen, now_ns: int) -> int | None:
    """Return when a job comes to the first of its limits if it goes on as it does, in wall time; None: it comes to
    none."""
    if job.state in FINAL or job.state is JobState.CHECKPOINTING:
        return None
    asked = job.request
    ends = [] if asked.deadline_ns is None else [asked.deadline_ns]
    began_ns = job.attempts[-1].started_at_ns if job.has_cluster else None
    if began_ns is not None and asked.max_duration_ns is not None:
        ends.append(began_ns + asked.max_duration_ns)
    if began_ns is not None and asked.budget is not None and seen.price_per_hour:
        left = max(0, asked.budget - owed_soon(seen, max(0, now_ns - began_ns)))
        ends.append(now_ns + max(SECOND, left * HOUR // seen.price_per_hour))
    return min(ends, default=None)


def owed_soon(seen: Seen, running_ns: int) -> int:
    """At most what all of its attempts will have cost by the time it can be ended, in microcents."""
    price = seen.price_per_hour
    spent = metering.Spent(seen.charged, -(-price * running_ns // HOUR))
    return seen.earlier + end_limits.owed_soon(price, spent)
