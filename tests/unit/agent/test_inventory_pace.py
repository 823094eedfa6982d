"""The pace of inventories: the first changes are sent at once, those of a flapping sensor together."""

from itertools import pairwise

from windrow_agent.core import inventory_pace
from windrow_proto.units import SECOND


def test_the_first_changes_go_at_once_and_later_ones_when_there_is_room():
    owed = 0
    for now in range(100 * SECOND, 100 * SECOND + inventory_pace.TELLINGS_MAX):
        assert inventory_pace.next_ns(owed, now) == now
        owed = inventory_pace.told(owed, now)
    assert inventory_pace.next_ns(owed, 101 * SECOND) == 100 * SECOND + inventory_pace.TELLING_EVERY_NS
    assert inventory_pace.next_ns(owed, 1000 * SECOND) == 1000 * SECOND


def test_a_sensor_that_flaps_for_ever_is_told_at_the_pace_and_never_left_out():
    owed, times = 0, list[int]()
    for now in range(0, 3600 * SECOND, SECOND):
        if inventory_pace.next_ns(owed, now) == now:
            owed = inventory_pace.told(owed, now)
            times.append(now)
    assert times[: inventory_pace.TELLINGS_MAX] == [second * SECOND for second in range(inventory_pace.TELLINGS_MAX)]
    assert {after - before for before, after in pairwise(times[inventory_pace.TELLINGS_MAX :])} == {
        inventory_pace.TELLING_EVERY_NS
    }
