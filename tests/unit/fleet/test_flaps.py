"""A host whose link fails again and again waits longer and longer for new work, and less again once it holds."""

from dataclasses import replace

import pytest

from tests.unit.fleet.world import HOST, world
from windrow_master.fleet.flaps import HALF_LIFE_NS, SETTLED_NS_MAX, Flaps, flapped, settling_ns, worth
from windrow_master.fleet.model import LinkState
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.states import LinkEvent
from windrow_proto.units import HOUR, MINUTE, SECOND


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        made.fleet.start()
        made.connect()
        made.beat()
        yield made


def after(*at_ns: int) -> Flaps:
    """The count after silences at these moments."""
    flaps = Flaps()
    for now_ns in at_ns:
        flaps = flapped(flaps, now_ns)
    return flaps


def test_the_count_halves_with_each_half_life():
    flaps = after(0, 0)
    assert [worth(flaps, n * HALF_LIFE_NS) for n in range(4)] == [2.0, 1.0, 0.5, 0.25]


def test_a_time_before_its_own_changes_nothing():
    flaps = after(HOUR)
    assert worth(flaps, 0) == 1.0
    assert flapped(flaps, 0) == Flaps(2.0, HOUR)


@pytest.mark.parametrize(
    ("silences", "waits_ns"),
    [
        (0, MINUTE),
        (1, MINUTE),
        (2, MINUTE),
        (3, 10 * MINUTE),
        (4, 20 * MINUTE),
        (5, 40 * MINUTE),
        (8, 320 * MINUTE),
        (9, SETTLED_NS_MAX),
        (10_000, SETTLED_NS_MAX),
    ],
)
def test_each_silence_of_many_doubles_the_wait_up_to_the_longest(silences: int, waits_ns: int):
    assert settling_ns(Flaps(float(silences), HOUR), HOUR) == waits_ns


@pytest.mark.parametrize(
    ("every_ns", "waits_ns"), [(MINUTE, SETTLED_NS_MAX), (4 * MINUTE, 20 * MINUTE), (HOUR, MINUTE)]
)
def test_how_often_it_fails_decides_and_not_for_how_long_it_has_been_here(every_ns: int, waits_ns: int):
    at = [n * every_ns for n in range(200)]
    assert settling_ns(after(*at), at[-1]) == waits_ns


def test_a_line_that_holds_is_forgiven():
    flaps = after(*(n * MINUTE for n in range(30)))
    assert settling_ns(flaps, 30 * MINUTE) == SETTLED_NS_MAX
    assert settling_ns(flaps, 30 * MINUTE + 3 * HALF_LIFE_NS) == MINUTE


async def flap(w, times: int) -> None:
    """Fall silent so often, and be back each time."""
    await w.fleet.tick()
    for _ in range(times):
        w.clock.advance(16 * SECOND)
        await w.fleet.tick()
        assert w.host().link_state is LinkState.SUSPECT
        w.beat()
        await w.fleet.tick()


async def test_a_host_that_flaps_waits_longer_and_is_told_why(w):
    await flap(w, 2)
    assert w.host().is_settled(w.clock.wall_ns() + 60 * SECOND)
    await flap(w, 1)
    assert not w.host().is_settled(w.clock.wall_ns() + 9 * MINUTE)
    assert w.host().is_settled(w.clock.wall_ns() + 10 * MINUTE)
    told = w.read(lambda uow: uow.events.newest(HOST))
    assert [event.text for event in told if "takes new work in 10 min" in event.text]


async def test_the_count_outlives_the_master(w):
    await flap(w, 3)
    kept = w.read(lambda uow: uow[HostRepository].get(HOST)).flaps
    assert round(worth(kept, w.clock.wall_ns())) == 3


async def test_a_silence_is_counted_once_though_the_master_is_started_anew_in_it(w):
    await flap(w, 1)
    w.clock.advance(16 * SECOND)
    await w.fleet.tick()
    counted = w.host().flaps
    w.write(lambda uow: uow[HostRepository].save(replace(uow[HostRepository].get(HOST), link_state=LinkState.UNKNOWN)))
    w.write(lambda uow: w.fleet.hosts.link(uow, HOST, LinkEvent.SILENT, None))
    assert (w.host().link_state, w.host().flaps) == (LinkState.SUSPECT, counted)


async def test_silence_of_many_at_once_is_held_against_nobody(w, monkeypatch):
    monkeypatch.setattr(type(w.fleet.presence.breaker), "is_frozen", lambda self, now_ns: True)
    await flap(w, 5)
    assert w.host().flaps == Flaps()
    assert w.host().is_settled(w.clock.wall_ns() + 60 * SECOND)
