"""Many histories, one after another: do seeds keep every promise, and how soon are planted bugs found.

    --seeds 1:301   each seed with every fault; every TWICE_EVERYth is played twice and must leave the same trace
    --bugs 20       plants each bug in at most so many histories and prints how many it took, and the median
    --jobs 2        in so many processes; what is printed stays in the order of seeds or bugs

The last line is one JSON object with the figures. Exit status 1 when a promise was broken, or a bug not found.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from tests.simulation.__main__ import described
from tests.simulation.planted import BUGS, SHORT, plan_of
from tests.simulation.world import Plan, World, play
from windrow_proto.units import MINUTE, SECOND

T = TypeVar("T")
R = TypeVar("R")

TWICE_EVERY = 10
HOSTS = 6
"""Small markets show as much in a minute as large ones in ten, and every tenth seed has TWENTY."""
TWENTY = 20
AS_SHIPPED = 5
"""Every tenth seed, those that end so, samples each second, as the product does."""
TIGHT = 3
"""And those that end so have caps that are reached."""
PAIRED = 7
"""And those that end so have two Masters."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one history. has_repeated: itself, line for line; None: it was played once."""

    text: str
    virtual_ns: int
    processor_s: float
    is_broken: bool
    has_repeated: bool | None
    happened: Mapping[str, int]


def plan_for(seed: int, minutes: float, hosts: int | None) -> Plan:
    """Returns the plan of the history of this seed."""
    count = hosts or (TWENTY if seed % TWICE_EVERY == 1 else HOSTS)
    plan = Plan(seed, hosts=count, faulty_ns=int(minutes * MINUTE), tight=seed % TWICE_EVERY == TIGHT)
    if seed % TWICE_EVERY == PAIRED:
        return replace(plan, masters=2)
    return replace(plan, sample_ns=SECOND) if seed % TWICE_EVERY == AS_SHIPPED else plan


def outcome(plan: Plan) -> Outcome:
    """Play one history, each TWICE_EVERYth twice."""
    world, took_s = _played(plan)
    again = _played(plan)[0].trace.hash == world.trace.hash if plan.seed % TWICE_EVERY == 0 else None
    now_ns = world.clock.monotonic_ns()
    short = f"seed {plan.seed}: {now_ns / SECOND:.0f} virtual s, trace {world.trace.hash[:16]}"
    is_noted = world.verdicts or again is False
    text = described(world, took_s) if is_noted else short
    return Outcome(text, now_ns, took_s, bool(world.verdicts), again, dict(world.happened))


def _played(plan: Plan) -> tuple[World, float]:
    began = time.process_time()
    with tempfile.TemporaryDirectory() as directory:
        return play(plan, Path(directory)), time.process_time() - began


def in_order(work: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[R]:
    """The results of all tasks in the tasks' order, worked on in so many processes; one: in this one."""
    if jobs == 1:
        yield from map(work, tasks)
        return
    # Begun anew and not forked: each process is as the first history of a fresh one finds it.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, tasks)


def play_seeds(plans: Sequence[Plan], jobs: int) -> dict[str, Any]:
    """Play them, say what was wrong, and return the figures."""
    figures = {"seeds": 0, "virtual_minutes": 0.0, "processor_s": 0.0, "broken": 0, "repeated": 0, "not_repeated": 0}
    happened: dict[str, int] = {}
    for one in in_order(outcome, plans, jobs):
        figures["seeds"] += 1
        figures["virtual_minutes"] += one.virtual_ns / MINUTE
        figures["processor_s"] += one.processor_s
        figures["broken"] += one.is_broken
        figures["repeated"] += one.has_repeated is True
        figures["not_repeated"] += one.has_repeated is False
        for name, count in one.happened.items():
            happened[name] = happened.get(name, 0) + count
        print(one.text, flush=True)
    return {**figures, "faults": dict(sorted(happened.items()))}


def seeds_needed(name: str, most: int) -> int | None:
    """In which history the bug of this name was found; None when `most` did not show it."""
    bug = next(bug for bug in BUGS if bug.name == name)
    for seed in range(1, most + 1):
        with bug.plant():
            world, _ = _played(plan_of(bug, replace(SHORT, seed=seed)))
        if any(sentence.startswith(bug.promise) for sentence in world.verdicts):
            return seed
    return None


def look_for_bugs(most: int, only: list[str], jobs: int) -> dict[str, Any]:
    """Plant each, print what it took, and return the figures."""
    bugs = [bug for bug in BUGS if not only or bug.name in only]
    found: dict[str, int | None] = {}
    answers = in_order(partial(seeds_needed, most=most), [bug.name for bug in bugs], jobs)
    for bug, found[bug.name] in zip(bugs, answers, strict=True):
        print(f"{bug.promise:4}{bug.name:44}{found[bug.name] or f'not in {most}'}", flush=True)
    needed = [number for number in found.values() if number is not None]
    median = statistics.median(needed) if needed else None
    return {"bugs": len(found), "caught": len(needed), "median_seeds": median, "needed": found}


def main() -> int:
    """0: every promise held, every bug was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.campaign", description=__doc__)
    parser.add_argument("--seeds", metavar="FIRST:END", help="play these, END not included")
    parser.add_argument("--minutes", type=float, default=10.0, help="virtual minutes of faults in each (10)")
    parser.add_argument("--hosts", type=int, help="agents in each")
    parser.add_argument("--bugs", type=int, metavar="MOST", help="plant each bug in at most so many histories")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--bug", action="append", default=[], help="only this bug")
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    if asked.seeds:
        first, _, end = asked.seeds.partition(":")
        plans = [plan_for(seed, asked.minutes, asked.hosts) for seed in range(int(first), int(end))]
        figures |= play_seeds(plans, asked.jobs)
    if asked.bugs:
        figures |= look_for_bugs(asked.bugs, asked.bug, asked.jobs)
    print(json.dumps(figures))
    return (
        1 if figures.get("broken") or figures.get("not_repeated") or figures.get("caught") != figures.get("bugs") else 0
    )


if __name__ == "__main__":
    sys.exit(main())
