"""Who follows a job looks when it changes, soon after it said something, and ever more rarely while it says nothing."""

import asyncio

from tests.master_support import ManualClock
from windrow_master.jobs.followers import LATE_NS, SOON_NS, Followers
from windrow_master.jobs.model import JobId
from windrow_proto.units import SECOND

JOB, OTHER = JobId("job_one"), JobId("job_other")


class Stopped(ManualClock):
    """A clock on which nothing that waits for a time ever goes on."""

    async def sleep_ns(self, duration_ns: int) -> None:
        await asyncio.Event().wait()


class Counted(ManualClock):
    """A clock that moves with whoever waits, and keeps how long each did."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[int] = []

    async def sleep_ns(self, duration_ns: int) -> None:
        self.waited.append(duration_ns)
        self.advance(duration_ns)


async def test_a_change_of_the_job_wakes_its_followers_and_nobody_else() -> None:
    followers = Followers(Stopped())
    with followers.following(JOB) as one, followers.following(JOB) as two, followers.following(OTHER) as other:
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            waiting = [group.create_task(each.wait(has_news=False)) for each in (one, two)]
            patient = group.create_task(other.wait(has_news=False))
            await asyncio.sleep(0)
            followers.changed(JOB)
            await asyncio.gather(*waiting)
            assert not patient.done()
            patient.cancel()


async def test_a_change_during_a_look_is_not_missed() -> None:
    followers = Followers(Stopped())
    with followers.following(JOB) as one:
        followers.changed(JOB)
        async with asyncio.timeout(10):
            await one.wait(has_news=False)


async def test_looks_grow_rarer_while_there_are_no_news_and_begin_again_with_some() -> None:
    clock = Counted()
    with Followers(clock).following(JOB) as one:
        for has_news in (False, False, False, False, False, False, True, False):
            await one.wait(has_news=has_news)
    soon = [SOON_NS, 2 * SOON_NS, 4 * SOON_NS, 8 * SOON_NS, LATE_NS, LATE_NS]
    assert (clock.waited, LATE_NS) == ([*soon, SOON_NS, 2 * SOON_NS], SECOND)


async def test_nothing_is_kept_of_who_follows_no_more() -> None:
    followers = Followers(ManualClock())
    with followers.following(JOB), followers.following(JOB):
        pass
    assert not followers._of_job
