"""Jobs of one shape wait for one answer: what may be refused alone is a shape of its own. All else is in the entry."""

from dataclasses import replace
from typing import Any

import pytest

from windrow_master.jobs.entries import entry_of, took_ns, waits
from windrow_master.jobs.model import Attempt, Job, JobId, JobRequest, JobState
from windrow_master.queue.model import Entry, PriorityClass, When
from windrow_master.spec import Resources, fields_of
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.volumes import Mount

JOB = Job(JobId("job_1"), AccountId("a"), "job_1", JobRequest(argv=("true",)), JobState.QUEUED, 1)


def entry(job: Job) -> Entry:
    return entry_of(job, {})


def kind(job: Job) -> Any:
    found = entry(job)
    return found.need, found.shape, found.leaf


def other(kind: Any) -> Any:
    return "other" if kind is str or getattr(kind, "__supertype__", None) is str else 7


@pytest.mark.parametrize("field", fields_of(Resources), ids=lambda one: one.attribute)
def test_what_says_which_host_will_do_makes_another_shape(field: Any) -> None:
    changed = replace(JOB, request=replace(JOB.request, **{field.attribute: other(field.kind)}))
    assert kind(changed) != kind(JOB)


def test_so_do_the_account_simulated_hosts_volumes_and_whose_limits_it_counts_for() -> None:
    request = JOB.request
    volumes = replace(JOB, request=replace(request, volumes=(Mount("data", "/data"),)))
    simulated = replace(JOB, request=replace(request, simulated=True))
    others = volumes, simulated, replace(JOB, account_id=AccountId("b")), replace(JOB, spenders=("token_1",))
    assert len({kind(one) for one in (JOB, *others)}) == 5


def test_a_name_or_a_command_makes_none() -> None:
    assert kind(replace(JOB, request=replace(JOB.request, name="b", argv=("false",)))) == kind(JOB)


def test_an_entry_has_all_by_which_the_queue_orders_it() -> None:
    asked = replace(
        JOB.request, priority_class="spot", priority=-3, begin_ns=7, max_duration_ns=9, after=(JobId("x"),),
        after_any=(JobId("y"),), after_failure=(JobId("z"),), array_size=5, array_at_once=2,
    )  # fmt: skip
    found = entry(replace(JOB, request=asked, array_index=4, held_by="ada", released_ns=6, is_top=True))
    assert (found.priority_class, found.priority, found.begin_ns, found.limit_ns) == (PriorityClass.SPOT, -3, 7, 9)
    assert found.after == (("x", When.OK), ("y", When.ANY), ("z", When.FAILURE))
    assert (found.array, found.index, found.at_once) == ("job_1", 4, 2)
    assert (found.held_by, found.released_ns, found.is_top, found.submitted_ns) == ("ada", 6, True, 1)


def test_what_runs_costs_what_its_tier_does() -> None:
    job = replace(JOB, request=replace(JOB.request, gpus=2))
    costs = {"h100/A": 4000}
    assert entry_of(job, costs).cost.gpus == 2000
    assert entry_of(job, costs, "h100/A").cost.gpus == 8000


@pytest.mark.parametrize(
    ("state", "files", "folder", "expected"),
    [
        (JobState.SUBMITTED, False, None, True),
        (JobState.SUBMITTED, True, None, False),
        (JobState.SUBMITTED, True, 9, True),
        (JobState.MIGRATING, False, None, True),
        (JobState.STARTING, False, None, False),
        (JobState.FAILED, False, None, False),
    ],
)
def test_a_job_is_in_the_queue_while_it_waits_for_others_a_time_or_a_place(state, files, folder, expected) -> None:
    request = replace(JOB.request, await_files=files)
    assert waits(replace(JOB, state=state, request=request, folder_bytes=folder)) is expected


def test_only_runs_that_ended_by_themselves_tell_how_long_such_work_takes() -> None:
    ran = Attempt(ClusterId("cluster_1"), 1, started_at_ns=10, ended_at_ns=25)
    assert took_ns(replace(JOB, attempts=(replace(ran, exit_code=0),))) == 15
    assert took_ns(replace(JOB, attempts=(ran,))) is None
    assert took_ns(JOB) is None
