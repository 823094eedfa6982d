"""Through which Access a tunnel goes: what both ends measured decides, and the host's own wins ties."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.network.nearest_access import (
    LISTED_MAX,
    Nearby,
    TunnelPlace,
    Unreached,
    Wish,
    choose,
    listed,
)
from windrow_proto.nearness import is_clearly_nearer
from windrow_proto.units import MILLISECOND


def place(name: str, load_permille: int = 0) -> TunnelPlace:
    return TunnelPlace(name, f"{name}/0", f"out-{name}:1", f"in-{name}:1", load_permille)


def nearby(**host_ms: float) -> Nearby:
    """Own is the host's; of the others A, B and C may be chosen."""
    rtts_ns = {name: int(ms * MILLISECOND) for name, ms in host_ms.items()}
    return Nearby("own", tuple(map(place, ("A", "B", "C", "own"))), rtts_ns)


def wish(*without: str, **renter_ms: float) -> Wish:
    return Wish({name: int(ms * MILLISECOND) for name, ms in renter_ms.items()}, frozenset(without))


def chosen(known: Nearby, wished: Wish) -> str:
    found = choose(known, wished)
    return "own" if found is None else found.access_id


@pytest.mark.parametrize(
    ("known", "wished", "name"),
    [
        (nearby(own=5, A=10), wish(), "own"),  # an older sdk
        (nearby(own=5), wish(own=80, A=5), "own"),  # an older agent
        (nearby(own=5, A=20), wish(own=80, A=5), "A"),
        (nearby(own=5, A=90), wish(own=80, A=5), "own"),  # near the renter, and far from the host
        (nearby(own=5, A=60), wish(own=80, A=5), "own"),  # 65 of 85 ms: not by a third
        (nearby(own=5, A=5), wish(own=9, A=1), "own"),  # 6 of 14 ms: not by 10
        (nearby(own=5, A=5), wish(A=1), "own"),  # nobody knows how far its own is
        (nearby(own=5, A=20, B=15), wish(own=80, A=5, B=5), "B"),
        (nearby(own=5, A=20, Z=1), wish(own=80, A=5, Z=1), "A"),  # Z is drained, or has no tunnels
        (nearby(own=5, A=20, B=25), wish("A", own=80, A=5, B=5), "B"),
        (nearby(own=5, A=200, B=190), wish("own", A=5, B=5), "B"),  # whatever it costs
        (nearby(own=5, A=20), wish("own", B=1), "B"),  # unknown to the host, and near the renter
        (nearby(own=5, C=20), wish("own"), "C"),
        (nearby(own=5), wish("own"), "A"),
        (nearby(own=5), wish("own", "A", "B", "C"), "own"),
    ],
)
def test_the_least_sum_of_both_round_trips_is_taken_where_it_is_clearly_less(
    known: Nearby, wished: Wish, name: str
) -> None:
    assert chosen(known, wished) == name


def test_of_about_as_near_ones_the_least_loaded_is_taken() -> None:
    known = nearby(own=5, A=20, B=21)
    loaded = replace(known, places=(place("A", 700), place("B", 100)))
    wished = wish(own=80, A=5, B=5)
    assert (chosen(known, wished), chosen(loaded, wished)) == ("A", "B")


ROUND_TRIPS = st.dictionaries(st.sampled_from(["own", "A", "B", "C", "Z"]), st.integers(0, 10**9))


@given(ROUND_TRIPS, ROUND_TRIPS, st.frozensets(st.sampled_from(["own", "A", "B", "C", "Z"])))
def test_another_is_only_taken_for_a_reason(
    host: dict[str, int], renter: dict[str, int], without: frozenset[str]
) -> None:
    known = replace(nearby(), rtts_ns=host)
    found = choose(known, Wish(renter, without))
    sums_ns = {name: host[name] + renter[name] for name in host.keys() & renter.keys()}
    assert found is None or found.access_id in {"A", "B", "C"} - without
    assert found is None or "own" in without or is_clearly_nearer(sums_ns[found.access_id], sums_ns["own"])
    assert found is not None or "own" not in without or {"A", "B", "C"} <= without


def test_a_renter_is_told_of_the_hosts_own_first_then_of_the_nearest_to_the_host_and_of_so_many() -> None:
    assert [one.access_id for one in listed(nearby(own=50, C=3, B=9))] == ["own", "C", "B", "A"]
    many = replace(nearby(), places=tuple(place(f"many_{number:02d}") for number in range(40)))
    assert len(listed(many)) == LISTED_MAX


def test_a_renter_is_told_of_none_where_there_is_no_choice() -> None:
    assert listed(Nearby("own", (place("own"),))) == listed(Nearby()) == ()


def test_what_a_host_did_not_reach_is_forgotten_in_time_and_in_number() -> None:
    unreached, known = Unreached(kept_ns=10, most=2), nearby()
    for name in ("A", "B", "C"):
        unreached.note("host_1", name, 0)
    assert [one.access_id for one in unreached.but("host_1", known, 9).places] == ["A", "own"]
    assert unreached.but("host_2", known, 9) == unreached.but("host_1", known, 10) == known
