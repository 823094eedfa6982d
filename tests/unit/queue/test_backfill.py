"""The profile of what is free when: reservations, gangs, maintenance and runs that take longer than expected."""

from typing import Any

import pytest

from tests.unit.queue.cluster import BEGAN, MILLI, job, projects, tree
from windrow_master.queue.backfill import Hold, Host, Look, Profile, RunTimes
from windrow_master.queue.model import FOREVER, Entry, Need, PriorityClass
from windrow_master.queue.order import Queue
from windrow_proto.units import DAY, HOUR, MINUTE


def entry(entry_id: str, cards: int = 1, minutes: int = 60, **more: Any) -> Entry:
    return job(entry_id, "p0", 0, minutes * MINUTE, cards, **more).entry


def need(cards: int = 8, **more: Any) -> Need:
    return Need(cards=cards, cpus=MILLI, **more)


def profile_of(*ends: tuple[int, ...], pools: str = "aaaa") -> Profile:
    """Hosts of eight cards; runs of one card that end after so many minutes, from the first card on."""
    profile = Profile()
    for at, (minutes, pool) in enumerate(zip(ends, pools, strict=False)):
        profile.join(Host(host_id=f"h{at}", pool=pool, cards=8, cpus=64 * MILLI))
        for card, one in enumerate(minutes):
            profile.take(entry(f"r{at}-{card}", minutes=one), (f"h{at}", (card,)), BEGAN, one * MINUTE)
    return profile


