"""Jobs in the queue: whose turn it is, what holds them back, and what people may change of that."""

from dataclasses import replace

import pytest

from tests.unit.clusters.world import HOST, OPERATOR, OTHER, OWNER, STRANGER, principal
from tests.unit.jobs.world import FOLDER, Feed, once, world
from windrow_master.clusters.messages import EntriesOf
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.jobs import answers
from windrow_master.jobs import service as jobs_service
from windrow_master.jobs.model import JobRequest, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.queue.order import Waits
from windrow_master.queue.ports import NOT_OPEN
from windrow_master.queue.quota import NodeLevel, Quota, QuotaItem
from windrow_master.queue.repository import QuotaRepository
from windrow_master.queue.shares import ROOT, Node
from windrow_master.queue.shares import WHOLE as INSTALLATION
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, NotFound
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

S = JobState
WHOLE = {"cpus": 4}
"""All processors of a host."""


def end(it, code=0, host=HOST):
    """What runs on a host ends, and is cleared away."""
    spec = it.market.spec(host)
    it.market.report(spec, WorkloadPhase.EXITED, host, exit_code=code)
    return spec


async def clear(it, spec, host=HOST):
    await it.tick(3)
    it.market.report(spec, WorkloadPhase.GONE, host)
    it.market.status(CommandKind.DELETE, CommandPhase.SUCCEEDED, host)


async def order(it, host=HOST):
    """The names of all jobs in the order in which they start on the one host."""
    found: list[str] = []
    while True:
        it.clock.advance(40 * SECOND)
        await it.tick(2)
        page = await it.jobs.list(OPERATOR, None, 100)
        at_work = [view.job for view in page if view.job.state is S.STARTING]
        if not at_work:
            return found
        (job,) = at_work
        found.append(job.name)
        await clear(it, end(it, host=host), host)


async def test_jobs_start_by_class_then_priority_then_age_and_again_so_after_a_restart(tmp_path) -> None:
    async with world(tmp_path) as it:
        for name, asked in (
            ("spot", {"priority_class": "spot", "priority": 100}),
            ("old", {}),
            ("young", {}),
            ("low", {"priority_class": "low"}),
            ("high", {"priority": 5}),
            ("last", {"priority": -5}),
        ):
            await it.submit(name=name, **asked, **WHOLE)
            it.clock.advance(SECOND)
        await it.submit(name="urgent", who=principal(roles=OPERATOR.roles), priority_class="urgent", **WHOLE)
        await it.tick()
        it.start_again()
        it.market.join()
        assert await order(it) == ["urgent", "high", "old", "young", "last", "low", "spot"]


async def test_projects_take_turns_whatever_their_number_of_jobs(tmp_path) -> None:
    async with world(tmp_path) as it:
        for number in range(4):
            await it.submit(name=f"many-{number}", image="busybox", **WHOLE)
        await it.submit(name="one", image="busybox", who=principal(STRANGER), **WHOLE)
        it.market.join()
        assert (await order(it)).index("one") <= 1


async def test_many_jobs_on_two_hosts_start_once_each_in_their_order_also_across_restarts(tmp_path) -> None:
    async with world(tmp_path) as it:
        names = [f"job-{number:02}" for number in range(12)]
        for number, name in enumerate(names):
            await it.submit(name=name, priority=-number, **WHOLE)
        it.market.join()
        it.market.join(OTHER)
        begun: list[str] = []
        for turn in range(8):
            if turn in (1, 4):
                it.start_again()
            it.clock.advance(40 * SECOND)
            await it.tick(2)
            page = await it.jobs.list(OPERATOR, None, 100)
            for job in sorted((one.job for one in page if one.job.state is S.STARTING), key=lambda job: job.name):
                _, _, (workload,) = await it.jobs.placed(principal(), job.job_id)
                begun.append(job.name)
                spec, host = it.market.spec_of(workload.workload_id), workload.host_id
                it.market.report(spec, WorkloadPhase.EXITED, host, exit_code=0)
                await clear(it, spec, host)
        assert len(begun) == len(set(begun)), "each once"
        assert begun == names


async def test_urgent_is_refused_to_whoever_may_not_use_it(tmp_path) -> None:
    async with world(tmp_path) as it:
        with pytest.raises(Forbidden, match="may not use the class urgent"):
            await it.submit(priority_class="urgent")
        assert not await it.jobs.list(principal(), None, 10)


