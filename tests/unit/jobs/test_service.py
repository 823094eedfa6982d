"""Jobs on a real store: from submitting to letting go, with hosts that are lost and a Master that begins again."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.clusters.world import HOST, OTHER, STRANGER, principal
from tests.unit.jobs.world import FOLDER, GONE, once, world
from windrow_master.clusters import environments
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.fleet.states import LinkEvent
from windrow_master.identity.model import Role
from windrow_master.jobs import controller, decide
from windrow_master.jobs.model import JobId, JobRequest, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.storage.artefacts import taken
from windrow_master.storage.retention_rules import KEPT_NS
from windrow_proto.errors import Conflict, IdempotencyMismatch, InvalidInput, NotFound, TooLarge, Unavailable
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents

S = JobState


async def text(pieces) -> bytes:
    return b"".join([piece async for piece in pieces])


async def test_a_job_runs_leaves_its_log_and_files_and_lets_its_cluster_go(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit("python", "train.py", await_files=True)
        await it.tick()
        assert ((await it.get(job)).state, (await it.get(job)).reason) == (S.SUBMITTED, "waits for its folder")

        await it.jobs.put_folder(principal(), job.job_id, once(FOLDER))
        await it.tick()
        assert (await it.get(job)).state is S.STARTING
        spec = it.market.spec()
        assert (spec.argv, spec.await_files, spec.env["WINDROW_JOB_ID"]) == (("python", "train.py"), True, job.job_id)
        it.market.report(spec, WorkloadPhase.WAITING_FILES)
        await it.tick(2)
        assert it.inside.sent == {spec.cluster_id: (FOLDER, True)}
        assert it.inside.times_sent == 1, "before its host could say that it runs"
        it.run(spec)
        await it.tick()
        assert (await it.get(job)).state is S.RUNNING
        it.inside.log_bytes, it.inside.tar = b"epoch 1\n", b"a tar"
        it.exit(spec)
        await it.tick(2)

        done = await it.get(job)
        assert (done.state, done.reason, done.attempts[-1].outcome) == (S.SUCCEEDED, "", "Succeeded")
        (attempt,) = done.attempts
        assert (attempt.exit_code, attempt.log_bytes, attempt.files_bytes) == (0, 8, 5)
        assert it.market.commands(CommandKind.DELETE)
        assert await text(await it.jobs.log(principal(), job.job_id)) == b"epoch 1\n"
        pieces, _ = await it.jobs.artefacts(principal(), job.job_id)
        assert await text(pieces) == b"a tar"


async def test_a_queued_job_says_what_the_plan_says_and_no_more_once_it_has_a_place(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(tier="nonsense/A")
        await it.tick(3)
        waiting = await it.jobs.get(principal(), job.job_id)
        assert waiting.refusal is not None and not waiting.refusal.is_possible
        assert waiting.job.reason == waiting.refusal.detail
        assert "No host of this market has CPUs in tier nonsense/A" in waiting.job.reason
        fits = await it.submit()
        await it.tick(3)
        assert (await it.jobs.get(principal(), fits.job_id)).refusal is None


async def test_a_job_waits_for_room_and_says_why(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit()
        await it.tick(3)
        waiting = await it.get(job)
        assert waiting.state is S.QUEUED
        assert "No real host has joined yet" in waiting.reason
        assert waiting.version == 3, "the same reason again is no news"
        assert await it.jobs.counts() == {S.QUEUED: (1, waiting.created_at_ns)}

        it.market.join()
        await it.tick()
        assert (await it.get(job)).state is S.STARTING
        assert await it.jobs.counts() == {S.STARTING: (1, waiting.created_at_ns)}
        assert sum((await it.jobs._clusters.counts()).values()) == 1


async def test_what_finds_no_place_is_tried_more_and_more_rarely_and_at_once_when_slots_are_free(tmp_path) -> None:
    async with world(tmp_path) as it:
        tried = []
        create = it.market.clusters.create

        async def counted(*asked, **more):
            tried.append(it.clock.monotonic_ns())
            return await create(*asked, **more)

        it.market.clusters.create = counted
        job = await it.submit()
        for _ in range(100):
            await it.tick()
            it.clock.advance(SECOND)
        assert [(at - tried[0]) // SECOND for at in tried] == [0, 1, 3, 7, 15, 31, 61, 91]
        it.market.join()
        await it.tick()
        assert (await it.get(job)).state is S.STARTING


async def test_a_master_that_died_after_making_the_cluster_takes_the_same_one(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        made = (await it.get(job)).attempts[0].cluster_id
        # As if the write after the creation had never been: the row is Queued without an attempt.
        queued = await it.store.read(lambda uow: uow[JobRepository].get(job.job_id))
        it.market.write(lambda uow: uow[JobRepository].save(replace(queued, state=S.QUEUED, attempts=())))
        it.start_again()
        await it.tick()
        assert [one.cluster_id for one in (await it.get(job)).attempts] == [made]
        assert len(it.market.commands(CommandKind.CREATE)) == 1

        it.market.write(lambda uow: uow[JobRepository].save(replace(queued, state=S.QUEUED, attempts=())))
        it.start_again()
        await it.jobs.cancel(principal(), job.job_id)
        assert it.market.commands(CommandKind.DELETE), "cancelled before it was written down, and still let go"


@pytest.mark.parametrize(("retries", "state"), [(1, S.STARTING), (0, S.LOST)])
async def test_a_lost_host_is_left_for_another_while_attempts_are_left(tmp_path, retries, state) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(retries=retries)
        await it.tick()
        it.run()
        await it.tick()
        it.market.join(OTHER)
        it.market.link(LinkEvent.SILENT)
        it.market.link(LinkEvent.SILENT_LONG)
        await it.tick()
        found = await it.get(job)
        assert found.state is state
        assert "is not heard of" in found.attempts[0].outcome
        assert len(found.attempts) == retries + 1
        if retries:
            assert it.market.spec(OTHER).env["WINDROW_ATTEMPT"] == "2"
        assert it.market.commands(CommandKind.DELETE, HOST)


@pytest.mark.parametrize("asked", [True, False])
async def test_an_exit_code_is_tried_again_only_where_that_was_asked(tmp_path, asked) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(retries=1, retries_on_exit=asked)
        await it.tick()
        it.exit(it.run(), code=3)
        await it.tick()
        it.market.join(OTHER)
        await it.tick(2)
        found = await it.get(job)
        assert found.attempts[0].exit_code == 3
        assert found.attempts[0].outcome == "its command ended with 3"
        assert (found.state, len(found.attempts)) == ((S.STARTING, 2) if asked else (S.FAILED, 1))


async def test_children_wait_and_fall_with_their_parent(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        parent = await it.submit(name="first")
        child = await it.submit(name="second", after=(parent.job_id,))
        grandchild = await it.submit(after=(child.job_id,))
        await it.tick()
        assert (await it.get(child)).reason == "waits for first"
        await it.jobs.cancel(principal(), parent.job_id)
        await it.tick(2)
        assert (await it.get(child)).reason == f"first ({parent.job_id}), which it comes after, is Cancelled"
        assert (await it.get(grandchild)).state is S.CANCELLED
        with pytest.raises(NotFound):
            await it.submit(after=(JobId("job_none"),))


@pytest.mark.parametrize(
    ("refuses", "state", "reason"),
    [
        ([InvalidInput("'../x' leads out of the folder.")], S.FAILED, "its host refused the folder: '../x' leads out"),
        ([TooLarge("The files are larger than the limit.")], S.FAILED, "its host refused the folder: The files are"),
        ([Unavailable("The host is busy.")], S.STARTING, ""),
        ([Unavailable("The host is busy.")] * 400, S.FAILED, "its folder did not come to its host within 600 s: The"),
    ],
)
async def test_a_folder_that_its_host_refuses_ends_the_job_and_another_try_has_its_time(
    tmp_path, refuses, state, reason
) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(await_files=True)
        await it.jobs.put_folder(principal(), job.job_id, once(FOLDER))
        await it.tick()
        it.market.report(it.market.spec(), WorkloadPhase.WAITING_FILES)
        it.inside.refuses = list(refuses)
        for _ in range(3):
            await it.tick(2)
            it.clock.advance(decide.SEND_NS // 2)
        job = await it.get(job)
        assert (job.state, job.reason[: len(reason)]) == (state, reason)
        assert bool(it.market.commands(CommandKind.DELETE)) is (state is S.FAILED), "its host is free again"


@pytest.mark.parametrize("body", [b"", b"hello", b"\x1f\x8b" + bytes(1022), FOLDER[:400], FOLDER[:512], b"x" * 1024])
async def test_what_is_no_whole_tar_is_refused_and_the_job_goes_on_waiting(tmp_path, body) -> None:
    async with world(tmp_path) as it:
        job = await it.submit(await_files=True)
        with pytest.raises(InvalidInput, match=r"not a (whole )?tar archive"):
            await it.jobs.put_folder(principal(), job.job_id, once(body))
        assert (await it.get(job)).folder_bytes is None
        assert await it.jobs.put_folder(principal(), job.job_id, once(FOLDER)) == len(FOLDER)


async def test_an_array_shares_its_folder_and_each_knows_its_index(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        it.market.join(OTHER)
        asked = JobRequest(argv=("true",), array_size=2, await_files=True)
        first, second = await it.jobs.submit(principal(), asked, "key")
        assert await it.jobs.submit(principal(), asked, "key") == (first, second)
        with pytest.raises(IdempotencyMismatch):
            await it.jobs.submit(principal(), JobRequest(argv=("false",)), "key")
        await it.jobs.put_folder(principal(), second.job.job_id, once(FOLDER))
        await it.tick()
        specs = [it.market.spec(host) for host in (HOST, OTHER)]
        assert sorted([(one.env["WINDROW_ARRAY_INDEX"], one.env["WINDROW_ARRAY_SIZE"]) for one in specs]) == [
            ("0", "2"),
            ("1", "2"),
        ]


async def test_a_host_is_told_in_clear_what_the_master_sets_for_a_job_and_nothing_of_its_renter(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit("true", env={"PIN": "1234"})
        await it.tick()
        (command,) = it.market.commands(CommandKind.CREATE)
        assert command.create is not None
        assert command.create.env == {"WINDROW_JOB_ID": job.job_id, "WINDROW_ATTEMPT": "1"}
        assert it.market.spec().env["PIN"] == "1234"


@pytest.mark.parametrize("value", ["hf_token", "job_mine", "12345", "12\n", "", "١"])
def test_what_is_no_id_and_no_number_is_sealed_whatever_it_is_called(value) -> None:
    job = {"WINDROW_JOB_ID": f"job_{'0' * 32}"}
    assert environments.in_clear(job | {"WINDROW_ATTEMPT": value, "PIN": "1234"}) == job.keys()
    assert environments.in_clear({"WINDROW_JOB_ID": value, "WINDROW_ATTEMPT": "1"}) == frozenset()


def test_a_machine_of_no_job_has_all_of_its_values_sealed() -> None:
    assert environments.in_clear({"WINDROW_ATTEMPT": "4711", "WINDROW_ARRAY_SIZE": "1"}) == frozenset()


async def test_what_was_submitted_is_told_before_what_follows_from_it(tmp_path) -> None:
    async with world(tmp_path) as it:
        asked = JobRequest(argv=("true",), array_size=2)
        first, second = [view.job for view in await it.jobs.submit(principal(), asked)]
        await it.jobs.cancel(principal(), first.job_id)
        again = (await it.jobs.rerun(principal(), first.job_id)).job
        log = it.store.read_now(lambda uow: uow.audit_log.list())
        seen = it.store.read_now(lambda uow: uow.events.newest(again.job_id, limit=9))
    assert [(one.subject, one.action) for one in log if one.action.startswith("job.")] == [
        (first.job_id, "job.submit"),
        (first.job_id, "job.admit"),
        (second.job_id, "job.admit"),
        (first.job_id, "job.cancel"),
        (again.job_id, "job.submit"),
        (again.job_id, "job.admit"),
    ]
    assert [one.kind for one in reversed(seen)] == ["job.submitted", "job.queued"]


async def test_only_what_waits_for_nothing_else_is_queued_with_its_submission(tmp_path) -> None:
    async with world(tmp_path) as it:
        done, failed, living = [await it.submit("true") for _ in range(3)]
        await it.jobs.cancel(principal(), failed.job_id)
        it.market.join()
        await it.tick()
        it.exit(it.run(it.market.spec()))
        await it.tick(2)
        ended = [one for one in (done, living) if (await it.get(one)).state is S.SUCCEEDED]
        (ok,), (goes_on,) = ended, [one for one in (done, living) if one not in ended]
        asked: dict[S, list[dict[str, Any]]] = {
            S.QUEUED: [
                {"after": (ok.job_id,)},
                {"after_any": (ok.job_id, failed.job_id)},
                {"after_failure": (failed.job_id,)},
                {"begin_ns": it.clock.wall_ns() + MINUTE},
                {"array_size": 1},
            ],
            S.SUBMITTED: [
                {"after": (failed.job_id,)},
                {"after": (ok.job_id, goes_on.job_id)},
                {"after_any": (goes_on.job_id,)},
                {"after_failure": (ok.job_id,)},
                {"await_files": True},
                {"await_files": True, "after": (ok.job_id,)},
            ],
        }
        for state, all_more in asked.items():
            for more in all_more:
                job = await it.submit("true", key=str(more), **more)
                assert (job.state, await it.submit("true", key=str(more), **more)) == (state, job), more
        with pytest.raises(InvalidInput):
            await it.submit("true", deadline_ns=it.clock.wall_ns() - SECOND)


@pytest.mark.parametrize("verb", ["hold", "cancel"])
async def test_what_is_held_or_cancelled_right_after_its_submission_does_not_start(tmp_path, verb) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit("true")
        await getattr(it.jobs, verb)(principal(), job.job_id)
        await it.tick(2)
        assert it.market.commands(CommandKind.CREATE) == []
        assert (await it.get(job)).state is (S.QUEUED if verb == "hold" else S.CANCELLED)


async def test_a_master_that_dies_right_after_a_submission_starts_the_job_after_its_restart(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit("true")
        it.start_again()
        await it.tick(2)
        assert (await it.get(job)).state is S.STARTING


async def test_limits_end_a_job_with_their_reason_and_keep_what_it_wrote(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(max_duration_ns=60 * SECOND)
        await it.tick()
        it.run()
        await it.tick()
        it.inside.log_bytes = b"so far"
        it.clock.advance(60 * SECOND)
        await it.tick(2)
        found = await it.get(job)
        assert (found.state, found.reason) == (S.FAILED, "it ran for the 60 s that it may")
        assert await text(await it.jobs.log(principal(), job.job_id)) == b"so far"

        late = await it.submit(deadline_ns=it.clock.wall_ns() + SECOND, name="late", after=(job.job_id,))
        it.clock.advance(SECOND)
        await it.tick()
        assert (await it.get(late)).reason == "its deadline has passed"


async def test_a_budget_is_never_passed(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(budget=MICROCENTS_PER_UNIT // 1000)
        await it.tick()
        spec = it.run()
        price = (await it.store.read(lambda uow: uow[ClusterRepository].get(spec.cluster_id))).price_per_hour
        for _ in range(600):
            it.clock.advance(60 * SECOND)
            await it.tick(2)
            if (await it.get(job)).state is S.FAILED:
                break
        found = await it.get(job)
        ran_ns = found.ended_at_ns - found.attempts[0].started_at_ns
        assert found.reason == "its budget of 0.001 would be passed"
        assert 0 < price * ran_ns // (3600 * SECOND) <= found.request.budget


async def test_a_budget_below_a_minute_is_refused_by_the_plan_and_the_submission(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        request = JobRequest(argv=("true",), budget=Microcents(1))
        for ask in (it.jobs.plan, it.jobs.submit):
            with pytest.raises(InvalidInput, match=r"The budget 0\.00000001 is less than a minute costs here"):
                await ask(principal(), request)
        assert not await it.jobs.list(principal(), None, 10)


async def test_a_job_that_waited_never_starts_where_its_budget_does_not_pay_for_a_minute(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit(budget=1)
        await it.tick()
        assert (await it.get(job)).state is S.QUEUED
        it.market.join()
        it.clock.advance(MINUTE)
        await it.tick(2)
        found = await it.get(job)
        assert (found.state, found.attempts) == (S.FAILED, ())
        assert found.reason.startswith("The budget 0.00000001 is less than a minute costs here")


async def test_a_further_attempt_never_starts_where_the_rest_of_the_budget_does_not_pay_for_a_minute(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit("false", budget=MICROCENTS_PER_UNIT // 1000, retries=1, retries_on_exit=True)
        await it.tick()
        spec = it.run()
        price = (await it.store.read(lambda uow: uow[ClusterRepository].get(spec.cluster_id))).price_per_hour
        it.market.receipt(spec, 1, 3600 * MICROCENTS_PER_UNIT // 1000 / price - 30, final=True, end_reason="exited")
        it.exit(spec, 1)
        await it.tick(3)
        it.market.report(spec, WorkloadPhase.GONE)
        it.market.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
        it.clock.advance(MINUTE)
        await it.tick(3)
        found = await it.get(job)
        assert (found.state, len(found.attempts)) == (S.FAILED, 1)
        assert found.reason.startswith("The rest of the budget, 0.000")


async def test_files_that_cannot_be_had_are_said_and_hold_nothing_up(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        spec = it.run()
        await it.tick()
        it.inside.error = GONE
        it.exit(spec)
        await it.tick(2)
        found = await it.get(job)
        assert found.state is S.SUCCEEDED
        assert "its files could not be had: The work was deleted" in found.reason
        assert found.attempts[0].files_bytes is None
        with pytest.raises(Conflict):
            await it.jobs.artefacts(principal(), job.job_id)


@pytest.mark.row("F13")
async def test_logs_and_files_of_jobs_count_against_the_quota_and_one_takes_half_of_what_is_left(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(controller, "QUOTA_BYTES", 40)
    async with world(tmp_path) as it:
        it.market.join()
        kept = []
        for number in range(3):
            job = await it.submit(name=f"job-{number}")
            await it.tick()
            spec = it.run()
            it.inside.log_bytes, it.inside.tar = b"a log\n", b"a tar of 21 bytes ..."
            it.exit(spec)
            await it.tick(3)
            (attempt,) = (await it.get(job)).attempts
            kept.append((attempt.files_bytes, attempt.files_truncated))
            it.market.report(spec, WorkloadPhase.GONE)
            await it.tick(2)
        assert kept == [(20, True), (7, True), (0, True)]
        assert it.market.read(lambda uow: taken(uow, principal().account_id)[1]) == 3 * 6 + 27
        it.market.clock.advance(KEPT_NS)
        assert it.market.read(lambda uow: taken(uow, principal().account_id)[1]) == 0


async def test_what_is_cancelled_is_collected_first_and_what_has_ended_stays(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        it.run()
        await it.tick()
        assert (await it.jobs.cancel(principal(), job.job_id)).job.state is S.CHECKPOINTING
        await it.tick()
        assert (await it.get(job)).state is S.CANCELLED
        assert (await it.get(job)).attempts[0].files_bytes == 3
        before = await it.get(job)
        assert (await it.jobs.cancel(principal(), job.job_id)).job == before

        again = (await it.jobs.rerun(principal(), job.job_id)).job
        it.market.join(OTHER)
        await it.tick()
        assert (await it.get(again)).state is S.STARTING


async def test_what_a_job_left_is_had_for_thirty_days(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(await_files=True)
        await it.jobs.put_folder(principal(), job.job_id, once(FOLDER))
        await it.tick()
        it.market.report(it.market.spec(), WorkloadPhase.WAITING_FILES)
        await it.tick(2)
        it.exit(it.run())
        await it.tick(2)
        ended_ns = (await it.get(job)).ended_at_ns
        it.clock.advance(ended_ns + KEPT_NS - 1 - it.clock.wall_ns())
        assert await text((await it.jobs.artefacts(principal(), job.job_id))[0]) == b"tar"
        it.clock.advance(1)
        for asked in (it.jobs.log, it.jobs.follow, it.jobs.artefacts):
            with pytest.raises(NotFound, match="30 days"):
                await asked(principal(), job.job_id)
        with pytest.raises(Conflict, match="submit the job again"):
            await it.jobs.rerun(principal(), job.job_id)
        assert (await it.get(job)).state is S.SUCCEEDED


async def test_a_running_jobs_log_is_kept_piece_by_piece_for_the_day_its_host_is_lost(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit()
        await it.tick()
        it.run()
        await it.tick(2)
        for written in (b"one ", b"one two "):
            it.inside.log_bytes = written
            it.clock.advance(20 * SECOND)
            await it.tick()
        it.inside.error = GONE
        it.market.link(LinkEvent.SILENT)
        it.market.link(LinkEvent.SILENT_LONG)
        await it.tick()
        assert (await it.get(job)).state is S.LOST
        assert await text(await it.jobs.log(principal(), job.job_id)) == b"one two "


async def test_the_higher_priority_gets_the_only_place(tmp_path) -> None:
    async with world(tmp_path) as it:
        low = await it.submit(cpus=4, priority=0)
        it.clock.advance(SECOND)
        high = await it.submit(cpus=4, priority=5)
        it.market.join()
        await it.tick()
        assert ((await it.get(low)).state, (await it.get(high)).state) == (S.QUEUED, S.STARTING)


async def test_a_renter_reads_that_an_operator_cancelled_their_job(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit()
        view = await it.jobs.cancel(principal(STRANGER, {Role.OPERATOR}), job.job_id)
        assert view.job.reason == "it was cancelled by an operator of this market"


async def test_nobody_reaches_a_strangers_job(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit()
        stranger = principal(STRANGER)
        for asked in (it.jobs.get, it.jobs.cancel, it.jobs.rerun, it.jobs.log, it.jobs.follow, it.jobs.artefacts):
            with pytest.raises(NotFound):
                await asked(stranger, job.job_id)
        with pytest.raises(NotFound):
            await it.jobs.put_folder(stranger, job.job_id, once(b""))
        with pytest.raises(NotFound):
            await it.submit(who=stranger, after=(job.job_id,))


async def test_who_follows_is_told_every_attempt_and_the_end(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(retries=1, retries_on_exit=True, cpus=4)
        await it.tick()
        it.inside.log_bytes = b"first "
        it.exit(it.run(), code=1)
        await it.tick()
        it.market.join(OTHER)
        await it.tick()
        spec = it.market.spec(OTHER)
        it.inside.log_bytes = b"second"
        it.market.report(spec, WorkloadPhase.EXITED, OTHER, exit_code=0)
        await it.tick(2)
        assert (await it.get(job)).state is S.SUCCEEDED
        assert await text(await it.jobs.follow(principal(), job.job_id)) == b"first second"
        assert await text(await it.jobs.log(principal(), job.job_id, 1)) == b"first "
