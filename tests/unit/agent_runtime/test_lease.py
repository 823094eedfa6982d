"""Tokens and deadlines of a host's slots."""

from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core import lease
from windrow_proto.ids import ClusterId, SlotId, WorkloadId
from windrow_proto.model import DeleteSpec, LeaseRenewal, SlotGrant, WorkloadSpec
from windrow_proto.units import MINUTE, SECOND

OURS, OTHER = WorkloadId("work_a"), WorkloadId("work_b")
SLOT = SlotId("GPU-1")


def _spec(workload_id=OURS, token=5, lease_ns=30 * MINUTE, paid_ns=15 * MINUTE, slot=SLOT):
    return WorkloadSpec(
        workload_id, ClusterId("cl"), (SlotGrant(slot, token),), "process", lease_ns=lease_ns, paid_ns=paid_ns
    )


def _book(spec=None, now_ns=0):
    spec = spec or _spec()
    return lease.grant(lease.mark(lease.LeaseBook(), spec.workload_id, spec.slots), spec, now_ns)


def test_a_lower_token_is_fenced_and_says_which_slot():
    fenced = lease.fence(_book(), OTHER, (SlotGrant(SLOT, 4),))
    assert fenced == lease.FencedBy(SLOT, 4, 5)
    assert "GPU-1" in fenced.detail and "5" in fenced.detail


def test_the_same_token_belongs_to_the_workload_that_brought_it():
    assert lease.fence(_book(), OURS, (SlotGrant(SLOT, 5),)) is None
    assert lease.fence(_book(), OTHER, (SlotGrant(SLOT, 5),)) is not None


def test_a_higher_token_passes_and_an_unknown_slot_passes():
    assert lease.fence(_book(), OTHER, (SlotGrant(SLOT, 6), SlotGrant(SlotId("GPU-2"), 1))) is None


def test_a_delete_of_an_older_holder_passes_when_the_slot_went_to_another_workload():
    book = lease.mark(_book(), OTHER, (SlotGrant(SLOT, 6),))
    assert lease.fence_delete(book, DeleteSpec(OURS, (SlotGrant(SLOT, 5),))) is None


def test_a_delete_that_is_older_than_its_own_workload_is_fenced():
    assert lease.fence_delete(_book(), DeleteSpec(OURS, (SlotGrant(SLOT, 4),))) is not None


def test_the_earlier_deadline_ends_the_lease_and_names_the_reason():
    book = _book()
    assert lease.next_deadline_ns(book) == 15 * MINUTE
    assert lease.lapsed(book, 15 * MINUTE - 1) == ()
    assert lease.lapsed(book, 15 * MINUTE) == (lease.Lapse(OURS, lease.UNPAID),)
    starved = _book(_spec(lease_ns=MINUTE))
    assert lease.lapsed(starved, MINUTE) == (lease.Lapse(OURS, lease.LAPSED),)


def test_a_renewal_counts_from_its_receipt_and_may_shorten():
    book = lease.renew(_book(), LeaseRenewal(OURS, 30 * MINUTE, 20 * MINUTE, 5), now_ns=MINUTE)
    assert lease.next_deadline_ns(book) == 21 * MINUTE
    book = lease.renew(book, LeaseRenewal(OURS, SECOND, 0, 5), now_ns=2 * MINUTE)
    assert lease.lapsed(book, 2 * MINUTE) == (lease.Lapse(OURS, lease.UNPAID),)


def test_a_renewal_under_another_token_or_for_a_stranger_changes_nothing():
    book = _book()
    assert lease.renew(book, LeaseRenewal(OURS, MINUTE, MINUTE, 4), 0) == book
    assert lease.renew(book, LeaseRenewal(OTHER, MINUTE, MINUTE, 5), 0) == book


def test_a_repeated_grant_does_not_prolong_the_lease():
    book = _book()
    assert lease.grant(book, _spec(), now_ns=5 * MINUTE) == book


def test_releasing_forgets_the_lease_and_keeps_the_token():
    book = lease.release(_book(), OURS)
    assert book.leases == {}
    assert lease.fence(book, OTHER, (SlotGrant(SLOT, 5),)) is not None


def test_a_duration_of_zero_sets_no_deadline():
    assert lease.next_deadline_ns(_book(_spec(lease_ns=0, paid_ns=0))) is None


@given(st.lists(st.tuples(st.sampled_from([OURS, OTHER]), st.integers(0, 20)), max_size=30))
def test_the_highest_token_of_a_slot_never_falls(grants):
    book, highest = lease.LeaseBook(), -1
    for workload_id, token in grants:
        slots = (SlotGrant(SLOT, token),)
        if lease.fence(book, workload_id, slots) is None:
            assert token >= highest
            book = lease.mark(book, workload_id, slots)
            highest = token
        assert book.marks[SLOT].token == highest if highest >= 0 else SLOT not in book.marks
