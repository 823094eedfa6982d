"""Checkpoints stay for a time after the end of their job or cluster, on a real store. Volumes: test_volumes.py."""

from dataclasses import dataclass, replace
from typing import cast

import pytest

from tests.support.objects import MemoryStore
from tests.unit.clusters.test_stopping import m as m
from tests.unit.clusters.test_stopping import stopped
from tests.unit.clusters.test_volumes import saved
from tests.unit.clusters.world import OWNER
from tests.unit.jobs.test_decide import job
from windrow_master.jobs import retention as job_retention
from windrow_master.jobs.model import JobId, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.storage import checkpoints
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.model import object_key
from windrow_master.storage.retention import RetentionService
from windrow_master.storage.retention_rules import KEPT_NS, SETTLED_NS, Stay, of_ended
from windrow_proto.units import DAY, HOUR

GOES_ON = Stay(checkpoints.KEEP)


@pytest.mark.parametrize(
    ("ended_ns", "stay"),
    [
        (None, GOES_ON),
        (0, GOES_ON),
        (SETTLED_NS - 1, GOES_ON),
        (SETTLED_NS, None),
        (KEPT_NS - 1, None),
        (KEPT_NS, Stay(0, KEPT_NS)),
    ],
)
def test_what_has_ended_is_kept_for_a_while_and_then_not_at_all(ended_ns, stay):
    now_ns = 10 * KEPT_NS
    assert of_ended(None if ended_ns is None else now_ns - ended_ns, now_ns) == stay


@dataclass
class Kept:
    objects: MemoryStore


@pytest.fixture
def objects(m):
    return MemoryStore(now_ns=m.clock.wall_ns())


@pytest.fixture
def retention(m, objects):
    kept = cast(ArtefactService, Kept(objects))
    return RetentionService(m.store, kept, m.clock, {"job": job_retention.stays}, [job_retention.FOLDER])


def owners(objects):
    return {key.split("/")[1] for key in objects.held}


def passes(m, objects, span_ns):
    m.clock.advance(span_ns)
    objects.now_ns = m.clock.wall_ns()


async def test_checkpoints_of_a_cluster_outlive_it_by_thirty_days_and_a_stopped_one_keeps_all(m, objects, retention):
    rests = await stopped(m)
    over, spec = await m.running()
    await saved(objects, rests, 1)
    await saved(objects, over, 1)
    await m.ended(over, spec, 2, 10)

    passes(m, objects, KEPT_NS - HOUR)
    assert await retention.sweep() == 0
    assert owners(objects) == {rests, over}
    passes(m, objects, 2 * HOUR)
    assert await retention.sweep() == 3
    assert owners(objects) == {rests}


async def test_checkpoints_of_a_job_outlive_it_by_thirty_days(m, objects, retention):
    began_ns = m.clock.wall_ns()
    ended = replace(job("job_over", JobState.SUCCEEDED), account_id=OWNER, ended_at_ns=began_ns)
    goes_on = replace(job("job_going", JobState.RUNNING), account_id=OWNER)
    for one in (ended, goes_on):
        m.write(lambda uow, one=one: uow[JobRepository].add(one, None, b""))
    for owner in ("job_over", "job_going", "job_unknown"):
        for step in range(1, 6):
            await saved(objects, owner, step)
    await saved(objects, "job_over", 6, whole=False)

    passes(m, objects, SETTLED_NS - HOUR)
    assert await retention.sweep() == 2
    assert await checkpoints.steps(objects, "job_over") == await checkpoints.steps(objects, "job_going") == (5, 4, 3)
    assert await checkpoints.steps(objects, "job_unknown") == (5, 4, 3, 2, 1)
    passes(m, objects, KEPT_NS)
    assert await retention.sweep() == 3 * 3 + 5 * 3
    assert owners(objects) == {"job_going"}
    assert m.read(lambda uow: uow[JobRepository].get(JobId("job_over"))).ended_at_ns == began_ns


async def test_what_a_database_restored_from_before_knows_nothing_of_stays_while_any_of_it_is_young(
    m, objects, retention
):
    await saved(objects, "cluster_lost", 1)
    passes(m, objects, KEPT_NS - HOUR)
    await saved(objects, "cluster_lost", 2)
    passes(m, objects, 2 * HOUR)
    before = dict(objects.held)
    assert await retention.sweep() == 0
    assert objects.held == before


async def test_what_is_kept_of_jobs_goes_thirty_days_after_the_last_that_may_want_it(m, objects, retention):
    began_ns = m.clock.wall_ns()
    first = replace(job("job_1", JobState.SUCCEEDED), account_id=OWNER, group="job_1", ended_at_ns=began_ns)
    again = replace(job("job_2", JobState.FAILED), account_id=OWNER, group="job_1", ended_at_ns=began_ns + DAY)
    goes_on = replace(job("job_3", JobState.RUNNING), account_id=OWNER, group="job_3")
    for one in (first, again, goes_on):
        m.write(lambda uow, one=one: uow[JobRepository].add(one, None, b""))
    for key in ("job_1/folder", "job_1/0001/files", "job_2/0001/log/0", "job_3/folder", "job_unknown/folder"):
        objects._keep(object_key(f"jobs/{key}"), b"x")

    passes(m, objects, KEPT_NS)
    assert await retention.sweep() == 1
    assert owners(objects) == {"job_1", "job_2", "job_3"}, "of the first the second has the folder"
    passes(m, objects, DAY)
    assert await retention.sweep() == 3
    assert owners(objects) == {"job_3"}
