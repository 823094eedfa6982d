"""Changes among the Accesses are told in time: some at once, all within ten looks, nobody twice."""

from typing import Any

from windrow_master.link import region_map
from windrow_master.link.accesses import Accesses
from windrow_master.link.region_map import RegionMaps
from windrow_proto.clock import SystemClock
from windrow_proto.errors import LinkClosed
from windrow_proto.ids import HostId
from windrow_proto.model import Kind, Lane
from windrow_proto.wire_link import decode_region_map


class Line:
    """A host's route, as far as maps go; `is_closed`: nothing can be sent any more."""

    def __init__(self, is_closed: bool = False) -> None:
        self.map_version, self.is_closed = 0, is_closed
        self.heard: list[int] = []

    def send(self, kind: Kind, lane: Lane, body: bytes) -> None:
        assert (kind, lane) == (Kind.REGION_MAP, Lane.CONTROL)
        if self.is_closed:
            raise LinkClosed("The host is not connected (any more).")
        self.heard.append(decode_region_map(body).version)


def maps(lines: dict[HostId, Any]) -> RegionMaps:
    clock = SystemClock()
    return RegionMaps(Accesses({}, clock, lambda access_id: False), lines, clock)


def lines(count: int) -> dict[HostId, Line]:
    return {HostId(f"host_{number}"): Line() for number in range(count)}


def test_few_hosts_hear_of_a_change_at_once_and_once() -> None:
    few = lines(region_map.TOLD_MIN)
    one = maps(few)

    one.tick()
    one.tick()
    one.changed()
    one.tick()

    heard = {tuple(line.heard) for line in few.values()}
    assert len(heard) == 1
    first, second = heard.pop()
    assert first < second


def test_of_many_hosts_a_tenth_hears_at_a_time_and_all_in_the_end() -> None:
    many = lines(2000)
    one = maps(many)

    counts = []
    for _ in range(region_map.TICKS + 1):
        before = sum(len(line.heard) for line in many.values())
        one.tick()
        counts.append(sum(len(line.heard) for line in many.values()) - before)

    assert counts == [200] * region_map.TICKS + [0]
    assert {len(line.heard) for line in many.values()} == {1}


def test_that_an_access_has_gone_they_hear_seconds_later_also_while_others_go() -> None:
    found = lines(1)
    one = maps(found)
    (line,) = found.values()
    one.tick()

    counts: list[int] = []
    for _ in range(region_map.TICKS_AFTER_LOSS + 1):
        if len(counts) < region_map.TICKS_AFTER_LOSS:
            one.changed(is_loss=True)
        one.tick()
        counts.append(len(line.heard))

    assert counts == [1] * region_map.TICKS_AFTER_LOSS + [2]


def test_a_host_that_comes_by_a_second_connection_hears_what_it_missed() -> None:
    found = lines(1)
    one = maps(found)
    one.tick()
    found[HostId("late")] = late = Line()

    one.tick()

    assert late.heard == found[HostId("host_0")].heard


def test_a_host_that_has_gone_keeps_nobody_else_from_hearing() -> None:
    found = {HostId("gone"): Line(is_closed=True), HostId("there"): Line()}

    maps(found).tick()

    assert [len(line.heard) for line in found.values()] == [0, 1]


def test_one_that_is_greeted_is_told_at_once_and_not_again() -> None:
    found = lines(1)
    one = maps(found)
    (line,) = found.values()

    one.tell(line)  # type: ignore[arg-type]
    one.tick()

    assert len(line.heard) == 1
