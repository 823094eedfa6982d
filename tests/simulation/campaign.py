"""Many histories, one after another: do seeds keep every promise, and how soon are planted bugs found.

    --seeds 1:301   each seed with every fault; every TWICE_EVERYth is played twice and must leave the same trace
    --bugs 20       plants each bug in at most so many histories and prints how many it took, and the median

The last line is one JSON object with the figures. Exit status 1 when a promise was broken, or a bug not found.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.simulation.__main__ import described
from tests.simulation.planted import BUGS, SHORT, Bug, plan_of
from tests.simulation.world import Plan, World, play
from windrow_proto.units import MINUTE, SECOND

TWICE_EVERY = 10
HOSTS = 6
"""Small markets show as much in a minute as large ones in ten, and every tenth seed has TWENTY."""
TWENTY = 20
AS_SHIPPED = 5
"""Every tenth seed, those that end so, samples each second, as the product does."""


def seeds(first: int, end: int, minutes: float, hosts: int | None) -> Iterator[tuple[World, float, bool | None]]:
    """Each history with its processor seconds, and whether it repeated itself (None: it was played once)."""
    for seed in range(first, end):
        count = hosts or (TWENTY if seed % TWICE_EVERY == 1 else HOSTS)
        plan = Plan(seed, hosts=count, faulty_ns=int(minutes * MINUTE))
        if seed % TWICE_EVERY == AS_SHIPPED:
            plan = replace(plan, sample_ns=SECOND)
        world, took_s = _played(plan)
        again = _played(plan)[0].trace.hash == world.trace.hash if seed % TWICE_EVERY == 0 else None
        yield world, took_s, again


def _played(plan: Plan) -> tuple[World, float]:
    began = time.process_time()
    with tempfile.TemporaryDirectory() as directory:
        return play(plan, Path(directory)), time.process_time() - began


def play_seeds(first: int, end: int, minutes: float, hosts: int | None) -> dict[str, Any]:
    """Play them, say what was wrong, and return the figures."""
    figures = {"seeds": 0, "virtual_minutes": 0.0, "processor_s": 0.0, "broken": 0, "repeated": 0, "not_repeated": 0}
    happened: dict[str, int] = {}
    for world, took_s, again in seeds(first, end, minutes, hosts):
        figures["seeds"] += 1
        figures["virtual_minutes"] += world.clock.monotonic_ns() / MINUTE
        figures["processor_s"] += took_s
        figures["broken"] += bool(world.verdicts)
        figures["repeated"] += again is True
        figures["not_repeated"] += again is False
        for name, count in world.happened.items():
            happened[name] = happened.get(name, 0) + count
        is_noted = world.verdicts or again is False
        virtual_s = world.clock.monotonic_ns() / SECOND
        short = f"seed {world.plan.seed}: {virtual_s:.0f} virtual s, trace {world.trace.hash[:16]}"
        print(described(world, took_s) if is_noted else short, flush=True)
    return {**figures, "faults": dict(sorted(happened.items()))}


def seeds_needed(bug: Bug, most: int) -> int | None:
    """In which history the bug was found; None when `most` did not show it."""
    for seed in range(1, most + 1):
        with bug.plant():
            world, _ = _played(plan_of(bug, replace(SHORT, seed=seed)))
        if any(sentence.startswith(bug.promise) for sentence in world.verdicts):
            return seed
    return None


def look_for_bugs(most: int, only: list[str]) -> dict[str, Any]:
    """Plant each, print what it took, and return the figures."""
    found: dict[str, int | None] = {}
    for bug in BUGS:
        if only and bug.name not in only:
            continue
        found[bug.name] = seeds_needed(bug, most)
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
    parser.add_argument("--bug", action="append", default=[], help="only this bug")
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    if asked.seeds:
        first, _, end = asked.seeds.partition(":")
        figures |= play_seeds(int(first), int(end), asked.minutes, asked.hosts)
    if asked.bugs:
        figures |= look_for_bugs(asked.bugs, asked.bug)
    print(json.dumps(figures))
    return (
        1 if figures.get("broken") or figures.get("not_repeated") or figures.get("caught") != figures.get("bugs") else 0
    )


if __name__ == "__main__":
    sys.exit(main())
