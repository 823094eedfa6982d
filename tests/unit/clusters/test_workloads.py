"""The meaning of hosts' reports."""

from dataclasses import replace
from itertools import permutations

import pytest

from tests.unit.clusters.made import NOW, cluster, report, workload
from windrow_master.clusters.model import ClusterPhase, WorkPhase
from windrow_master.clusters.reports import (
    END_OVERDUE_NS,
    FILES_WAIT_NS,
    LOST_AFTER_NS,
    Judgement,
    advanced,
    is_end_overdue,
    judge,
    lost,
    observed,
)
from windrow_master.clusters.states import ClusterEvent, step
from windrow_proto.model import WorkloadPhase
from windrow_proto.units import SECOND


def test_reports_in_any_order_end_in_the_furthest_phase() -> None:
    reports = [
        report(WorkloadPhase.PREPARING),
        report(WorkloadPhase.RUNNING, running_ns=SECOND),
        report(WorkloadPhase.EXITED, running_ns=9 * SECOND, exit_code=2),
        report(WorkloadPhase.GONE, running_ns=9 * SECOND, exit_code=2),
    ]
    for order in permutations(reports):
        at = workload()
        for each in order:
            at = observed(at, each, NOW)
        assert (at.phase, at.exit_code, at.running_ns) == (WorkPhase.GONE, 2, 9 * SECOND)


def test_a_report_under_another_token_is_about_somebody_else() -> None:
    assert observed(workload(), report(WorkloadPhase.RUNNING, token=2), NOW) == workload()


def test_the_moment_of_its_end_is_kept() -> None:
    at = observed(workload(), report(WorkloadPhase.EXITED, exit_code=0), NOW)
    assert observed(at, report(WorkloadPhase.EXITED, exit_code=0), NOW + SECOND).ended_at_ns == NOW


def test_a_lost_workload_is_found_again_by_the_next_report() -> None:
    at = lost(advanced(workload(), WorkPhase.RUNNING, NOW), NOW)
    assert lost(at, NOW + SECOND).lost_since_ns == NOW
    assert observed(at, report(WorkloadPhase.RUNNING), NOW).lost_since_ns is None
    assert lost(workload(WorkPhase.GONE), NOW).lost_since_ns is None


def test_why_work_ended_is_said_with_its_exit_code() -> None:
    why = "the workload ran out of memory at its limit of 64 MiB"
    at = observed(workload(), report(WorkloadPhase.EXITED, exit_code=137, detail=why), NOW)
    found = judge(ClusterPhase.RUNNING, [at], NOW)
    assert found is not None
    assert found == Judgement(ClusterEvent.UNDONE, f"exit 137: {why}")


def judged(phase: ClusterPhase, *works: WorkPhase, now_ns: int = NOW) -> ClusterEvent | None:
    made = [workload(each, number) for number, each in enumerate(works)]
    found = judge(phase, made, now_ns)
    return found.event if found else None


@pytest.mark.parametrize(
    ("phase", "works", "event"),
    [
        (ClusterPhase.CREATING, [WorkPhase.PENDING], None),
        (ClusterPhase.CREATING, [WorkPhase.WAITING_FILES], None),
        (ClusterPhase.CREATING, [WorkPhase.RUNNING], ClusterEvent.READY),
        (ClusterPhase.CREATING, [WorkPhase.RUNNING, WorkPhase.PREPARING], None),
        (ClusterPhase.CREATING, [WorkPhase.EXITED], ClusterEvent.UNDONE),
        (ClusterPhase.RUNNING, [WorkPhase.EXITED, WorkPhase.RUNNING], ClusterEvent.READY),
        (ClusterPhase.FINISHED, [WorkPhase.EXITED], None),
        (ClusterPhase.CREATING, [WorkPhase.FAILED], ClusterEvent.BROKEN),
        (ClusterPhase.RUNNING, [WorkPhase.GONE], ClusterEvent.BROKEN),
        (ClusterPhase.RUNNING, [WorkPhase.STOPPING], ClusterEvent.BROKEN),
        (ClusterPhase.DELETING, [WorkPhase.STOPPING], None),
        (ClusterPhase.DELETING, [WorkPhase.GONE], ClusterEvent.GONE),
        (ClusterPhase.DELETING, [WorkPhase.GONE, WorkPhase.RUNNING], None),
        (ClusterPhase.DELETED, [WorkPhase.RUNNING], None),
        (ClusterPhase.FAILED, [WorkPhase.RUNNING], None),
    ],
)
def test_a_cluster_is_judged_by_all_of_its_workloads(
    phase: ClusterPhase, works: list[WorkPhase], event: ClusterEvent | None
) -> None:
    assert judged(phase, *works) == event


def test_a_lost_host_degrades_and_after_thirty_minutes_fails() -> None:
    away = lost(workload(WorkPhase.RUNNING), NOW)
    found = judge(ClusterPhase.RUNNING, [away], NOW)
    assert found is not None and found.event is ClusterEvent.IMPAIRED and "host a is not heard of" in found.reason
    found = judge(ClusterPhase.DEGRADED, [away], NOW + LOST_AFTER_NS)
    assert found == Judgement(ClusterEvent.BROKEN, "host_lost: host a was not heard of for 30 minutes")


def test_a_delete_does_not_wait_for_a_host_beyond_the_lease() -> None:
    away = lost(workload(WorkPhase.STOPPING), NOW)
    assert judge(ClusterPhase.DELETING, [away], NOW + LOST_AFTER_NS - 1) is None
    found = judge(ClusterPhase.DELETING, [away], NOW + LOST_AFTER_NS)
    assert found is not None and found.event is ClusterEvent.GONE


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([0], Judgement(ClusterEvent.DONE, "exit 0")),
        ([0, 0], Judgement(ClusterEvent.DONE, "exit 0")),
        ([3], Judgement(ClusterEvent.UNDONE, "exit 3")),
        ([None], Judgement(ClusterEvent.UNDONE, "its exit code is not known")),
        ([0, 3], Judgement(ClusterEvent.UNDONE, "rank 0 on host a: exit 3")),
    ],
)
def test_work_that_has_ended_is_over_as_its_exit_codes_say(codes: list[int | None], said: Judgement) -> None:
    works = [replace(workload(WorkPhase.EXITED, number), exit_code=code) for number, code in enumerate(codes)]
    assert judge(ClusterPhase.RUNNING, works, NOW) == said


def test_files_that_never_come_do_not_block_a_slot_for_ever() -> None:
    assert judged(ClusterPhase.CREATING, WorkPhase.WAITING_FILES, now_ns=NOW + FILES_WAIT_NS) is ClusterEvent.DELETE


@pytest.mark.parametrize(
    ("phase", "is_overdue"),
    [(WorkPhase.RUNNING, True), (WorkPhase.FAILED, True), (WorkPhase.EXITED, False), (WorkPhase.GONE, False)],
)
def test_what_did_not_end_a_minute_after_it_was_asked_to_is_just_deleted(phase: WorkPhase, is_overdue: bool) -> None:
    ending, _ = step(cluster(ClusterPhase.RUNNING), ClusterEvent.EXPIRE, "", NOW)

    assert is_end_overdue(ending, workload(phase), NOW + END_OVERDUE_NS) == is_overdue
    assert not is_end_overdue(ending, workload(phase), NOW + END_OVERDUE_NS - 1)
    assert not is_end_overdue(cluster(ClusterPhase.RUNNING), workload(phase), NOW + END_OVERDUE_NS)
