"""The queue in virtual time: each judge finds nothing wrong, and the bugs that are planted are found by the same."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.queue import judges
from windrow_master.queue import quota
from windrow_master.queue.backfill import Look, Profile
from windrow_master.queue.estimate import Estimator
from windrow_master.queue.model import End
from windrow_master.queue.order import Queue, Waits
from windrow_master.queue.shares import WHOLE, Shares

Plant = Callable[[pytest.MonkeyPatch], None]
Judge = Callable[[], list[str]]


@pytest.mark.parametrize("judge", judges.JUDGES, ids=lambda judge: judge.__name__)
def test_the_queue_is_right(judge: Judge) -> None:
    assert judge() == []


def set_to(owner: Any, name: str, value: Any) -> Plant:
    """A bug that replaces one function."""
    return lambda patch: patch.setattr(owner, name, value)


def _no_aging(patch: pytest.MonkeyPatch) -> None:
    made = Queue.__init__

    def init(self: Queue, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        self._point_ns = 10**30

    patch.setattr(Queue, "__init__", init)


def _held_is_ready(patch: pytest.MonkeyPatch) -> None:
    found = Queue._obstacle

    def obstacle(self: Queue, one: Any, now_ns: int) -> Waits:
        state = found(self, one, now_ns)
        return Waits.READY if state is Waits.HELD else state

    patch.setattr(Queue, "_obstacle", obstacle)


def _one_more(patch: pytest.MonkeyPatch) -> None:
    checked = quota.check
    patch.setattr(
        judges, "check", lambda quotas, *args: checked([replace(one, limit=one.limit + 1) for one in quotas], *args)
    )


def _ranked(change: Callable[[Shares, str, tuple[bool, float, str]], Any]) -> Plant:
    found = Shares.rank
    return set_to(Shares, "rank", lambda self, node, *args: change(self, node, found(self, node, *args)))


def _caps(self: Shares, leaf: str) -> list[tuple[str, int]]:
    nodes = [self._state(one).node for one in self.path(leaf)[1:]]
    return [(one.node_id, one.ceiling) for one in nodes if one.ceiling < WHOLE]


def _narrow(patch: pytest.MonkeyPatch) -> None:
    made = Estimator._estimate

    def estimate(self: Estimator, *args: Any) -> Any:
        found = made(self, *args)
        return replace(
            found, low_ns=(found.low_ns + found.start_ns) // 2, high_ns=(found.high_ns + found.start_ns) // 2
        )

    patch.setattr(Estimator, "_estimate", estimate)


PLANTED: dict[str, tuple[Plant, Judge]] = {
    "no aging": (_no_aging, judges.aging),
    "shares ignored": (_ranked(lambda _of, _node, rank: (False, 0.0, rank[2])), judges.weights),
    "weights ignored": (
        _ranked(lambda of, node, rank: (rank[0], rank[1] * of._state(node).node.weight, rank[2])),
        judges.weights,
    ),
    "guarantees ignored": (_ranked(lambda _of, _node, rank: (False, *rank[1:])), judges.guarantees),
    "organisations not one leaf": (
        set_to(Shares, "path", lambda self, node: ("installation", node)),
        judges.organisations,
    ),
    "backfill without reservation": (set_to(Profile, "reserve", lambda *_, **__: None), judges.large_in_flood),
    "reservations not heeded": (set_to(Profile, "closed", lambda *_: {}), judges.large_in_flood),
    "maintenance not heeded": (set_to(Profile, "drain", lambda *_: None), judges.maintenance),
    "usage never decays": (set_to(Shares, "_decay", lambda *_: 1.0), judges.decay),
    "decay by e and not by 2": (
        set_to(Shares, "_decay", lambda self, passed_ns: 2.718281828 ** -(max(0, passed_ns) / self.half_life_ns)),
        judges.decay,
    ),
    "no backfill": (set_to(Look, "closed", lambda self, _: frozenset(self._profile._hosts)), judges.backfill),
    "throttle off": (set_to(Queue, "_admits", lambda *_: True), judges.array_throttle),
    "hold ignored": (_held_is_ready, judges.holds),
    "any end satisfies": (set_to(End, "satisfies", lambda *_: True), judges.dependencies),
    "quota off by one": (_one_more, judges.quotas),
    "borrowing ignored": (set_to(Shares, "_caps", _caps), judges.borrowing),
    "ceilings ignored": (set_to(Shares, "over", lambda *_: None), judges.borrowing),
    "error bars too narrow": (_narrow, judges.intervals),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, judge = PLANTED[bug]
    plant(monkeypatch)
    assert judge() != []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_weights_hold_on_a_larger_cluster(seed: int) -> None:
    assert judges.weights(hosts=8, seed=seed) == []


@pytest.mark.long
@pytest.mark.parametrize("milli", [1000, 510, 333, 100])
@pytest.mark.parametrize("hosts", [1, 3])
@pytest.mark.parametrize("load", [0.5, 0.95, 1.05])
def test_a_large_request_starts_in_any_flood(milli: int, hosts: int, load: float) -> None:
    assert judges.large_in_flood(load, milli, hosts) == []


@pytest.mark.long
@pytest.mark.parametrize("load", [1.0, 4.0])
def test_a_large_request_of_another_project_starts_in_a_flood_beyond_the_fleet(load: float) -> None:
    assert judges.large_in_flood(load, leaf="p1") == []


@pytest.mark.long
@pytest.mark.parametrize(("seed", "load", "hosts"), [(1, 0.95, 4), (2, 0.95, 4), (3, 1.1, 4), (4, 0.8, 4), (5, 1.0, 2)])
def test_intervals_hold_as_often_as_they_say(seed: int, load: float, hosts: int) -> None:
    one = judges.estimated(seed, 700, load, hosts).estimator
    assert one.scored >= 100
    assert 0.75 <= one.held / one.scored <= 0.85
