"""Admission buckets refill with time and name the wait; routes replace a host's older stream."""

import pytest

from windrow_access.core.admission import (
    TOLD_NS_MAX,
    Admission,
    Admitted,
    Bucket,
    Greetings,
    Limits,
    Wait,
    masterless_ns,
)
from windrow_access.core.routing import Routes
from windrow_proto.units import SECOND


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = Bucket(rate_per_s=2, burst=3, milli=3000, at_ns=0)
    waits = []
    for _ in range(4):
        bucket, wait_ns = bucket.take(0)
        waits.append(wait_ns)
    assert waits == [0, 0, 0, SECOND // 2]
    bucket, wait_ns = bucket.take(SECOND // 2)
    assert wait_ns == 0


def test_a_bucket_never_gains_from_a_clock_that_stands_or_goes_back() -> None:
    bucket = Bucket(rate_per_s=1, burst=1, milli=0, at_ns=10 * SECOND)
    bucket, wait_ns = bucket.take(5 * SECOND)
    assert wait_ns > 0


def test_many_tiny_steps_of_time_still_refill() -> None:
    bucket = Bucket(rate_per_s=1, burst=1, milli=0, at_ns=0)
    wait_ns = 1
    now_ns = 0
    while wait_ns and now_ns < 3 * SECOND:
        now_ns += 100_000  # a tenth of a millisecond: less than one thousandth of a token
        bucket, wait_ns = bucket.take(now_ns)
    assert SECOND <= now_ns <= SECOND + 200_000


def test_each_of_a_crowd_is_told_a_moment_of_its_own_and_finds_its_token_then() -> None:
    bucket, waits = Bucket(rate_per_s=2, burst=1, milli=0, at_ns=0), []
    for _ in range(4):
        bucket, wait_ns = bucket.take(0)
        waits.append(wait_ns)
    assert waits == [SECOND // 2, SECOND, 3 * SECOND // 2, 2 * SECOND]
    for now_ns in waits:
        bucket, wait_ns = bucket.take(now_ns)
        assert wait_ns == 0
    bucket, wait_ns = bucket.take(2 * SECOND)
    assert wait_ns == SECOND // 2  # all whom it told are there


def test_nobody_of_a_crowd_is_told_to_wait_for_ever() -> None:
    bucket, wait_ns = Bucket(rate_per_s=1, burst=1, milli=0, at_ns=0), 0
    for _ in range(100):
        bucket, wait_ns = bucket.take(0)
    assert wait_ns == TOLD_NS_MAX


def test_streams_wait_for_their_masters_first_word_until_it_comes_or_nobody_expects_it() -> None:
    greetings = Greetings(patience_ns=10 * SECOND)
    for route in range(4):
        greetings.begin(route, route * SECOND)
    greetings.end(1)
    greetings.end(1)
    assert greetings.waiting(10 * SECOND) == 3
    assert greetings.waiting(12 * SECOND) == 2
    assert greetings.waiting(14 * SECOND) == 0


def test_one_address_cannot_use_up_admission() -> None:
    admission = Admission(Limits(per_peer_burst=2, per_peer_per_s=1), now_ns=0)
    answers = [admission.ask("10.0.0.1", 0, 0) for _ in range(3)]
    assert isinstance(answers[2], Wait)
    assert answers[2].retry_after_ns == SECOND
    assert admission.ask("10.0.0.2", 0, 0) == Admitted()


def test_a_full_process_says_when_to_come_back() -> None:
    admission = Admission(Limits(routes_max=1), now_ns=0)
    assert admission.ask("10.0.0.1", 1, 0) == Wait("too_many", 5 * SECOND)


def test_a_newer_stream_replaces_the_older_one_of_the_same_host() -> None:
    routes: Routes[str] = Routes()
    first, none = routes.open("host_a", 100, "s1")
    second, older = routes.open("host_a", 100, "s2")
    assert none is None
    assert older == first
    routes.close(first.route)
    assert routes.of_host("host_a") == second
    assert len(routes) == 1


def test_streams_end_with_their_certificate() -> None:
    routes: Routes[str] = Routes()
    routes.open("host_a", 100, "s1")
    routes.open("host_b", 200, "s2")
    assert [facts.host_id for facts in routes.expired(100)] == ["host_a"]


@pytest.mark.parametrize(
    ("away_s", "agents", "wait_s"),
    [(0, 1, 0.5), (4, 1, 1), (30, 1, 7.5), (3600, 1, 15), (0, 1_000, 5), (0, 10_000, 15)],
)
def test_who_finds_no_master_comes_back_soon_then_less_often_and_many_never_at_once(
    away_s: int, agents: int, wait_s: float
) -> None:
    assert masterless_ns(away_s * SECOND, agents) == wait_s * SECOND
