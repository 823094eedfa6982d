"""Makes the queue's entry of a job, and of the attempt that goes on. Pure."""

from collections.abc import Mapping

from windrow_master.clusters import entries
from windrow_master.jobs.model import Job, JobState
from windrow_master.jobs.states import PLACEABLE
from windrow_master.queue.model import Entry, PriorityClass
from windrow_proto.ids import HostId


def waits(job: Job) -> bool:
    """Return whether it is in the queue: it has its folder, and no cluster."""
    is_whole = not job.request.await_files or job.folder_bytes is not None
    return job.state in PLACEABLE or (job.state is JobState.SUBMITTED and is_whole)


def entry_of(job: Job, tier_costs: Mapping[str, int], tier: str | None = None, kept: HostId | None = None) -> Entry:
    """The entry of a job. tier_costs: of a card, in permille. tier: that it runs in; None: it waits. kept: the host
    that was bought for it, where it waits for no other."""
    asked = job.request
    return entries.entry_of(
        asked,
        job.account_id,
        job.job_id,
        job.created_at_ns,
        tier_costs=tier_costs,
        tier=tier,
        kept=kept,
        spenders=job.spenders,
        priority_class=PriorityClass[asked.priority_class.upper()],
        priority=asked.priority,
        begin_ns=asked.begin_ns or 0,
        released_ns=job.released_ns,
        after=tuple(asked.comes_after.items()),
        array=job.group if asked.array_size else "",
        index=job.array_index,
        at_once=asked.array_at_once,
        held_by=job.held_by,
        is_top=job.is_top,
    )


def took_ns(job: Job) -> int | None:
    """Return how long its last run took; None: it never ran, or did not end by itself."""
    last = job.attempts[-1] if job.attempts else None
    if last is None or last.exit_code is None or last.started_at_ns is None or last.ended_at_ns is None:
        return None
    return max(0, last.ended_at_ns - last.started_at_ns)
