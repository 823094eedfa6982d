"""Decisions about jobs, as tables: graphs, limits, and what its cluster means."""

from dataclasses import replace

import pytest

from tests.unit.clusters.made import cluster, workload
from windrow_master.clusters.model import ClusterPhase, WorkPhase
from windrow_master.jobs.decide import (
    TRY_FIRST_NS,
    TRY_MAX_NS,
    Seen,
    Tries,
    blocked_by,
    decide,
    refused,
    waits_for,
)
from windrow_master.jobs.model import PACKAGE_MAX, PACKAGES_MAX, Attempt, Job, JobId, JobRequest, JobState, Verdict
from windrow_master.jobs.request import attempt_key, checked, order
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


def test_the_queue_goes_by_priority_then_age() -> None:
    old, high = job("a"), job("b", priority=1)
    young = replace(job("0"), created_at_ns=NOW + 1)
    assert sorted([young, old, high], key=order) == [high, old, young]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("argv", {"argv": ()}),
        ("retries", {"retries": 101}),
        ("array_size", {"array_size": 1_001}),
        ("priority", {"priority": 101}),
        ("deadline", {"deadline_ns": NOW}),
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


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, TRY_FIRST_NS), (TRY_FIRST_NS, 2 * TRY_FIRST_NS), (TRY_MAX_NS - 1, TRY_MAX_NS), (TRY_MAX_NS, TRY_MAX_NS)],
)
def test_each_try_in_vain_doubles_the_wait_up_to_its_most(before, after) -> None:
    assert refused(before and Tries(before, 0), NOW) == Tries(after, NOW + after)
