"""Estimates of starts, and the one line that says why an entry still waits."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.queue.cluster import BEGAN, MILLI, job, projects, tree
from windrow_master.queue.backfill import Host, Profile, RunTimes
from windrow_master.queue.estimate import FEW, Estimate, Estimator, ordinal, room, why
from windrow_master.queue.model import Need, PriorityClass, When
from windrow_master.queue.order import Queue
from windrow_master.queue.shares import Node
from windrow_proto.units import DAY, HOUR, MINUTE

TIMES = RunTimes()


class Scene:
    """A host of eight cards of which six run for an hour; the head of the queue asks for all."""

    def __init__(self, **more: Any) -> None:
        self.queue, self.profile = Queue(tree(8, DAY, *projects(1))), Profile()
        self.profile.join(Host(host_id="gpu-7", pool="a100", cards=8, cpus=64 * MILLI))
        self.profile.take(job("runs", "p0", 0, HOUR, 6).entry, ("gpu-7", tuple(range(6))), BEGAN, HOUR)
        self.put("head", 8, is_top=True)
        self.put("asks", 2, **more)

    def put(self, name: str, cards: int, **more: Any) -> None:
        self.queue.put(job(name, "p0", len(self.queue), 2 * HOUR, cards, **more).entry, BEGAN)

    def reserve(self, name: str) -> None:
        self.profile.reserve(self.queue.entry(name), 2 * HOUR, BEGAN)

    def why(self, place: int | None = 2) -> str:
        entry, kept = self.queue.entry("asks"), self.profile.reservations
        seen = room(self.profile, entry, TIMES.expected_ns(entry), BEGAN)
        return why(self.queue, kept, seen, "asks", place, BEGAN)


def ceiling(scene: Scene, share: int) -> None:
    scene.queue.shares.put(Node(node_id="p0", parent="home", ceiling=share))


def too_small(scene: Scene) -> None:
    ceiling(scene, 100_000)


def two_run(scene: Scene) -> None:
    scene.queue.adopt(job("b", "p0", 0, HOUR, array="a").entry, BEGAN)
    scene.queue.adopt(job("c", "p0", 0, HOUR, array="a").entry, BEGAN)


def run_all(scene: Scene) -> None:
    scene.queue.adopt(job("b", "p0", 0, HOUR, 3).entry, BEGAN)
    ceiling(scene, 500_000)


def gone(scene: Scene) -> None:
    scene.queue.shares.drop("p0")
    scene.queue.shares_changed(BEGAN)


def drained(scene: Scene) -> None:
    scene.profile.drain("gpu-7", BEGAN + HOUR)


def nothing(_scene: Scene) -> None:
    pass


def head_reserves(scene: Scene) -> None:
    scene.reserve("head")


SECOND_IN = "2nd in the queue: "
BEFORE = "free, and the entries before it are placed first."
CASES: list[tuple[dict[str, Any], Callable[[Scene], None], str]] = [
    ({"held_by": "ada"}, nothing, "Held by ada until it is released."),
    ({}, gone, "Its share p0 is deleted: it cannot start."),
    ({"after": (("x", When.OK),)}, nothing, "Waits for x to succeed."),
    ({"after": (("x", When.FAILURE), ("y", When.ANY))}, nothing, "Waits for x to fail, and 1 more."),
    ({"begin_ns": BEGAN + HOUR}, nothing, "Begins at 23:13 UTC at the earliest."),
    ({"begin_ns": BEGAN + 2 * DAY}, nothing, "Begins at 2023-11-16 22:13 UTC at the earliest."),
    ({}, too_small, "This is more than p0 may ever have: raise its ceiling, or ask for less."),
    ({}, run_all, "This waits until p0 holds less: with this it would pass its ceiling."),
    (
        {"need": Need(cards=2, pools=frozenset({"a100"}))},
        head_reserves,
        f"{SECOND_IN}the hosts that have 2 GPUs of a100 free are reserved for head from about 23:13 UTC.",
    ),
    ({}, lambda scene: scene.reserve("asks"), f"{SECOND_IN}it has a reservation on gpu-7 from about 23:13 UTC."),
    ({"need": Need(cards=3)}, nothing, f"{SECOND_IN}no host has 3 GPUs free."),
    ({"need": Need(cards=1, milli=250, hosts=2)}, nothing, f"{SECOND_IN}1 of 2 hosts have 0.25 GPU free."),
    ({"need": Need(cpus=60 * MILLI)}, nothing, f"{SECOND_IN}hosts have 60 CPUs {BEFORE}"),
    (
        {},
        drained,
        f"{SECOND_IN}maintenance begins at 23:13 UTC on hosts that have 2 GPUs free, and it might not end before.",
    ),
    ({"priority_class": PriorityClass.URGENT}, head_reserves, f"{SECOND_IN}hosts have 2 GPUs {BEFORE}"),
]


@pytest.mark.parametrize(("more", "change", "said"), CASES, ids=[said for _, _, said in CASES])
def test_the_one_line_that_says_why(more: dict[str, Any], change: Callable[[Scene], None], said: str) -> None:
    scene = Scene(**more)
    change(scene)
    assert scene.why() == said


def test_a_throttle_says_how_many_run() -> None:
    scene = Scene()
    two_run(scene)
    scene.queue.drop("asks")
    scene.put("asks", 1, array="a", at_once=2)
    assert scene.why(None) == "At most 2 of its array run at once: 2 run."


def test_a_throttle_says_how_many_of_the_array_come_first_while_none_runs() -> None:
    scene = Scene()
    scene.queue.drop("asks")
    for at in range(3):
        scene.put("asks" if at == 2 else f"before-{at}", 1, array="a", index=at, at_once=2)
    assert scene.why(None) == "At most 2 of its array run at once: 0 run, and 2 come before it."


def test_a_plan_places_one_after_another_and_goes_on_at_the_same_pace() -> None:
    scene = Scene()
    for at in range(4):
        scene.put(f"more-{at}", 8)
    scene.reserve("head")
    found = Estimator().plan(scene.queue, scene.profile, TIMES, BEGAN, depth=3)
    planned = [(one.place, (one.planned_ns - BEGAN) // MINUTE) for one in found.values()]
    assert planned == [(1, 60), (2, 180), (3, 300), (4, 400), (5, 500), (6, 600)]
    assert list(scene.profile.reservations) == ["head"]


def test_estimates_learn_from_how_they_turned_out() -> None:
    scene, estimator = Scene(), Estimator()
    for at in range(FEW):
        scene.put(f"j{at}", 8)
    before = estimator.plan(scene.queue, scene.profile, TIMES, BEGAN, depth=1)
    for name, one in before.items():
        estimator.started(name, one.made_ns + 2 * (one.planned_ns - one.made_ns))
    scene.put("last", 8)
    last = estimator.plan(scene.queue, scene.profile, TIMES, BEGAN, depth=1)["last"]
    assert (estimator.scored, estimator.held) == (len(before), len(before))
    assert abs((last.start_ns - BEGAN) / (last.planned_ns - BEGAN) - 2) < 0.01
    assert last.high_ns - last.low_ns < 0.05 * (last.planned_ns - BEGAN)
    estimator.forget("last")
    estimator.started("last", BEGAN)
    assert estimator.scored == len(before)


def test_an_estimate_in_words() -> None:
    times = {"start_ns": BEGAN + HOUR, "low_ns": BEGAN + 58 * MINUTE, "high_ns": BEGAN + 66 * MINUTE}
    assert Estimate(place=3, made_ns=BEGAN, planned_ns=BEGAN, **times).words == "23:13 UTC ± 6 min"
    assert " ".join(map(ordinal, (1, 2, 3, 4, 11, 12, 13, 21, 102))) == "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd"
