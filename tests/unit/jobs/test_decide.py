"""Decisions about jobs, as tables: graphs, limits, and what its cluster means."""

from dataclasses import replace

import pytest

from tests.unit.clusters.made import cluster, workload
from windrow_master.clusters.model import ClusterPhase, WorkPhase
from windrow_master.jobs.decide import Seen, attempts_left, blocked_by, decide, waits_for
from windrow_master.jobs.model import PACKAGE_MAX, PACKAGES_MAX, Attempt, Job, JobId, JobRequest, JobState, Verdict
from windrow_master.jobs.request import attempt_key, checked
from windrow_master.jobs.states import JobEvent
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId, ClusterId

NOW = 10**18
S = JobState


def job(name="a", state=S.SUBMITTED, after=(), attempts=0, **more) -> Job:
    request = JobRequest(argv=("true",), name=name, after=tuple(JobId(one) for one in after), **more)
    had = tuple(Attempt(ClusterId(f"cluster_{n}"), NOW) for n in range(attempts))
    return Job(JobId(name), AccountId("account_1"), name, request, state, NOW, attempts=had)


def parents(**states):
    return {JobId(name): job(name, state) for name, state in states.items()}


@pytest.mark.parametrize(
    ("states", "waits", "blocked"),
    [
        ({"x": S.SUCCEEDED, "y": S.SUCCEEDED}, "", ""),
        ({"x": S.RUNNING, "y": S.SUCCEEDED}, "waits for x", ""),
        ({"x": S.MIGRATING, "y": S.QUEUED}, "waits for x, y", ""),
        ({"x": S.SUCCEEDED, "y": S.FAILED}, "waits for y", "y (y), which it comes after, is Failed"),
        ({"x": S.LOST, "y": S.RUNNING}, "waits for x, y", "x (x), which it comes after, is Lost"),
    ],
)
def test_a_job_waits_for_those_before_it_and_falls_with_them(states, waits, blocked) -> None:
    child = job("child", after=("x", "y"))
    assert waits_for(child, parents(**states)) == waits
    assert blocked_by(child, parents(**states)) == blocked
    found = decide(child, parents(**states), Seen(), NOW)
    expected = JobEvent.CANCEL if blocked else None if waits else JobEvent.ADMIT
    assert (found and found.event) == expected


def test_a_job_whose_parent_is_not_there_is_cancelled_and_not_forgotten() -> None:
    found = decide(job(after=("x",)), {}, Seen(), NOW)
    assert found is not None
    assert (found.event, found.reason) == (JobEvent.CANCEL, "x, which it comes after, is not there")


@pytest.mark.parametrize("state", [S.SUBMITTED, S.QUEUED, S.MIGRATING])
def test_a_deadline_ends_also_what_never_ran(state) -> None:
    found = decide(job(state=state, deadline_ns=NOW), {}, Seen(), NOW)
    assert found is not None
    assert (found.event, found.reason) == (JobEvent.FAIL, "its deadline has passed")


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.CANCELLED, S.LOST, S.CHECKPOINTING])
def test_nothing_follows_for_what_has_ended_or_is_being_collected(state) -> None:
    assert decide(job(state=state, deadline_ns=1), {}, Seen(), NOW) is None


def test_the_key_of_an_attempt_is_the_same_before_and_after_it_is_written_down() -> None:
    assert attempt_key(job(state=S.QUEUED)) == attempt_key(job(state=S.STARTING, attempts=1)) == "a/1"


@pytest.mark.parametrize(
    ("field", "state", "said"),
    [
        ("after_any", S.RUNNING, "waits for x"),
        ("after_any", S.LOST, ""),
        ("after_any", S.SUCCEEDED, ""),
        ("after_failure", S.CHECKPOINTING, "waits for x"),
        ("after_failure", S.FAILED, ""),
        ("after_failure", S.CANCELLED, ""),
        ("after_failure", S.SUCCEEDED, "x (x), whose failure it comes after, is Succeeded"),
    ],
)
def test_a_job_may_come_after_any_end_or_after_a_failure_alone(field, state, said) -> None:
    child = job("child", **{field: (JobId("x"),)})
    found = decide(child, parents(x=state), Seen(), NOW)
    if said.startswith("waits"):
        assert (found, waits_for(child, parents(x=state))) == (None, said)
    else:
        assert found is not None
        assert (found.event, found.reason) == (JobEvent.CANCEL if said else JobEvent.ADMIT, said)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("argv", {"argv": ()}),
        ("retries", {"retries": 101}),
        ("array_size", {"array_size": 1_001}),
        ("priority", {"priority": 101}),
        ("deadline", {"deadline_ns": NOW}),
        ("begin_at", {"begin_ns": NOW + 2, "deadline_ns": NOW + 2}),
        ("after", {"after": ("job_2",), "after_failure": ("job_2",)}),
        ("array_at_once", {"array_at_once": 2}),
        ("array_at_once", {"array_at_once": 0, "array_size": 3}),
        ("priority_class", {"priority_class": "first"}),
        ("budget", {"budget": 0}),
        ("max_duration_seconds", {"max_duration_ns": 1}),
        ("env", {"env": {"WINDROW_JOB_ID": "mine"}}),
        ("cpus", {"cpus": 0}),
        ("packages", {"packages": ("numpy",) * (PACKAGES_MAX + 1)}),
        ("packages", {"packages": ("x" * (PACKAGE_MAX + 1),)}),
    ],
)
def test_a_bad_request_is_refused_by_its_field(field, bad) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(JobRequest(**{"argv": ("true",)} | bad), JobId("job_1"), NOW)
    assert refused.value.subject == field


@pytest.mark.parametrize(
    ("code", "retries", "verdict", "said"),
    [
        (137, 1, Verdict.FAILED, "its command ended with 137: why"),
        (None, 1, Verdict.AGAIN, "its command ended, and its exit code is not known: why"),
        (None, 0, Verdict.FAILED, "its command ended, and its exit code is not known: why"),
    ],
)
def test_an_end_that_its_host_explains_is_explained_and_one_that_nobody_saw_is_tried_again(
    code, retries, verdict, said
) -> None:
    work = replace(workload(WorkPhase.EXITED), exit_code=code, detail="why")
    seen = Seen(cluster(ClusterPhase.RUNNING), work)
    found = decide(job(state=S.RUNNING, attempts=1, retries=retries), {}, seen, NOW)
    assert found is not None
    assert (found.event, found.verdict, found.reason) == (JobEvent.COLLECT, verdict, said)


def test_verdicts_are_stored_under_their_names() -> None:
    assert [verdict.value for verdict in Verdict] == ["succeeded", "failed", "cancelled", "again"]


def test_what_was_put_back_into_the_queue_uses_up_no_retry() -> None:
    two = job(state=S.RUNNING, attempts=2, retries=1)
    assert attempts_left(two) == 0
    back = replace(two.attempts[0], is_requeued=True)
    assert attempts_left(replace(two, attempts=(back, two.attempts[1]))) == 1
