"""Wakes whoever follows the log of a job: when the job changes, and soon again after it has said something."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from windrow_master.jobs.model import JobId
from windrow_master.work_queue import WorkQueue
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

SOON_NS: Final = SECOND // 10
"""Before the look after news; each without news is twice as far from the last."""
LATE_NS: Final = SECOND


class Follower:
    """One who follows a job."""

    def __init__(self, job_id: JobId, clock: Clock) -> None:
        self._job_id, self._clock = job_id, clock
        self._due = WorkQueue[JobId](clock)
        self._pause_ns = SOON_NS

    def wake(self) -> None:
        """The job has changed."""
        self._pause_ns = SOON_NS
        self._due.add(self._job_id)

    async def wait(self, *, has_news: bool) -> None:
        """Return when it is time for the next look. has_news: the last one found something."""
        pause_ns = SOON_NS if has_news else self._pause_ns
        self._pause_ns = min(2 * pause_ns, LATE_NS)
        self._due.add(self._job_id, self._clock.monotonic_ns() + pause_ns)
        await self._due.wait()
        self._due.take()


class Followers:
    """All of them, while they follow. Used on the loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_job: dict[JobId, set[Follower]] = {}

    def changed(self, job_id: JobId) -> None:
        """A job has changed."""
        for follower in self._of_job.get(job_id, ()):
            follower.wake()

    @contextmanager
    def following(self, job_id: JobId) -> Iterator[Follower]:
        """One who follows this job."""
        follower = Follower(job_id, self._clock)
        self._of_job.setdefault(job_id, set()).add(follower)
        try:
            yield follower
        finally:
            others = self._of_job[job_id]
            others.discard(follower)
            if not others:
                del self._of_job[job_id]
