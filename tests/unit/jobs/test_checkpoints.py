"""Checkpoints of jobs on a real store: the work of one host goes on on the next, and nothing of it fails a job."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.clusters.world import OTHER, STRANGER, principal
from tests.unit.jobs.world import FOLDER, once, world
from windrow_master.fleet.states import LinkEvent
from windrow_master.jobs.checkpoints import PATIENCE_NS
from windrow_master.jobs.model import JobState
from windrow_master.storage.checkpoints import Passed
from windrow_master.storage.transfer import Outcome
from windrow_proto.errors import DeadlineExceeded, HostUnreachable, InvalidInput, LinkClosed, NotFound, TooMany
from windrow_proto.model import WorkloadPhase
from windrow_proto.units import SECOND

S = JobState


class Twin:
    """Checkpoints by owner, as numbers; `made`: what the work has made whole."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.put: list[tuple[str, int | None]] = []
        self.made: int | None = None
        self.error: Exception | None = None
        self.asked, self.passed = 0, tuple[Any, ...]()

    async def save(self, account_id, owner, workload):
        self.asked += 1
        if self.error is not None:
            raise self.error
        if self.made is None or self.held.get(owner, -1) >= self.made:
            return None
        self.held[owner] = self.made
        return SimpleNamespace(step=self.made)

    async def restore(self, account_id, owner, workload):
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.put.append((workload.host_id, self.held.get(owner)))
        return Outcome(self.held.get(owner), self.passed)


def said(it, job):
    rows = it.store.read_now(lambda uow: uow.events.newest(job.job_id, limit=100))
    return [row.text for row in reversed(rows) if row.kind.startswith("job.checkpoint_")]


async def running(it, twin, **more):
    """A job with a folder whose first attempt runs."""
    it.mover.twin = twin
    it.market.join(simulated=more.get("simulated", False))
    job = await it.submit(await_files=True, retries=1, name="train", **more)
    await it.jobs.put_folder(principal(), job.job_id, once(FOLDER))
    await it.tick()
    it.market.report(it.market.spec(), WorkloadPhase.WAITING_FILES)
    await it.tick()
    it.run()
    await it.tick()
    return job


async def moved(it):
    """Its host is lost, and the next one waits for its files."""
    it.market.join(OTHER)
    it.market.link(LinkEvent.SILENT)
    it.market.link(LinkEvent.SILENT_LONG)
    await it.tick()
    spec = it.market.spec(OTHER)
    it.market.report(spec, WorkloadPhase.WAITING_FILES, OTHER)
    return spec


async def test_the_next_attempt_has_the_newest_checkpoint_before_it_starts(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        assert (twin.asked, twin.put) == (0, []), "a first attempt starts from scratch"
        for made in (None, 4, 4, 7):
            twin.made = made
            it.clock.advance(60 * SECOND)
            await it.tick(2)
        assert (twin.asked, twin.held) == (4, {job.job_id: 7})

        spec = await moved(it)
        await it.tick()
        assert (twin.put, spec.cluster_id in it.inside.sent) == ([(OTHER, 7)], False)
        await it.tick()
        assert (len(twin.put), spec.cluster_id in it.inside.sent) == (1, True)
        assert said(it, job) == [
            "train: its checkpoint of step 4 is saved",
            "train: its checkpoint of step 7 is saved",
            "train: it goes on from its checkpoint of step 7",
        ]


async def test_of_simulated_work_no_checkpoint_is_asked_for(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin, simulated=True)
        it.clock.advance(60 * SECOND)
        await it.tick(2)
        assert (twin.asked, said(it, job)) == (0, [])


@pytest.mark.parametrize("error", [LinkClosed("The host hung up."), HostUnreachable(), DeadlineExceeded("Too late.")])
async def test_a_restore_that_fails_for_a_moment_is_tried_again(tmp_path, error) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        twin.held[job.job_id] = 9
        spec = await moved(it)
        for _ in range(3):
            twin.error = error
            await it.tick()
            assert (twin.put, spec.cluster_id in it.inside.sent) == ([], False)
        await it.tick(2)
        assert (twin.put, spec.cluster_id in it.inside.sent) == ([(OTHER, 9)], True)
        assert said(it, job) == [
            f"train: its checkpoint could not be restored yet, it is tried again: {error.detail}",
            "train: it goes on from its checkpoint of step 9",
        ]


async def test_a_restore_that_fails_for_long_is_given_up(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        spec = await moved(it)
        twin.error = HostUnreachable()
        await it.tick()
        it.clock.advance(PATIENCE_NS)
        twin.error = HostUnreachable()
        await it.tick(2)
        assert spec.cluster_id in it.inside.sent
        assert "it starts from scratch" in said(it, job)[-1]


@pytest.mark.parametrize("is_broken", [True, False])
async def test_without_a_whole_checkpoint_it_starts_from_scratch(tmp_path, is_broken) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        spec = await moved(it)
        twin.error = InvalidInput("The host said something else.") if is_broken else None
        twin.passed = () if is_broken else (Passed(3, "a part is missing"),)
        await it.tick(2)
        assert it.inside.sent[spec.cluster_id] == (FOLDER, True)
        assert (await it.get(job)).state is S.STARTING
        scratch = "train: its checkpoint could not be restored, it starts from scratch: The host said something else."
        passed = "train: its checkpoint of step 3 is not whole: a part is missing"
        assert said(it, job) == [scratch if is_broken else passed]


async def test_where_too_many_are_moved_the_restore_is_asked_for_again(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        twin.held[job.job_id] = 9
        spec = await moved(it)
        twin.error = TooMany("8 checkpoints are being moved already.")
        await it.tick()
        assert (twin.put, spec.cluster_id in it.inside.sent) == ([], False)
        await it.tick(2)
        assert (twin.put, spec.cluster_id in it.inside.sent) == ([(OTHER, 9)], True)


async def test_a_save_that_fails_is_said_once_and_fails_nothing(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        twin.error = InvalidInput("A link is in it.")
        for _ in range(3):
            it.clock.advance(60 * SECOND)
            await it.tick()
        assert (twin.asked, (await it.get(job)).state) == (3, S.RUNNING)
        assert said(it, job) == ["train: its checkpoint could not be saved: A link is in it."]


@pytest.mark.parametrize(("every", "asked"), [(0, 0), (30, 4), (120, 1)])
async def test_how_often_is_asked_for(tmp_path, every, asked) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        await running(it, twin, checkpoint_every_ns=every * SECOND)
        await it.tick()
        for _ in range(12):
            it.clock.advance(10 * SECOND)
            await it.tick()
        assert twin.asked == asked


async def test_a_job_owns_its_artefacts_and_intervals_have_limits(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit()
        assert await it.jobs.owner(principal(), job.job_id) == job.account_id
        with pytest.raises(NotFound):
            await it.jobs.owner(principal(STRANGER), job.job_id)
        with pytest.raises(InvalidInput, match="checkpoint_every_seconds"):
            await it.submit(checkpoint_every_ns=SECOND)
