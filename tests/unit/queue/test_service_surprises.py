"""The queue of the leading Master where clocks are set, projects are deleted, and work waits for other things."""

from typing import Any

from tests.master_support import START_NS
from tests.unit.queue.test_service import World, entry
from windrow_master.queue.model import When
from windrow_master.queue.order import Waits
from windrow_master.queue.shares import ROOT, Node
from windrow_proto.units import DAY, HOUR, MINUTE


async def test_what_waits_for_other_things_than_a_place_is_not_told_that_there_is_none() -> None:
    w = World()
    w.fleet.join("a", cards=1)
    array: dict[str, Any] = {"array": "array", "at_once": 1, "cards": 2}
    w.put(
        entry("ready", index=0, **array),
        entry("throttled", index=1, **array),
        entry("held", cards=2, held_by="an operator"),
        entry("later", cards=2, begin_ns=START_NS + DAY),
        entry("child", cards=2, after=(("ready", When.ANY),)),
    )
    await w.look()
    assert w.fleet.told == {"ready": "no host fits"}
    await w.look(after_ns=DAY)
    assert w.fleet.told == dict.fromkeys(("ready", "later"), "no host fits"), "its time has come"


async def test_nothing_is_learnt_of_estimates_from_waits_in_which_the_clock_was_set() -> None:
    w = World()
    w.fleet.join("a", cards=1)
    w.put(*(entry(f"e{at}", limit_ns=HOUR, submitted_ns=START_NS + at) for at in range(3)))
    await w.look()
    for years, runs in ((10, "e0"), (-10, "e1")):
        w.clock._wall_ns += years * 365 * DAY
        w.fleet.end(runs)
        await w.look(after_ns=MINUTE)
    assert w.fleet.running() == {"e2"}
    assert not w.queue.totals(None).scored


async def test_a_project_that_is_deleted_with_a_throttled_array_stops_nobody_else() -> None:
    w = World()
    w.fleet.join("a", cards=1)
    array = [entry(f"a{at}", cards=8, leaf="gone", array="array", index=at, at_once=1) for at in range(3)]
    w.put(*array)
    await w.look()
    w.fleet.deleted.add("gone")
    w.queue.nodes_changed([], ["gone"])
    await w.look()
    assert [w.queue.standing(one.entry_id).state for one in array] == [Waits.NO_SHARE] * 3
    w.fleet.deleted.clear()
    w.queue.nodes_changed([Node(node_id="gone", parent=ROOT)])
    await w.look()
    assert [w.queue.standing(one.entry_id).state for one in array] == [Waits.READY, Waits.THROTTLED, Waits.THROTTLED]
    w.queue.nodes_changed([], ["gone"])
    for one in array:
        w.queue.drop(one.entry_id)
    w.put(entry("other", leaf="other"))
    await w.look()
    assert w.fleet.running() == {"other"}
