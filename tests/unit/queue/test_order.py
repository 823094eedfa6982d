"""Orders of entries, and all that keeps one from starting."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.queue.cluster import BEGAN, job, projects, tree
from windrow_master.queue.model import End, Entry, PriorityClass, When
from windrow_master.queue.order import STALE_MAX, Queue, Waits
from windrow_master.queue.shares import Node
from windrow_proto.errors import Conflict, InvalidInput, NotFound
from windrow_proto.units import DAY, HOUR, MINUTE


def entry(name: str, at_ns: int = 0, **more: Any) -> Entry:
    return job(name, str(more.pop("leaf", "p0")), at_ns, HOUR, **more).entry


def queue_of(*entries: Entry, weights: tuple[int, ...] = (1,), **more: Any) -> Queue:
    queue = Queue(tree(8, DAY, *projects(*weights)), **more)
    for one in entries:
        queue.put(one, BEGAN)
    return queue


def names(queue: Queue, now_ns: int = BEGAN, **more: Any) -> list[str]:
    return [one.entry_id for one in queue.first(now_ns, **more)]


@pytest.mark.parametrize(
    ("entries", "order"),
    [
        ([entry("b", 1), entry("a", 0)], "a b"),
        ([entry("a"), entry("b", priority=1)], "b a"),
        ([entry("a", priority=100), entry("b", priority_class=PriorityClass.URGENT)], "b a"),
        ([entry("a"), entry("b", is_top=True)], "b a"),
        ([entry("a1", array="a", index=10), entry("a2", array="a", index=9)], "a2 a1"),
        ([entry("a"), entry("b"), entry("c", leaf="p1"), entry("d", leaf="p1")], "a c b d"),
        ([entry("a", begin_ns=BEGAN + 1), entry("b")], "b"),
        ([entry("a", after=(("x", When.ANY),)), entry("b")], "b"),
    ],
)
def test_the_order(entries: list[Entry], order: str) -> None:
    assert names(queue_of(*entries, weights=(1, 1))) == order.split()


def test_an_entry_begins_at_its_time_and_its_age_counts_from_then() -> None:
    queue = queue_of(entry("later", begin_ns=BEGAN + HOUR), entry("now", 30 * MINUTE))
    assert (queue.due_ns(), queue.state("later")) == (BEGAN + HOUR, Waits.BEGIN)
    assert names(queue, BEGAN + HOUR) == ["now", "later"]
    assert queue.due_ns() is None
    assert queue.factors("later", BEGAN + HOUR).age == 0


def test_times_of_what_was_dropped_or_held_before_it_began_are_not_kept() -> None:
    queue = queue_of(entry("later", begin_ns=BEGAN + HOUR))
    for _ in range(2 * STALE_MAX):
        queue.put(entry("gone", begin_ns=BEGAN + 10_000 * DAY), BEGAN)
        queue.hold("later", "ada", BEGAN)
        queue.release("later", BEGAN)
        queue.drop("gone")
    assert len(queue._begins) <= STALE_MAX + 4
    assert (queue.due_ns(), names(queue, BEGAN + HOUR)) == (BEGAN + HOUR, ["later"])


def test_factors_are_the_place_in_numbers() -> None:
    queue = queue_of(entry("a", priority=7), weights=(4,), age_cap_ns=200 * MINUTE)
    queue.shares.charge("p0", entry("a").cost, BEGAN - HOUR, BEGAN, BEGAN)
    factors = queue.factors("a", BEGAN + 30 * MINUTE)
    assert (factors.priority, factors.age, factors.points) == (7, 30, 37)
    assert factors.is_above == (True, True)
    assert factors.usage[1] == pytest.approx(factors.usage[0] / 4, rel=1e-3)


def test_hold_release_and_top() -> None:
    queue = queue_of(entry("a"), entry("b"), entry("c"))
    queue.hold("a", "ada", BEGAN)
    queue.top("c", BEGAN)
    assert (names(queue), queue.state("a"), queue.entry("a").held_by) == (["c", "b"], Waits.HELD, "ada")
    with pytest.raises(Conflict, match="not ready"):
        queue.start(entry("a"), BEGAN)
    queue.release("a", BEGAN + HOUR)
    assert names(queue, BEGAN + HOUR) == ["c", "b", "a"]
    assert queue.entry("a").released_ns == BEGAN + HOUR


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("is_ok", [True, False])
@pytest.mark.parametrize("is_known", [True, False])
def test_dependencies_on_any_end_on_success_and_on_failure(when: When, is_ok: bool, is_known: bool) -> None:
    asked, end = entry("next", after=(("first", when),)), End(is_ok, BEGAN + HOUR)
    queue = queue_of()
    queue.put(asked, BEGAN, {"first": end} if is_known else {})
    never = [] if is_known else queue.ended("first", end)
    starts = when is When.ANY or is_ok is (when is When.OK)
    assert queue.state("next") is (Waits.READY if starts else Waits.NEVER)
    assert never == ([] if starts or is_known else ["next"])
    if starts:  # its age counts from that end
        assert queue.factors("next", BEGAN + 2 * HOUR).age == pytest.approx(200 / 24)


def test_an_array_takes_the_next_one_when_one_ends_is_held_or_cancelled() -> None:
    queue = queue_of(*(entry(f"a{at}", array="a", index=at, at_once=2) for at in range(6)))
    assert names(queue) == ["a0", "a1"]
    queue.start(queue.entry("a0"), BEGAN)
    assert (names(queue), queue.running("a"), queue.state("a2")) == (["a1"], 1, Waits.THROTTLED)
    queue.hold("a1", "ada", BEGAN)
    queue.drop("a2")
    assert names(queue) == ["a3"]
    queue.end("a0", BEGAN + HOUR, True)
    assert names(queue) == ["a3", "a4"]
    queue.release("a1", BEGAN + HOUR)
    assert queue.state("a1") is Waits.THROTTLED


def test_what_is_put_again_keeps_its_place_and_gives_back_its_share() -> None:
    queue = queue_of(entry("a"), entry("b", 1))
    queue.start(entry("a"), BEGAN)
    assert queue.shares.standing("p0", BEGAN).held == 1 / 8
    assert queue.end("a", BEGAN + HOUR, None) == []
    queue.put(entry("a"), BEGAN + HOUR)
    assert names(queue) == ["a", "b"]
    assert queue.shares.standing("p0", BEGAN).held == 0


def test_work_of_a_deleted_project_waits_and_says_so() -> None:
    queue = queue_of(entry("a"), entry("b", leaf="p1"), weights=(1, 1))
    queue.shares.drop("p0")
    queue.shares_changed(BEGAN)
    assert (names(queue), queue.state("a")) == (["b"], Waits.NO_SHARE)
    queue.shares.put(Node(node_id="p0", parent="home"))
    queue.shares_changed(BEGAN)
    assert len(names(queue)) == 2
    queue.put(entry("late", leaf="p9"), BEGAN)  # as a new Master finds it
    assert queue.state("late") is Waits.NO_SHARE
    for name in ("a", "b", "late"):
        queue.drop(name)
    assert (len(queue), names(queue)) == (0, [])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"priority": 101}, "priority"),
        ({"priority": -101}, "priority"),
        ({"at_once": 0}, "at_once"),
        ({"leaf": "home"}, "share"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        queue_of(replace(entry("a"), **wrong))


def test_unknown_entries_are_not_found() -> None:
    queue = queue_of()
    queue.drop("gone")
    for ask in (queue.state, queue.entry, queue.missing):
        with pytest.raises(NotFound, match="gone"):
            ask("gone")


def test_a_ceiling_ends_the_turn_of_its_node_and_one_that_never_fits_is_passed_over() -> None:
    queue = queue_of(weights=(1, 1))
    queue.shares.put(Node(node_id="p0", parent="home", ceiling=500_000))
    for name, cards in (("never", 5), ("three", 3), ("two", 2), ("one", 1)):
        queue.put(entry(name, len(queue), cards=cards), BEGAN)
    queue.put(entry("other", 9, leaf="p1"), BEGAN)
    assert sorted(names(queue)) == ["other", "three"]
    assert sorted(names(queue, is_capped=False)) == ["one", "other", "three", "two"]


def test_a_hundred_thousand_entries_are_not_sorted_anew() -> None:
    """Counted and not timed: an event compares a few keys of a sorted list, and looks at a few ranks."""
    queue = queue_of(weights=(1,) * 10)
    for at in range(2_000):
        queue.put(entry(f"j{at}", at, leaf=f"p{at % 10}"), BEGAN)
    ranks = 0
    found = queue.shares.rank

    def counted(*args: Any) -> Any:
        nonlocal ranks
        ranks += 1
        return found(*args)

    queue.shares.rank = counted  # type: ignore[method-assign, assignment]  # to count its calls
    queue.start(next(queue.first(BEGAN)), BEGAN)
    assert ranks <= 11
    assert len(list(queue.first(BEGAN, 50))) == 50
    assert ranks <= 2 * 11 + 2 * 50
