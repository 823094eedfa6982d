"""Promises of the decision who may lead: from what is seen alone, by one's own monotonic clock alone."""

import pytest

from windrow_master.store.leader import (
    BEAT_NS,
    GIVE_UP_NS,
    GONE_NS,
    LEASE_NS,
    SURE_NS,
    LeaderObservation,
    Seat,
    has_lost,
    is_sure,
    may_take,
    see,
)
from windrow_proto.units import SECOND

LIVING = Seat(4, 10, "a/1", "https://a:8443", is_connected=True)
GONE = Seat(4, 10, "a/1", "https://a:8443", is_connected=False)


def test_a_free_seat_is_taken_at_once() -> None:
    seat = Seat(0, 0, "", "", is_connected=False)

    assert may_take(seat, see(seat, None, 0), 0)


def test_a_leader_that_beats_is_left_alone_for_ever() -> None:
    seen: LeaderObservation | None = None
    for number in range(1_000):
        seat = Seat(4, number, "a/1", "", is_connected=True)
        seen = see(seat, seen, number * BEAT_NS)
        assert not may_take(seat, seen, number * BEAT_NS)


@pytest.mark.parametrize(("seat", "after_ns"), [(LIVING, LEASE_NS), (GONE, GONE_NS)])
def test_a_silent_leader_is_followed_after_its_lease_and_a_dead_one_sooner(seat: Seat, after_ns: int) -> None:
    first = see(seat, None, 100)

    early = see(seat, first, 100 + after_ns - 1)
    assert not may_take(seat, early, 100 + after_ns - 1)
    late = see(seat, early, 100 + after_ns)
    assert may_take(seat, late, 100 + after_ns)


def test_a_session_that_comes_back_in_time_is_no_death() -> None:
    seen = see(GONE, None, 0)
    seen = see(LIVING, seen, GONE_NS - 1)
    seen = see(GONE, seen, GONE_NS)

    assert not may_take(GONE, seen, GONE_NS)


def test_a_new_leader_is_given_its_own_time() -> None:
    seen = see(GONE, None, 0)
    new = Seat(5, 0, "b/2", "", is_connected=False)
    seen = see(new, seen, 2 * LEASE_NS)

    assert not may_take(new, seen, 2 * LEASE_NS)


def test_a_leader_gives_up_before_others_may_take_its_seat() -> None:
    assert not has_lost(0, GIVE_UP_NS - 1)
    assert has_lost(0, GIVE_UP_NS)
    assert GIVE_UP_NS < LEASE_NS
    assert LEASE_NS + 3 * SECOND < 15 * SECOND


def test_a_leader_that_is_not_sure_writes_no_log_before_others_may_follow_it() -> None:
    assert is_sure(0, SURE_NS - 1)
    assert not is_sure(0, SURE_NS)
    assert 2 * BEAT_NS < SURE_NS < GONE_NS < LEASE_NS
