"""Reconciling ends what nobody wants, tells of what is lost, and never judges too early."""

from windrow_master.fleet.model import DesiredWorkload
from windrow_master.fleet.reconcile import MISSING_GRACE_NS, ORPHAN_GRACE_NS, Findings, compare
from windrow_proto.ids import SlotId, WorkloadId
from windrow_proto.model import ObservedWorkload, SlotGrant, WorkloadPhase

W = WorkloadId("work_1")
S1 = SlotGrant(SlotId("GPU-1"), 3)
WANTED = DesiredWorkload(W, (S1,), should_run=True)


def seen(phase=WorkloadPhase.RUNNING, slots=(S1,)):
    return ObservedWorkload(W, phase, slots)


def look(desired, observed, now_ns=0, before=Findings(), under_way=frozenset()):  # noqa: B008
    return compare(desired, observed, under_way=under_way, before=before, now_ns=now_ns)


def test_what_is_wanted_and_runs_is_left_alone():
    assert look([WANTED], [seen()]) == Findings()


def test_what_is_wanted_and_missing_is_asked_for_and_lost_at_the_next_look():
    first = look([WANTED], [])
    assert (first.lost, first.ask) == ((), True)
    second = look([WANTED], [], MISSING_GRACE_NS, first)
    assert second.lost == (WANTED,)


def test_what_reappears_is_not_lost():
    first = look([WANTED], [])
    second = look([WANTED], [seen()], MISSING_GRACE_NS, first)
    third = look([WANTED], [], MISSING_GRACE_NS, second)
    assert (second.lost, third.lost) == ((), ())


def test_a_workload_whose_create_is_open_is_not_judged():
    first = look([WANTED], [], under_way=frozenset({W}))
    assert first == Findings()


def test_an_orphan_is_deleted_after_five_minutes_and_not_before():
    first = look([], [seen()])
    assert (first.delete, first.ask) == ((), True)
    early = look([], [seen()], ORPHAN_GRACE_NS - 1, first)
    late = look([], [seen()], ORPHAN_GRACE_NS, early)
    assert early.delete == ()
    assert [spec.workload_id for spec in late.delete] == [W]


def test_a_workload_under_an_old_token_is_an_orphan():
    first = look([WANTED], [seen(slots=(SlotGrant(SlotId("GPU-1"), 2),))])
    assert W in first.orphan_since_ns


def test_what_should_have_ended_and_is_still_there_is_an_orphan_and_what_is_gone_is_not():
    ended = DesiredWorkload(W, (S1,), should_run=False)
    assert W in look([ended], [seen(WorkloadPhase.EXITED)]).orphan_since_ns
    assert look([ended], [seen(WorkloadPhase.GONE)]) == Findings()
