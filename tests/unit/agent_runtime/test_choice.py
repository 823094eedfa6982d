"""Which Access a host takes."""

from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core import choice
from windrow_agent.core.choice import Measured
from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.units import MILLISECOND, SECOND

HOST = HostId("host_1")
MAP = RegionMap(1, tuple(AccessPoint(name, "eu", f"{name}:1") for name in ("a", "b", "c")))


def _ms(**found: int):
    return {f"{name}:1": Measured(ms * MILLISECOND) for name, ms in found.items()}


def test_the_nearest_leads_and_the_others_follow_by_distance():
    assert choice.order(HOST, MAP, _ms(a=30, b=5, c=20), None) == ("b:1", "c:1", "a:1")


def test_a_host_stays_unless_another_is_ten_milliseconds_and_a_third_nearer():
    assert choice.order(HOST, MAP, _ms(a=30, b=25), "a:1")[0] == "a:1"
    assert choice.order(HOST, MAP, _ms(a=100, b=85), "a:1")[0] == "a:1"
    assert choice.order(HOST, MAP, _ms(a=12, b=1), "a:1")[0] == "b:1"
    assert choice.order(HOST, MAP, _ms(a=9, b=1), "a:1")[0] == "a:1"


def test_an_access_that_drains_is_left_even_if_it_is_nearest():
    measured = {**_ms(b=200), "a:1": Measured(MILLISECOND, is_draining=True)}
    assert choice.order(HOST, MAP, measured, "a:1")[0] == "b:1"


def test_an_access_that_the_map_calls_draining_is_left_whatever_it_says_itself():
    points = (AccessPoint("a", "eu", "a:1", draining=True), AccessPoint("b", "eu", "b:1"))
    assert choice.order(HOST, RegionMap(2, points), _ms(a=1, b=200), "a:1") == ("b:1", "a:1")


def test_between_equals_the_less_loaded_is_taken():
    measured = {"a:1": Measured(MILLISECOND, 900), "b:1": Measured(MILLISECOND + 1, 100)}
    assert choice.order(HOST, MAP, measured, None)[0] == "b:1"


def test_the_hosts_of_a_dead_access_spread_over_the_unmeasured_ones():
    firsts = {choice.order(HostId(f"host_{n}"), MAP, {}, None)[0] for n in range(50)}
    assert firsts == {"a:1", "b:1", "c:1"}


def test_every_address_is_tried_once_whatever_was_measured():
    for current in (None, "a:1", "gone:1"):
        assert sorted(choice.order(HOST, MAP, _ms(b=3), current)) == ["a:1", "b:1", "c:1"]


@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_pauses_are_jittered_and_bounded(attempt: int, uniform: float):
    assert 0 <= choice.backoff_ns(attempt, uniform) <= 15 * SECOND
