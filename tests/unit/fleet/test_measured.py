"""A host's line by several relays: who is asked, what their figures make together, and how long they count together."""

import re

import pytest

from tests.unit.fleet.world import HOST, world
from windrow_master.fleet import bandwidth
from windrow_master.fleet.bandwidth_schedule import MEASURE_CAP_BYTES, MEASURE_DAY_BYTES, MEASURE_SIMULATED_CAP_BYTES
from windrow_master.fleet.model import MeasuredRound
from windrow_master.fleet.repository import CommandRepository
from windrow_proto.errors import TooMany
from windrow_proto.model import RELAYS_MAX, BandwidthSpec, CommandKind
from windrow_proto.units import DAY, HOUR, SECOND, time_text
from windrow_proto.wire_command import decode_command

NOW = 1_000 * SECOND


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


def test_the_figures_of_one_round_make_a_median_and_older_ones_do_not_count():
    one = bandwidth.after(None, "access_1", "north", 900, 500, NOW)
    assert (one.up_bps, one.down_bps, one.count) == (900, 500, 1)
    two = bandwidth.after(one, "access_2", "south", 801, 700, NOW + SECOND)
    assert (two.up_bps, two.down_bps, two.count, two.access_id, two.region) == (850, 600, 2, "access_2", "south")
    three = bandwidth.after(two, "access_3", "south", 100, 900, NOW + 2 * SECOND)
    assert (three.up_bps, three.down_bps, three.count) == (801, 700, 3)
    again = bandwidth.after(two, "access_2", "south", 700, 700, NOW + 2 * SECOND)
    assert (again.up_bps, again.count) == (800, 2)
    late = bandwidth.after(two, "access_1", "north", 10, 20, NOW + SECOND + bandwidth.ROUND_NS)
    assert (late.up_bps, late.down_bps, late.count) == (10, 20, 1)


def test_whom_the_master_asks_is_chance_and_nobody_where_one_relay_serves():
    serving = ("a", "b", "c", "d")
    assert bandwidth.others((), b"\0\0") == bandwidth.others(("a",), b"\0\0") == ()
    assert set(bandwidth.others(("a", "b"), b"\7\1")) == {"a", "b"}
    drawn = {bandwidth.others(serving, bytes((x, y))) for x in range(4) for y in range(3)}
    assert len(drawn) == 12 and all(len(set(two)) == 2 for two in drawn)
    assert bandwidth.OTHERS_MAX + 1 == RELAYS_MAX


def asked(w, relays, simulated=False):
    """Returns the commands that a host is sent."""
    host_id = f"host_{simulated}"
    w.join(host_id, simulated)
    command_id = w.write(lambda uow: w.fleet.measures.ask(uow, host_id, "master", relays))
    return decode_command(w.read(lambda uow: uow[CommandRepository].get(command_id)).body).bandwidth


def test_a_command_names_the_relays_and_shares_the_bytes_among_them(w):
    spec = asked(w, ("access_1", "access_2"))
    assert (set(spec.access_ids), spec.cap_bytes) == ({"access_1", "access_2"}, MEASURE_CAP_BYTES // 2)
    assert asked(w, ("access_1", "access_2"), simulated=True).cap_bytes == MEASURE_SIMULATED_CAP_BYTES


def test_where_one_relay_serves_it_measures_alone_and_whole(w):
    spec = asked(w, ("access_1",))
    assert (spec.access_ids, spec.cap_bytes) == ((), MEASURE_CAP_BYTES)


def test_an_operator_may_have_fewer_bytes_moved(w):
    w.fleet.measures.cap_bytes = 4 << 20
    assert asked(w, ("access_1", "access_2")).cap_bytes == 2 << 20


def test_what_several_relays_found_is_kept(w):
    found = bandwidth.after(bandwidth.after(None, "access_1", "n", 5, 6, NOW), "access_2", "s", 7, 8, NOW)
    w.write(lambda uow: w.fleet.hosts.measured(uow, HOST, found, NOW))
    assert found.count == 2
    assert w.host().bandwidth == found


async def test_relays_that_serve_are_asked_when_a_measurement_is_due(w):
    w.equip()
    w.connect()
    w.fleet.relays.ids = ("access_1", "access_2", "access_3")
    await w.fleet.refresh()
    await w.fleet._measure_due()
    rows = [
        row for row in w.read(lambda uow: uow[CommandRepository].list()) if row.kind is CommandKind.MEASURE_BANDWIDTH
    ]
    (row,) = rows
    asked = decode_command(row.body).bandwidth
    assert asked is not None and len(asked.access_ids) == 2


def test_a_region_is_the_median_of_its_relays_of_a_round():
    one = bandwidth.with_relay(MeasuredRound(HOST, "n", "north", 0, 0, 0, {}), "access_1", 900, 500, NOW)
    assert (one.up_bps, one.down_bps, one.at_ns) == (900, 500, NOW)
    two = bandwidth.with_relay(one, "access_2", 801, 700, NOW + SECOND)
    assert (two.up_bps, two.down_bps, two.at_ns, len(two.relays)) == (850, 600, NOW + SECOND, 2)
    assert bandwidth.with_relay(two, "access_2", 100, 100, NOW).up_bps == 500


def test_there_is_room_again_when_enough_of_what_was_asked_is_over():
    asked = [(1, 40), (2, 40), (3, 20)]
    assert bandwidth.free_again_ns(asked, 0, 100) is None
    assert bandwidth.free_again_ns([], 500, 100) is None, "one that is alone never goes beyond it"
    assert [bandwidth.free_again_ns(asked, wanted, 100) for wanted in (1, 40, 41, 80, 81, 500)] == [1, 1, 2, 2, 3, 3]


def test_no_host_is_asked_beyond_the_budget_of_a_day_and_the_refusal_says_when_it_may_be_again(w):
    def ask():
        w.write(lambda uow: w.fleet.measures.ask(uow, HOST, "master", ("access_1", "access_2")))

    each = bandwidth.bytes_max(BandwidthSpec(0, MEASURE_CAP_BYTES // 2, "", ("access_1", "access_2")))
    began_ns = w.clock.wall_ns()
    for _ in range(MEASURE_DAY_BYTES // each):
        ask()
        w.clock.advance(HOUR)
    with pytest.raises(TooMany, match=re.escape(time_text(began_ns + DAY))) as refused:
        ask()
    assert refused.value.retry_after_ns == began_ns + DAY - w.clock.wall_ns()

    w.clock.advance(refused.value.retry_after_ns)
    ask()
    with pytest.raises(TooMany):
        ask()


async def test_a_host_beyond_its_budget_is_due_again_when_there_is_room(w):
    w.equip()
    w.connect()
    w.fleet.measures.cap_bytes = MEASURE_DAY_BYTES
    began_ns = w.clock.wall_ns()
    w.write(lambda uow: w.fleet.measures.ask(uow, HOST, "master", ()))
    w.clock.advance(HOUR)
    await w.fleet.refresh()
    await w.fleet._measure_due()
    assert len(w.read(lambda uow: uow[CommandRepository].since(HOST, CommandKind.MEASURE_BANDWIDTH, 0))) == 1
    assert w.host().measure_due_ns == began_ns + DAY