def start(profile: Profile, one: Entry, minutes: int | None = 60, **more: Any) -> tuple[int, list[str]] | None:
    """Minutes until its reservation, and its hosts."""
    found = profile.reserve(one, None if minutes is None else minutes * MINUTE, BEGAN, **more)
    return None if found is None else ((found.start_ns - BEGAN) // MINUTE, [host for host, _ in found.places])


@pytest.mark.parametrize(
    ("ends", "asked", "found"),
    [
        (((10,) * 8, (30,)), need(8), (10, ["h0"])),
        (((10, 50), (30,)), need(8), (30, ["h1"])),
        (((10, 50), (30,)), need(7), (10, ["h0"])),
        (((10,) * 8, (30,) * 8), need(8, pools=frozenset({"b"})), (30, ["h1"])),
        (((10,) * 8, (30,) * 8, (40,) * 8, (50,) * 8), need(8, hosts=2), (40, ["h0", "h2"])),
        (((10,) * 8, (30,) * 8, (40,) * 8, (50,) * 8), need(8, hosts=4), None),
        (((10,) * 8,), need(9), None),
        (((10,) * 8,), need(1, pools=frozenset({"c"})), None),
        (((10,) * 8,), need(1, milli=500), (10, ["h0"])),
    ],
)
def test_a_reservation_is_where_there_is_room_first(ends: Any, asked: Need, found: Any) -> None:
    assert start(profile_of(*ends, pools="abaa"), entry("head", need=asked)) == found


def test_a_reservation_stays_until_its_time_and_is_made_anew_then() -> None:
    profile = profile_of((10,) * 8, (30,) * 8)
    one = entry("head", 8)
    assert start(profile, one) == (10, ["h0"])
    profile.give_back("r1-0", ["h1"])
    assert start(profile, one) == (10, ["h0"])
    later = profile.reserve(one, HOUR, BEGAN + 10 * MINUTE)
    assert later is not None
    assert later.start_ns == BEGAN + 11 * MINUTE  # the runs are at their limits, and are being ended


def test_a_class_heeds_its_own_reservations_and_those_before_it() -> None:
    profile = profile_of((10,) * 4)
    start(profile, entry("head", 8, priority_class=PriorityClass.NORMAL))
    for of, is_closed in ((PriorityClass.URGENT, False), (PriorityClass.NORMAL, True), (PriorityClass.SPOT, True)):
        one = entry("small", priority_class=of)
        assert ("h0" in profile.closed(one, HOUR, BEGAN)) is is_closed
        assert not profile.closed(one, 10 * MINUTE, BEGAN)
    assert start(profile, entry("low", 8, priority_class=PriorityClass.LOW)) == (70, ["h0"])
    assert profile.closed(entry("endless"), None, BEGAN)["h0"].by == "head"


def test_what_is_left_beside_a_reservation_is_free_for_others() -> None:
    profile = profile_of((10,) * 4)
    start(profile, entry("head", 6))
    assert not profile.closed(entry("small", 2), DAY, BEGAN)
    assert profile.closed(entry("larger", 3), DAY, BEGAN)


def test_a_host_that_leaves_shrinks_or_is_told_twice() -> None:
    profile = profile_of((10,) * 8, (30,) * 8)
    one = entry("head", 8)
    start(profile, one)
    profile.leave("h0")
    profile.leave("h0")
    assert profile.reservations == {}
    assert start(profile, one) == (30, ["h1"])
    profile.join(Host(host_id="h1", pool="a", cards=4, cpus=64 * MILLI))
    profile.unreserve("head")
    assert start(profile, one) is None
    profile.give_back("r1-0", ["h1", "h9"])
    assert profile.free(entry("small"), BEGAN) == {"h1"}


def test_no_host_is_kept_from_what_could_not_have_it_even_if_it_were_free() -> None:
    profile = profile_of((10,), (30,))
    assert start(profile, entry("head", 8)) == (10, ["h0"])
    for asked in (need(9), need(8, pools=frozenset({"b"})), need(8, only=frozenset({"h1"})), need(1, memory=1)):
        assert not profile.closed(entry("other", need=asked), None, BEGAN), asked
    assert profile.closed(entry("other", need=need(1, only=frozenset({"h0"}))), None, BEGAN)


def test_maintenance_that_is_planned_for_the_time_of_a_reservation_sends_it_elsewhere() -> None:
    profile, one = profile_of((10,) * 8, (30,) * 8), entry("head", 8)
    assert start(profile, one) == (10, ["h0"])
    profile.drain("h0", BEGAN + 70 * MINUTE)
    assert start(profile, one) == (10, ["h0"]), "it ends before"
    profile.drain("h0", BEGAN + 69 * MINUTE)
    assert start(profile, one) == (30, ["h1"])


def test_maintenance_is_taken_back_by_an_empty_span() -> None:
    profile = profile_of(())
    profile.drain("h0", BEGAN + HOUR)
    assert profile.closed(entry("long"), 2 * HOUR, BEGAN)["h0"].by == "maintenance"
    assert start(profile, entry("long"), 120, is_refused=False) is None
    profile.drain("h0", 0, 0)
    assert profile.closed(entry("long"), 2 * HOUR, BEGAN) == {}
    assert start(profile, entry("long"), 120, is_refused=False) == (0, ["h0"])


@pytest.mark.parametrize(
    ("until", "limit", "now", "ends"),
    [
        (60, 100, 10, 60),
        (60, 100, 60, 100),
        (60, 400, 70, 140),
        (60, 100, 99, 100),
        (60, 100, 101, 102),
        (0, None, 0, 1),
        (0, None, 30, 60),
    ],
)
def test_a_run_that_takes_longer_takes_as_long_again_up_to_its_limit(
    until: int, limit: int | None, now: int, ends: int
) -> None:
    limit_ns = FOREVER if limit is None else limit * MINUTE
    span = {"from_ns": 0, "until_ns": until * MINUTE, "limit_ns": limit_ns}
    hold = Hold(by="run", need=need(), cards=(), is_run=True, **span)
    assert hold.ends_ns(now * MINUTE) == ends * MINUTE


@pytest.mark.parametrize(
    ("runs", "limit", "expected"),
    [((), 60, 60), ((), None, None), ((10,), 60, 10), ((10, 20, 40), 60, 30), ((90,), 60, 60)],
)
def test_run_times_are_the_lesser_of_the_limit_and_the_mean_of_the_last_two(
    runs: tuple[int, ...], limit: int | None, expected: int | None
) -> None:
    times, one = RunTimes(), entry("a", limit_ns=None if limit is None else limit * MINUTE, name="train")
    for minutes in runs:
        times.ended(one, minutes * MINUTE)
    assert times.expected_ns(one) == (None if expected is None else expected * MINUTE)
    assert times.expected_ns(entry("b", minutes=7, name="other")) == 7 * MINUTE


def test_a_look_plans_each_need_once_and_stops_after_its_tries() -> None:
    queue, profile = Queue(tree(8, DAY, *projects(1))), profile_of((60,) * 8)
    for at in range(60):
        queue.put(entry(f"j{at:02}", cards=1 + at // 20, minutes=30), BEGAN)
    look, tried = Look(queue, profile, RunTimes(), BEGAN), list[str]()
    while (one := look.next()) is not None:
        tried.append(one.entry_id)
        look.refused(one)
    assert tried == ["j00", "j20", "j40"]
    assert list(profile.reservations) == ["j00"]
    assert Look(queue, profile, RunTimes(), BEGAN, tries=0).next() is None


def test_a_reservation_follows_when_another_becomes_the_head_or_it_is_cancelled() -> None:
    queue, profile = Queue(tree(8, DAY, *projects(1))), profile_of((60,) * 8)
    for name in ("a", "b"):
        queue.put(entry(name, 8), BEGAN)
    for change, head in ((lambda: None, "a"), (lambda: queue.top("b", BEGAN), "b"), (lambda: queue.drop("b"), "a")):
        change()
        look = Look(queue, profile, RunTimes(), BEGAN)
        look.refused(look.next() or entry("none"))
        assert list(profile.reservations) == [head]
