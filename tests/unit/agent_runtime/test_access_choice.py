"""The choice of an Access by a host."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core import access_choice
from windrow_agent.core.access_choice import Measured
from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.units import MILLISECOND, SECOND

HOST = HostId("host_1")
MAP = RegionMap(1, tuple(AccessPoint(name, "eu", f"{name}:1") for name in ("a", "b", "c")))


def _ms(**found: int):
    return {f"{name}:1": Measured(ms * MILLISECOND) for name, ms in found.items()}


def test_the_nearest_leads_and_the_others_follow_by_distance():
    assert access_choice.order(HOST, MAP, _ms(a=30, b=5, c=20), None) == ("b:1", "c:1", "a:1")


def test_a_host_stays_unless_another_is_ten_milliseconds_and_a_third_nearer():
    assert access_choice.order(HOST, MAP, _ms(a=30, b=25), "a:1")[0] == "a:1"
    assert access_choice.order(HOST, MAP, _ms(a=100, b=85), "a:1")[0] == "a:1"
    assert access_choice.order(HOST, MAP, _ms(a=12, b=1), "a:1")[0] == "b:1"
    assert access_choice.order(HOST, MAP, _ms(a=9, b=1), "a:1")[0] == "a:1"


def test_an_access_that_drains_is_left_even_if_it_is_nearest():
    measured = {**_ms(b=200), "a:1": Measured(MILLISECOND, is_draining=True)}
    assert access_choice.order(HOST, MAP, measured, "a:1")[0] == "b:1"


def test_an_access_that_the_map_calls_draining_is_left_whatever_it_says_itself():
    points = (AccessPoint("a", "eu", "a:1", draining=True), AccessPoint("b", "eu", "b:1"))
    assert access_choice.order(HOST, RegionMap(2, points), _ms(a=1, b=200), "a:1") == ("b:1", "a:1")


def _firsts(measured, regions=MAP, current=None, hosts=1000):
    return Counter(access_choice.order(HostId(f"host_{n}"), regions, measured, current)[0] for n in range(hosts))


def test_between_equals_hosts_go_where_there_is_room_in_proportion_to_it():
    measured = {"a:1": Measured(MILLISECOND, 800), "b:1": Measured(MILLISECOND + 1, 200)}
    assert 150 < _firsts(measured)["a:1"] < 250
    full = {"a:1": Measured(MILLISECOND, 1000), "b:1": Measured(2 * MILLISECOND, 0)}
    assert _firsts(full)["a:1"] < 10


@pytest.mark.parametrize("accesses", [2, 3, 8])
def test_over_equals_a_thousand_hosts_spread_within_a_fifth_of_an_even_share(accesses: int):
    regions = RegionMap(1, tuple(AccessPoint(f"access_{n}", "eu", f"{n}:1") for n in range(accesses)))
    hosts = 500 * accesses
    counts = _firsts({f"{n}:1": Measured(MILLISECOND) for n in range(accesses)}, regions, hosts=hosts)
    assert len(counts) == accesses and max(counts.values()) - min(counts.values()) <= 0.2 * hosts / accesses


def test_load_never_outweighs_two_milliseconds():
    measured = {"a:1": Measured(MILLISECOND, 999), "b:1": Measured(4 * MILLISECOND, 0), "c:1": Measured(MILLISECOND, 0)}
    assert _firsts(measured)["b:1"] == 0
    assert _firsts(measured, current="a:1")["b:1"] == 0


def _spread_over(measured, at):
    """Let each host look again, one after the other, with the loads as they are then; return how many moved."""
    moved = 0
    for host, here in at.items():
        counts = Counter(at.values())
        now = {address: Measured(rtt_ns, counts[address]) for address, rtt_ns in measured.items()}
        at[host] = access_choice.order(host, MAP, now, here)[0]
        moved += at[host] != here
    return moved


def test_after_a_drain_the_hosts_return_to_the_access_that_serves_again_and_then_stay():
    measured = {"a:1": MILLISECOND, "b:1": 2 * MILLISECOND}
    at = {HostId(f"host_{n}"): "a:1" for n in range(54)}
    assert _spread_over(measured, at) > 0
    counts = Counter(at.values())
    assert abs(counts["a:1"] - counts["b:1"]) <= 54 // 5, counts
    assert _spread_over(measured, at) == 0


def test_nobody_returns_to_an_access_that_is_fuller_or_farther_or_drains():
    full = {"a:1": Measured(MILLISECOND, 10), "b:1": Measured(MILLISECOND, 11)}
    far = {"a:1": Measured(MILLISECOND, 10), "b:1": Measured(4 * MILLISECOND)}
    drains = {"a:1": Measured(MILLISECOND, 10), "b:1": Measured(MILLISECOND, is_draining=True)}
    for measured in (full, far, drains):
        assert _firsts(measured, current="a:1") == {"a:1": 1000}


def test_on_a_long_line_an_eighth_of_it_is_no_difference_and_more_is():
    assert set(_firsts(_ms(a=50, b=56, c=90))) == {"a:1", "b:1"}
    assert set(_firsts(_ms(a=50, b=57, c=90))) == {"a:1"}


@pytest.mark.parametrize("others", [2, 3, 4])
def test_the_hosts_of_a_dead_access_spread_evenly_over_the_rest(others: int):
    names = [f"acc_{n}" for n in range(others + 1)]
    regions = RegionMap(1, tuple(AccessPoint(name, "eu", f"{name}:1") for name in names))
    before = {f"{name}:1": Measured((5 + n % 2) * MILLISECOND, 300) for n, name in enumerate(names)}
    lived = [
        HostId(f"host_{n}")
        for n in range(1000 * (others + 1) + 600)
        if access_choice.order(HostId(f"host_{n}"), regions, before, None)[0] == "acc_0:1"
    ][:1000]
    assert len(lived) == 1000
    after = {address: found for address, found in before.items() if address != "acc_0:1"}
    went = Counter(access_choice.order(host, regions, after, "acc_0:1")[0] for host in lived)
    print(f"1,000 hosts of a dead Access over {others} others:", dict(went))
    assert len(went) == others
    assert max(went.values()) <= 1.2 * min(went.values())


def test_who_was_not_on_the_dead_access_stays_where_it_would_be():
    before = {f"{name}:1": Measured(5 * MILLISECOND, 300) for name in "abc"}
    after = {address: found for address, found in before.items() if address != "a:1"}
    for n in range(300):
        first = access_choice.order(HostId(f"host_{n}"), MAP, before, None)[0]
        assert first in ("a:1", access_choice.order(HostId(f"host_{n}"), MAP, after, None)[0])


def test_the_hosts_of_a_dead_access_spread_over_the_unmeasured_ones():
    firsts = {access_choice.order(HostId(f"host_{n}"), MAP, {}, None)[0] for n in range(50)}
    assert firsts == {"a:1", "b:1", "c:1"}


def test_every_address_is_tried_once_whatever_was_measured():
    for current in (None, "a:1", "gone:1"):
        assert sorted(access_choice.order(HOST, MAP, _ms(b=3), current)) == ["a:1", "b:1", "c:1"]


@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_pauses_are_jittered_and_bounded(attempt: int, uniform: float):
    assert 0 <= access_choice.backoff_ns(attempt, uniform) <= 15 * SECOND


@given(st.integers(1, 100))
def test_a_pause_may_be_anything_from_nothing_to_its_whole_so_that_hosts_spread(attempt: int):
    none, half, whole = (access_choice.backoff_ns(attempt, uniform) for uniform in (0.0, 0.5, 1.0))
    assert none == 0
    assert 0 < 2 * half == whole


def test_the_second_connection_is_in_another_region_if_one_is_there_and_answers():
    points = (AccessPoint("a", "eu", "a:1"), AccessPoint("b", "eu", "b:1"), AccessPoint("c", "us", "c:1"))
    regions = RegionMap(2, points)
    assert access_choice.second(HOST, regions, _ms(a=1, b=2, c=90), "a:1") == "c:1"
    assert access_choice.second(HOST, regions, _ms(a=1, b=2), "a:1") == "b:1"
    assert access_choice.second(HOST, regions, {**_ms(a=1, b=2), "c:1": Measured(1, is_draining=True)}, "a:1") == "b:1"
    assert access_choice.second(HOST, regions, _ms(a=1), "a:1") is None
    assert access_choice.second(HOST, regions, _ms(a=5, c=9), "elsewhere:1") == "a:1"


def test_the_second_connections_of_many_hosts_spread_over_equals():
    points = (AccessPoint("a", "eu", "a:1"), AccessPoint("b", "us", "b:1"), AccessPoint("c", "us", "c:1"))
    measured = _ms(a=1, b=50, c=50)
    counts = Counter(
        access_choice.second(HostId(f"host_{n}"), RegionMap(1, points), measured, "a:1") for n in range(1000)
    )
    assert set(counts) == {"b:1", "c:1"} and min(counts.values()) > 400


def test_a_crowd_that_makes_one_of_two_equals_slow_for_a_moment_still_spreads_its_second_connections_over_both():
    points = tuple(AccessPoint(name, name, f"{name}:1") for name in ("a", "b", "c"))
    hosts = [HostId(f"host_{n}") for n in range(1000)]
    calm = [access_choice.second(host, RegionMap(1, points), _ms(a=1, b=4, c=4), "a:1") for host in hosts]
    busy = [access_choice.second(host, RegionMap(1, points), _ms(a=1, b=4, c=13), "a:1") for host in hosts]
    counts = Counter(busy)
    assert busy == calm and set(counts) == {"b:1", "c:1"}
    assert max(counts.values()) - min(counts.values()) <= 0.2 * len(hosts) / 2
    assert {access_choice.second(host, RegionMap(1, points), _ms(a=1, b=4, c=14), "a:1") for host in hosts} == {"b:1"}


def test_the_second_connection_stays_where_it_is_unless_another_is_clearly_better():
    points = (AccessPoint("a", "eu", "a:1"), AccessPoint("b", "us", "b:1"), AccessPoint("c", "us", "c:1"))
    regions = RegionMap(1, points)
    for held, other in (("b", "c"), ("c", "b")):
        noisy = {**_ms(a=1, **{held: 12, other: 5}), f"{other}:1": Measured(5 * MILLISECOND, load_permille=0)}
        assert access_choice.second(HOST, regions, noisy, "a:1", f"{held}:1") == f"{held}:1"
        assert access_choice.second(HOST, regions, _ms(a=1, **{held: 30, other: 5}), "a:1", f"{held}:1") == f"{other}:1"
        assert access_choice.second(HOST, regions, _ms(a=1, **{other: 90}), "a:1", f"{held}:1") == f"{other}:1"
    assert access_choice.second(HOST, regions, _ms(a=1, b=1, c=1), "b:1", "b:1") == "a:1"  # in use by now
    assert (
        access_choice.second(HOST, regions, _ms(a=1, b=1, c=50), "c:1", "b:1") == "a:1"
    )  # in the region in use by now


def test_round_trips_are_told_when_one_came_went_or_differs_and_not_for_every_millisecond():
    measured = [("a", 50 * MILLISECOND), ("b", 5 * MILLISECOND), ("a", 40 * MILLISECOND)]
    told = access_choice.to_tell({}, measured)
    assert told == (("b", 5 * MILLISECOND), ("a", 40 * MILLISECOND))
    assert access_choice.to_tell(dict(told), measured) == ()
    assert access_choice.to_tell(dict(told), [("a", 44 * MILLISECOND), ("b", 4 * MILLISECOND)]) == ()
    for changed in (measured[:1], [*measured, ("c", 1)], [("a", 46 * MILLISECOND), ("b", 5 * MILLISECOND)]):
        assert access_choice.to_tell(dict(told), changed)


def test_of_very_many_round_trips_the_shortest_are_told():
    assert access_choice.to_tell({}, [(f"access_{n}", n) for n in range(40)]) == tuple(
        (f"access_{n}", n) for n in range(16)
    )
