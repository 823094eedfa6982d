"""The whole market under seeded faults keeps every promise; the same seed is the same history; planted bugs are found.

A failure prints the seed and the command that plays the same history again (README.md in this folder).
"""

import inspect
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.simulation import caps
from tests.simulation.__main__ import described
from tests.simulation.faults import KINDS
from tests.simulation.pair import PairedMaster
from tests.simulation.pair_faults import STRIKES
from tests.simulation.planted import BUGS, SHORT, Bug, plan_of
from tests.simulation.world import Plan, World, play, terms
from windrow_proto.units import MINUTE, SECOND

SMALL = Plan(0, hosts=5, renters=3, faulty_ns=2 * MINUTE, settle_ns=6 * MINUTE, fault_every_ns=8 * SECOND)
ALL = bool(os.environ.get("SIM"))
"""`make sim`: every planted bug and more seeds; `make test` plays every tenth bug."""
ALSO = ("kill master", "cut power of master", "reset streams", "kill agent")
SEEDS_MAX = 10
"""In so many histories at most each planted bug must show."""


def checked(world: World) -> World:
    assert not world.verdicts, described(world)
    return world


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.proves("20 agents, 2 Accesses, one Master: I1 to I6, I8, I9, I11 under seeded faults in virtual time")
@pytest.mark.long
def test_twenty_agents_keep_every_promise_while_everything_fails(tmp_path: Path) -> None:
    world = checked(play(Plan(7, faulty_ns=4 * MINUTE, fault_every_ns=3 * SECOND), tmp_path))

    need_luck = {"withhold", "program crashes"}  # there must be something to play again, or to crash
    assert world.happened.keys() >= {kind.name for kind in KINDS if kind.weight > 1} - need_luck
    assert sum(len(renter.created) for renter in world.renters) >= 40


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3] if ALL else [1])
def test_a_small_market_keeps_every_promise(seed: int, tmp_path: Path) -> None:
    checked(play(replace(SMALL, seed=seed), tmp_path))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.proves("several Masters over one database in virtual time: one leads, an overtaken one writes nothing")
@pytest.mark.parametrize("seed", [1, 2, 3, 4] if ALL else [1])
def test_two_masters_keep_every_promise_while_the_lead_changes_hands(seed: int, tmp_path: Path) -> None:
    plan = replace(SMALL, seed=seed, hosts=4, masters=2 + seed % 2, settle_ns=3 * MINUTE, faults=(*STRIKES, *ALSO))

    world = checked(play(plan, tmp_path))

    assert isinstance(world.master, PairedMaster)
    assert len(world.master.server.lives) >= 3


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3] if ALL else [1])
@pytest.mark.long
def test_a_small_market_whose_queues_and_disks_are_full_keeps_every_promise(seed: int, tmp_path: Path) -> None:
    world = checked(play(replace(SMALL, seed=seed, tight=True), tmp_path))

    full = {place for place, cap in caps.TIGHT.items() if world.watch.most.get(place) == cap}
    assert full >= {"agent: evidence offered", "agent: evidence in flight", "master: writes"}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_same_seed_is_the_same_history_and_another_seed_another_one(tmp_path: Path) -> None:
    plan = replace(SHORT, seed=5, faulty_ns=MINUTE)

    first, again = play(plan, tmp_path / "1"), play(plan, tmp_path / "2")
    other = play(replace(plan, seed=6), tmp_path / "3")

    assert first.trace.count == again.trace.count
    assert first.trace.hash == again.trace.hash
    assert other.trace.hash != first.trace.hash


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_what_a_planted_bug_breaks_is_there_to_be_broken(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, replaced = mock.patch.object, list[str]()

    def checking(target: Any, name: str, *new: Any, **more: Any) -> Any:
        replaced.extend(_not_taken(getattr(target, name), one) for one in new)
        return patch(target, name, *new, **more)

    monkeypatch.setattr(mock.patch, "object", checking)
    with bug.plant(), terms(plan_of(bug, SHORT)):
        pass

    assert not any(replaced), "it would fail at its first call, and not as the bug does"


def _not_taken(shipped: Any, planted: Any) -> str:
    """Return the argument of the shipped function that the planted one refuses; empty: it accepts the same calls."""
    if not inspect.isfunction(shipped) or not inspect.isfunction(planted):
        return ""
    named = inspect.signature(shipped).parameters.values()
    places = [one.name for one in named if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    try:
        inspect.signature(planted).bind(*places, **{one.name: None for one in named if one.kind is one.KEYWORD_ONLY})
    except TypeError as error:
        return f"{shipped.__qualname__}: {error}"
    return ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", BUGS if ALL else BUGS[::10], ids=lambda bug: bug.name)
@pytest.mark.long
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    seed = next((seed for seed in range(1, SEEDS_MAX + 1) if _is_found(bug, seed, tmp_path)), None)

    assert seed is not None, f"{bug.name} was planted in {SEEDS_MAX} histories, and no judge of {bug.promise} noticed"
    if ALL:  # else the histories above, without a bug, are the control
        checked(play(plan_of(bug, replace(SHORT, seed=seed)), tmp_path / "control"))


def _is_found(bug: Bug, seed: int, directory: Path) -> bool:
    with bug.plant():
        world = play(plan_of(bug, replace(SHORT, seed=seed)), directory / f"planted{seed}")
    return any(sentence.startswith(bug.promise) for sentence in world.verdicts)
