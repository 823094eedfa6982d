"""A host's line by several relays: who is asked, what their figures make together, and how long they count together."""

import pytest

from tests.unit.fleet.world import HOST, world
from windrow_master.fleet import measured
from windrow_master.fleet.measures.service import MEASURE_CAP_BYTES, MEASURE_SIMULATED_CAP_BYTES
from windrow_proto.model import RELAYS_MAX, CommandKind
from windrow_proto.units import SECOND
from windrow_proto.wire_command import decode_command

NOW = 1_000 * SECOND


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


def test_the_figures_of_one_round_make_a_median_and_older_ones_do_not_count():
    one = measured.after(None, "access_1", "north", 900, 500, NOW)
    assert (one.up_bps, one.down_bps, one.count) == (900, 500, 1)
    two = measured.after(one, "access_2", "south", 801, 700, NOW + SECOND)
    assert (two.up_bps, two.down_bps, two.count, two.access_id, two.region) == (850, 600, 2, "access_2", "south")
    three = measured.after(two, "access_3", "south", 100, 900, NOW + 2 * SECOND)
    assert (three.up_bps, three.down_bps, three.count) == (801, 700, 3)
    again = measured.after(two, "access_2", "south", 700, 700, NOW + 2 * SECOND)
    assert (again.up_bps, again.count) == (800, 2)
    late = measured.after(two, "access_1", "north", 10, 20, NOW + SECOND + measured.ROUND_NS)
    assert (late.up_bps, late.down_bps, late.count) == (10, 20, 1)


def test_whom_the_master_asks_is_chance_and_nobody_where_one_relay_serves():
    serving = ("a", "b", "c", "d")
    assert measured.others((), b"\0\0") == measured.others(("a",), b"\0\0") == ()
    assert set(measured.others(("a", "b"), b"\7\1")) == {"a", "b"}
    drawn = {measured.others(serving, bytes((x, y))) for x in range(4) for y in range(3)}
    assert len(drawn) == 12 and all(len(set(two)) == 2 for two in drawn)
    assert measured.OTHERS_MAX + 1 == RELAYS_MAX


def asked(w, relays, simulated=False):
    """What a host is sent."""
    host_id = f"host_{simulated}"
    w.join(host_id, simulated)
    command_id = w.write(lambda uow: w.fleet.measures.ask(uow, host_id, "master", relays))
    return decode_command(w.read(lambda uow: uow.commands.get(command_id)).body).bandwidth


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
    found = measured.after(measured.after(None, "access_1", "n", 5, 6, NOW), "access_2", "s", 7, 8, NOW)
    w.write(lambda uow: w.fleet.hosts.measured(uow, HOST, found, NOW))
    assert found.count == 2
    assert w.host().bandwidth == found


async def test_relays_that_serve_are_asked_when_a_measurement_is_due(w):
    w.equip()
    w.connect()
    w.fleet.ports.relays = lambda: ("access_1", "access_2", "access_3")
    await w.fleet.refresh()
    await w.fleet._measure_due()
    rows = [row for row in w.read(lambda uow: uow.commands.list()) if row.kind is CommandKind.MEASURE_BANDWIDTH]
    (row,) = rows
    asked = decode_command(row.body).bandwidth
    assert asked is not None and len(asked.access_ids) == 2
