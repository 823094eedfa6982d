"""Bounds of the running time that may be charged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.market.rentals import CLUSTER, GRANT, HOST, START, line, receipt
from windrow_master.market.metering import (
    CLOCKS_NS,
    Flaw,
    Reading,
    billable_ns,
    cut,
    flaw_of,
    heard,
    is_impossible,
    is_settled,
    note,
    read,
    renewed,
    shown_start_ns,
    silent,
    unreported_ns,
)
from windrow_proto.ids import ClusterId, HostId, SlotId
from windrow_proto.model import Receipt, SlotGrant
from windrow_proto.units import HOUR, SECOND


def test_nothing_is_billable_before_the_first_receipt() -> None:
    assert billable_ns(heard(silent(line(), START + HOUR), START + 2 * HOUR)) == 0


def test_the_longest_signed_time_counts_whatever_came_last() -> None:
    after = read(line(), Reading(receipt(3, 30 * SECOND), START + 31 * SECOND))
    after = read(after, Reading(receipt(2, 20 * SECOND), START + 40 * SECOND))
    assert billable_ns(after) == 30 * SECOND
    assert (after.receipts, after.first_number, after.last_number) == (2, 2, 3)


def test_time_beyond_the_lease_is_not_billable() -> None:
    after = read(line(lease_ns=HOUR), Reading(receipt(1, 2 * HOUR), START + 3 * HOUR))
    assert billable_ns(after) == HOUR


@pytest.mark.parametrize("claimed_ns", [2 * HOUR, 10**16, 2**63 - 1])
def test_a_host_cannot_have_run_longer_than_passed_since_its_slots_were_leased(claimed_ns: int) -> None:
    reading = Reading(receipt(1, claimed_ns), START + 3 * SECOND)
    after = read(line(), reading)
    assert billable_ns(after) <= 3 * SECOND + CLOCKS_NS and is_impossible(line(), reading)
    assert "beyond the time that passed by the Master's own clock" in note(after)
    assert shown_start_ns(replace(after, started_at_ns=0)) == START


def test_what_it_signs_honestly_is_charged_to_the_nanosecond_however_late_its_first_receipt_comes() -> None:
    after = read(line(), Reading(receipt(1, 0), START + 130 * SECOND))  # it started at 120 s
    assert billable_ns(after) == 0
    for seconds in (10, 20, 30):
        after = read(after, Reading(receipt(1 + seconds, seconds * SECOND), START + (120 + seconds) * SECOND + 3))
    assert billable_ns(after) == 30 * SECOND and note(after) == ""


def test_of_a_silence_a_minute_is_charged_also_when_the_work_ran_on() -> None:
    quiet = read(line(), Reading(receipt(1, 100 * SECOND), START + 100 * SECOND))
    quiet = silent(silent(quiet, START + 115 * SECOND), START + 220 * SECOND)
    assert billable_ns(quiet) == 100 * SECOND
    back = read(quiet, Reading(receipt(60, 700 * SECOND), START + 700 * SECOND))
    assert billable_ns(back) <= 160 * SECOND + CLOCKS_NS
    assert note(back).startswith("its host signed 700 s; not charged: 540 s in which its host was not heard of")
    assert billable_ns(read(back, Reading(receipt(61, 710 * SECOND), START + 710 * SECOND))) <= 170 * SECOND + CLOCKS_NS


def test_a_short_silence_and_one_of_the_master_itself_cost_the_host_nothing() -> None:
    short = silent(read(line(), Reading(receipt(1, 100 * SECOND), START + 100 * SECOND)), START + 115 * SECOND)
    for before in (short, replace(short, silent_since_ns=None)):
        after = read(before, Reading(receipt(2, 159 * SECOND), START + 159 * SECOND))
        assert billable_ns(after) == 159 * SECOND
    down = read(replace(short, silent_since_ns=None), Reading(receipt(2, 900 * SECOND), START + 900 * SECOND))
    assert billable_ns(down) == 900 * SECOND


def test_nothing_is_charged_beyond_ten_seconds_after_its_end_was_wished_for() -> None:
    wished = cut(read(line(), Reading(receipt(1, 5 * SECOND), START + 5 * SECOND)), START + 5 * SECOND)
    deaf = wished
    for seconds in range(10, 300, 10):
        deaf = read(deaf, Reading(receipt(seconds, seconds * SECOND), START + seconds * SECOND))
        assert is_settled(deaf, START + seconds * SECOND, 0) == (seconds >= 40)
    assert billable_ns(deaf) == 15 * SECOND and cut(deaf, START + HOUR) == deaf
    assert note(deaf) == "its host signed 290 s; not charged: what it signed beyond 10 s after the end was asked for"
    late = read(wished, Reading(receipt(2, 9 * SECOND, final=True), START + 9 * HOUR))
    assert (billable_ns(late), is_settled(late, START, 0)) == (9 * SECOND, True)


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


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("receipt", "receipt", "silent", "heard", "cut")),
            st.integers(0, 20 * HOUR),
            st.integers(0, HOUR),
        ),
        max_size=30,
    )
)
def test_billable_time_never_shrinks(words: list[tuple[str, int, int]]) -> None:
    at, before, now_ns = line(lease_ns=HOUR), 0, START
    for number, (what, running_ns, passed_ns) in enumerate(words, start=1):
        now_ns += passed_ns
        if what == "receipt":
            at = renewed(read(at, Reading(receipt(number, running_ns), now_ns)), now_ns)
        else:
            at = {"silent": silent, "heard": heard, "cut": cut}[what](at, now_ns)
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
