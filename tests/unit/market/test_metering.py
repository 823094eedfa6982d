"""How much running time may be charged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.market.rentals import CLUSTER, GRANT, HOST, START, line, receipt
from windrow_master.market.metering import (
    SILENCE_GRACE_NS,
    Flaw,
    Reading,
    billable_ns,
    flaw_of,
    read,
    renewed,
    seen,
    unreported_ns,
)
from windrow_proto.ids import ClusterId, HostId, SlotId
from windrow_proto.model import Receipt, SlotGrant
from windrow_proto.units import HOUR, SECOND


def test_nothing_is_billable_before_the_first_receipt() -> None:
    assert billable_ns(seen(line(), START + HOUR)) == 0


def test_the_longest_signed_time_counts_whatever_came_last() -> None:
    after = read(line(), Reading(receipt(3, 30 * SECOND), START + 31 * SECOND))
    after = read(after, Reading(receipt(2, 20 * SECOND), START + 40 * SECOND))
    assert billable_ns(after) == 30 * SECOND
    assert (after.receipts, after.first_number, after.last_number) == (2, 2, 3)


def test_time_beyond_the_lease_is_not_billable() -> None:
    after = read(line(lease_ns=HOUR), Reading(receipt(1, 2 * HOUR), START + 3 * HOUR))
    assert billable_ns(after) == HOUR


def test_a_host_cannot_have_run_longer_than_it_was_watched_and_one_minute() -> None:
    after = read(line(), Reading(receipt(1, 2 * HOUR), START + HOUR))
    assert billable_ns(after) == HOUR + SILENCE_GRACE_NS


def test_silence_charges_nothing_and_a_late_receipt_heals_it() -> None:
    quiet = read(line(), Reading(receipt(1, 10 * SECOND), START + 10 * SECOND))
    assert billable_ns(quiet) == 10 * SECOND
    healed = read(quiet, Reading(receipt(60, 600 * SECOND), START + 610 * SECOND))
    assert billable_ns(healed) == 600 * SECOND


def test_a_lease_only_grows_and_ends_with_the_final_receipt() -> None:
    assert renewed(line(lease_ns=HOUR), START).lease_until_ns == START + HOUR
    ended = read(line(lease_ns=HOUR), Reading(receipt(1, SECOND, final=True, reason="exited"), START + SECOND))
    assert renewed(ended, START + 9 * HOUR).lease_until_ns == START + HOUR
    assert (ended.is_final, ended.end_reason, ended.exit_code) == (True, "exited", 0)


def test_what_ran_since_the_last_word_is_spoken_for() -> None:
    running = read(line(), Reading(receipt(), START + 10 * SECOND))
    assert unreported_ns(running, START + 14 * SECOND) == 4 * SECOND
    assert unreported_ns(line(), START + 14 * SECOND) == 0


@pytest.mark.parametrize(
    ("host", "change", "flaw"),
    [
        (HOST, {}, None),
        (HostId("host_b"), {}, Flaw.OTHER_HOST),
        (HOST, {"cluster_id": ClusterId("cluster_b")}, Flaw.OTHER_CLUSTER),
        (HOST, {"slots": (SlotGrant(SlotId("GPU-1"), 6),)}, Flaw.OTHER_SLOTS),
        (HOST, {"slots": (GRANT, SlotGrant(SlotId("GPU-2"), 7))}, Flaw.OTHER_SLOTS),
        (HOST, {"slots": ()}, Flaw.OTHER_SLOTS),
        (HOST, {"number": 0}, Flaw.MALFORMED),
        (HOST, {"running_ns": -1}, Flaw.MALFORMED),
    ],
)
def test_a_receipt_counts_only_for_its_own_host_cluster_slots_and_tokens(
    host: HostId, change: dict[str, object], flaw: Flaw | None
) -> None:
    assert flaw_of(line(), CLUSTER, host, replace(receipt(), **change)) == flaw  # type: ignore[arg-type]


def test_nothing_counts_after_the_final_receipt() -> None:
    ended = read(line(), Reading(receipt(3, final=True), START + 60 * SECOND))
    assert flaw_of(ended, CLUSTER, HOST, receipt(4, HOUR)) is Flaw.AFTER_FINAL
    assert flaw_of(ended, CLUSTER, HOST, receipt(2)) is None


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20 * HOUR), st.integers(0, 20 * HOUR)), max_size=30))
def test_billable_time_never_shrinks(words: list[tuple[int, int, int]]) -> None:
    at, before = line(lease_ns=HOUR), 0
    for number, running_ns, delay_ns in words:
        at = read(at, Reading(receipt(number, running_ns), START + delay_ns))
        at = renewed(at, START + delay_ns)
        assert before <= billable_ns(at) <= at.signed_ns
        before = billable_ns(at)


@given(st.lists(st.integers(0, HOUR), min_size=1, max_size=20), st.randoms())
def test_the_order_of_receipts_does_not_matter(times: list[int], random: object) -> None:
    receipts: list[Receipt] = [receipt(number + 1, running_ns) for number, running_ns in enumerate(sorted(times))]
    shuffled = list(receipts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ahead = backward = line()
    for each in receipts:
        ahead = read(ahead, Reading(each, START + 2 * HOUR))
    for each in shuffled:
        backward = read(backward, Reading(each, START + 2 * HOUR))
    assert ahead == backward