async def test_a_job_begins_at_its_time_and_not_before(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(begin_ns=it.clock.wall_ns() + HOUR)
        await it.tick(2)
        it.clock.advance(HOUR - SECOND)
        await it.tick(2)
        waiting = await it.get(job)
        assert (waiting.state, waiting.reason) == (S.QUEUED, "it begins at 09:00 UTC at the earliest")
        assert it.queue.standing(job.job_id).state is Waits.BEGIN
        it.clock.advance(SECOND)
        await it.tick()
        assert (await it.get(job)).state is S.STARTING


@pytest.mark.parametrize(
    ("way", "code", "state"),
    [
        ("after_any", 1, S.STARTING),
        ("after_any", 0, S.STARTING),
        ("after_failure", 1, S.STARTING),
        ("after_failure", 0, S.CANCELLED),
    ],
)
async def test_a_job_comes_after_an_end_or_a_failure_also_across_a_restart(tmp_path, way, code, state) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        first = await it.submit(name="first", **WHOLE)
        child = await it.submit(name="child", **{way: (first.job_id,)}, **WHOLE)
        await it.tick(2)
        assert (await it.get(child)).reason == "waits for first"
        it.start_again()
        await it.tick()
        await clear(it, end(it, code))
        it.clock.advance(40 * SECOND)
        await it.tick(2)
        found = await it.get(child)
        assert found.state is state
        if state is S.CANCELLED:
            assert found.reason == f"first ({first.job_id}), whose failure it comes after, is Succeeded"


async def test_a_child_whose_parent_ended_between_two_looks_starts(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        first = await it.submit(cpus=64, deadline_ns=it.clock.wall_ns() + MINUTE)
        child = await it.submit(after_any=(first.job_id,))
        await it.tick()
        it.start_again()
        it.clock.advance(MINUTE)
        for _ in range(3):
            await it.tick()
        assert (await it.get(child)).state is S.STARTING


async def test_only_so_many_of_an_array_run_at_once(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        it.market.join(OTHER)
        asked = JobRequest(argv=("true",), array_size=5, array_at_once=2, name="sweep")
        await it.jobs.submit(principal(), asked)

        async def states():
            views = await it.jobs.list(principal(), None, 10)
            return [view.job.state for view in sorted(views, key=lambda view: view.job.array_index)]

        for _ in range(4):
            await it.tick()
            it.clock.advance(40 * SECOND)
        assert (await states()).count(S.STARTING) == 2
        assert (await states())[:2] == [S.STARTING, S.STARTING], "the first ones of it"


async def test_a_held_job_waits_until_it_is_released_and_then_from_the_end_on(tmp_path) -> None:
    async with world(tmp_path) as it:
        held = await it.submit(name="held", **WHOLE)
        await it.tick()
        first = (await it.jobs.hold(principal(), held.job_id)).job
        assert (first.held_by, first.reason) == ("account_owner", "it is held by account_owner")
        assert (await it.jobs.hold(principal(), held.job_id)).job == first, "held is held"
        await it.jobs.controller.tell([held.job_id], "no free GPU")
        assert (await it.get(held)).reason == first.reason, "what was found before it was held is no news"
        it.clock.advance(SECOND)
        await it.submit(name="later", **WHOLE)
        await it.tick()
        it.start_again()
        it.market.join()
        assert await order(it) == ["later"]
        released = (await it.jobs.release(principal(), held.job_id)).job
        assert (released.held_by, released.released_ns) == ("", it.clock.wall_ns())
        assert (await it.jobs.release(principal(), held.job_id)).job == released
        assert await order(it) == ["held"]


async def test_what_an_operator_holds_only_an_operator_releases(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.jobs.hold(principal(), job.job_id)
        assert (await it.jobs.hold(OPERATOR, job.job_id)).job.held_by == jobs_service.AN_OPERATOR
        assert (await it.jobs.hold(principal(), job.job_id)).job.held_by == jobs_service.AN_OPERATOR
        with pytest.raises(Forbidden, match="Only an operator can release it"):
            await it.jobs.release(principal(), job.job_id)
        for verb in (it.jobs.hold, it.jobs.release, it.jobs.top, it.jobs.requeue):
            with pytest.raises(NotFound):
                await verb(principal(STRANGER), job.job_id)
        await it.tick(2)
        assert (await it.get(job)).state is S.QUEUED
        await it.jobs.release(OPERATOR, job.job_id)
        await it.tick()
        assert (await it.get(job)).state is S.STARTING


async def test_what_runs_is_neither_held_nor_put_first_and_what_ended_is_not_put_back(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        it.run()
        await it.tick()
        for verb in (it.jobs.hold, it.jobs.release, it.jobs.top):
            with pytest.raises(Conflict, match=f"it is Running. Put it back first: windrow job requeue {job.job_id}"):
                await verb(principal(), job.job_id)
        before = await it.get(job)
        await it.jobs.cancel(principal(), job.job_id)
        for _ in range(2):
            with pytest.raises(Conflict, match="its command has ended"):
                await it.jobs.requeue(principal(), job.job_id)
            await it.tick(2)
        assert before.attempts[0].is_requeued is (await it.get(job)).attempts[0].is_requeued is False


async def test_a_job_at_the_top_comes_before_all_others_of_its_project(tmp_path) -> None:
    async with world(tmp_path) as it:
        await it.submit(name="high", priority=100, **WHOLE)
        job = await it.submit(name="top", priority=-100, **WHOLE)
        await it.tick()
        top = (await it.jobs.top(principal(), job.job_id)).job
        assert top.is_top and (await it.jobs.top(principal(), job.job_id)).job == top
        with pytest.raises(NotFound):
            await it.jobs.top(OPERATOR, job.job_id)
        it.market.join()
        assert await order(it) == ["top", "high"]


async def test_what_is_put_back_ends_its_attempt_and_waits_behind_the_others(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(name="back", retries=1, retries_on_exit=True, **WHOLE)
        await it.tick()
        spec = it.run()
        await it.tick()
        await it.submit(name="other", **WHOLE)
        it.clock.advance(SECOND)
        it.inside.log_bytes = b"so far"
        leaving = (await it.jobs.requeue(principal(), job.job_id)).job
        assert (leaving.state, leaving.reason) == (S.CHECKPOINTING, "it was put back into the queue")
        assert (await it.jobs.requeue(principal(), job.job_id)).job == leaving, "put back is put back"
        await it.tick()
        waiting = await it.get(job)
        assert (waiting.state, waiting.attempts[0].log_bytes) == (S.MIGRATING, 6)
        await clear(it, spec)
        assert await order(it) == ["other", "back"]
        assert (await it.get(job)).state is S.SUCCEEDED


async def test_what_is_put_back_before_it_ran_uses_up_no_retry(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        again = await it.submit(name="again", retries=1, retries_on_exit=True)
        await it.tick()
        assert (await it.jobs.requeue(principal(), again.job_id)).job.state is S.MIGRATING, "before it ran"
        for left in (1, 0):
            await it.tick()
            it.clock.advance(40 * SECOND)
            await it.tick()
            end(it, 1)
            await it.tick(3)
            now = await it.get(again)
            assert (now.state in (S.MIGRATING, S.STARTING)) is (left == 1)
        assert [one.is_requeued for one in now.attempts] == [True, False, False]


async def test_a_job_is_put_back_only_so_often(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(jobs_service, "REQUEUES_MAX", 1)
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        await it.jobs.requeue(principal(), job.job_id)
        it.clock.advance(40 * SECOND)
        it.market.join(OTHER)
        await it.tick()
        with pytest.raises(Conflict, match="1 times already"):
            await it.jobs.requeue(principal(), job.job_id)


async def test_a_job_that_is_cancelled_held_or_too_late_while_its_place_is_sought_gets_none(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        limit_ns = it.clock.wall_ns() + MINUTE
        jobs = [await it.submit(name=name, **WHOLE, deadline_ns=limit_ns) for name in ("cancelled", "held", "late")]
        await it.jobs.controller.tick()
        await it.jobs.cancel(principal(), jobs[0].job_id)
        await it.jobs.hold(principal(), jobs[1].job_id)
        it.market.write(
            lambda uow: uow[JobRepository].save(replace(uow[JobRepository].get(jobs[2].job_id), state=S.FAILED))
        )
        await it.queue.tick()  # it knows of none of this
        found = [await it.get(job) for job in jobs]
        assert [(one.state, one.attempts) for one in found] == [(S.CANCELLED, ()), (S.QUEUED, ()), (S.FAILED, ())]
        assert not it.market.commands(CommandKind.CREATE)


async def test_a_cancellation_waits_for_the_place_that_is_being_made_and_lets_it_go(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.jobs.controller.tick()
        create, cancelled = it.market.clusters.create, []

        async def slow(*asked, **more):
            cancelled.append(it.group.create_task(it.jobs.cancel(principal(), job.job_id)))
            return await create(*asked, **more)

        it.market.clusters.create = slow
        await it.tick()
        (task,) = cancelled
        assert task.result().job.state is S.CANCELLED
        assert it.market.commands(CommandKind.DELETE)


async def test_a_look_that_read_a_job_before_it_had_its_place_does_not_queue_it_again(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.jobs.controller.tick()
        before = it.store.read_now(lambda uow: it.jobs.controller._read(uow, [job.job_id]))
        await it.queue.tick()
        assert (await it.get(job)).state is S.STARTING
        it.jobs.controller._note(before[0])
        await it.queue.tick()
        assert len(it.queue) == 0 and it.queue.queue._running.keys() == {job.job_id}


async def test_lists_have_an_array_in_its_order(tmp_path) -> None:
    async with world(tmp_path) as it:
        made = await it.jobs.submit(principal(), JobRequest(argv=("true",), array_size=30, array_at_once=1))
        await it.tick()
        waits = [one.entry.index for one in it.queue.standings(None, 100)]
        listed = [one.job.array_index for one in await it.jobs.list(principal(), None, 100)]
        assert waits == [one.job.array_index for one in made] == list(range(30))
        assert listed == waits[::-1], "the latest first"


async def test_closed_hosts_are_left_out_and_the_reason_says_so(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.jobs.controller.tick()
        entry = it.queue
        await entry.tick()
        assert (await it.get(job)).state is S.STARTING
        again = await it.submit()
        await it.jobs.controller.tick()
        it.queue._changes.pop()()
        refused = await it.jobs.controller.place(it.queue.queue.entry(again.job_id), frozenset({HOST}))
        said = f"{NOT_OPEN} Besides, 1 host is kept for work that comes first, or for maintenance."
        assert refused.said == said
        it.market.join(OTHER)
        placed = await it.jobs.controller.place(it.queue.queue.entry(again.job_id), frozenset({HOST}))
        assert placed.hosts == (OTHER,)


async def test_an_attempt_that_goes_on_has_the_entry_of_its_job_and_one_that_ended_none(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        (attempt,) = (await it.get(job)).attempts

        def entry():
            def read(uow):
                asked = EntriesOf([uow[ClusterRepository].get(attempt.cluster_id)])
                return answers.entries_of_clusters(uow, asked, {}).get(attempt.cluster_id)

            return it.market.read(read)

        assert (entry().entry_id, entry().leaf) == (job.job_id, principal().account_id)
        await it.jobs.requeue(principal(), job.job_id)
        assert entry() is None


async def test_a_job_that_waits_for_its_folder_is_not_in_the_queue(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit(await_files=True)
        await it.tick()
        assert len(it.queue) == 0
        await it.jobs.put_folder(principal(), job.job_id, once(FOLDER))
        await it.tick()
        assert it.queue.standing(job.job_id).entry.entry_id == job.job_id


async def test_bad_requests_of_the_queue_change_nothing(tmp_path) -> None:
    async with world(tmp_path) as it:
        first = await it.submit()
        now_ns = it.clock.wall_ns()
        for asked in (
            {"array_at_once": 2},
            {"after": (first.job_id,), "after_any": (first.job_id,)},
            {"begin_ns": now_ns + DAY, "deadline_ns": now_ns + HOUR},
            {"priority_class": "first"},
        ):
            with pytest.raises(InvalidInput):
                await it.submit(**asked)
        for way in ("after_any", "after_failure"):
            with pytest.raises(NotFound):
                await it.submit(**{way: ("job_none",)})
        assert len(await it.jobs.list(principal(), None, 10)) == 1


async def test_a_job_whose_cluster_was_made_before_a_restart_does_not_wait_for_itself(tmp_path, monkeypatch) -> None:
    async def half(_, leaves):
        return [Node(node_id=one, parent=ROOT, ceiling=INSTALLATION // 2) for one in leaves]

    monkeypatch.setattr(Feed, "nodes", half)
    async with world(tmp_path) as it:
        for host in (HOST, OTHER):
            it.market.join(host)
        job = await it.submit(**WHOLE)
        await it.tick()
        made = (await it.get(job)).attempts[0].cluster_id
        # As if the write after the creation had never been: the row is Queued without an attempt.
        it.market.write(lambda uow: uow[JobRepository].save(replace(job, state=S.QUEUED)))
        it.start_again()
        await it.tick(2)
        assert [one.cluster_id for one in (await it.get(job)).attempts] == [made]
        assert len(it.queue) == 0


async def test_a_job_above_a_quota_keeps_no_job_of_another_project_that_asks_for_the_same_waiting(tmp_path) -> None:
    async with world(tmp_path) as it:
        above = await it.submit(image="busybox", **WHOLE)
        quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.CLUSTERS, limit=0)
        it.market.write(lambda uow: uow[QuotaRepository].save(quota))
        others = [await it.submit(image="busybox", who=principal(STRANGER), **WHOLE) for _ in range(2)]
        for host in (HOST, OTHER):
            it.market.join(host)
        await it.tick(2)
        assert [(await it.jobs.get(principal(STRANGER), one.job_id)).job.state for one in others] == [S.STARTING] * 2
        assert it.queue.standing(above.job_id).why.startswith("Quota clusters of the project")
