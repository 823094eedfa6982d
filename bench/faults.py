"""`faults`: from a fault in a GPU's driver to its slot at the Master, and to no other. Goal: 2 s.

The real nvidia-ml-py over the tests' fake driver, the shipped agent, Access and Master in one process, with the network
in memory: what lies between is the agent's sampling and the Master's store. Each fault comes at a random moment of the
sampling second, on a host that was sound. The time ends when the store says it, looked at every 20 ms. An XID that
programs cause changes no slot: its time is that of the event that names the tenant, and its slot runs on.

Limit: the sampling period of 1 s, and for a driver that hangs the time after which a reading counts as hung: what no
event announces is seen by looking, half a period after it happened in the middle.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import pytest

from bench._cards import why_none
from bench._report import last_line, median, percentile, scale, table
from tests.fake_nvml.build import build, installed
from tests.fake_nvml.state import FakeState
from tests.support.gpu_faults import FAULTS, SICK, heal
from tests.support.health_world import HealthWorld, watched_host
from tests.waiting import poll_async

GOAL_S = 2.0
PERIOD_S = 1.0
TENANTS = "xid_13_in_a_lease"


async def seconds_to_slot(world: HealthWorld, name: str) -> tuple[float, int]:
    """How long one fault took to its slots, and how many other slots changed."""
    fault, before = FAULTS[name], await world.look()
    sick = {world.uuid(index) for index in (range(8) if fault.all_cards else (SICK,))}
    began = time.monotonic()
    fault.inject(world.fake.state)
    after = await world.until(lambda seen: all(seen.slots[slot] != before.slots[slot] for slot in sick), name)
    took = time.monotonic() - began
    return took, sum(was != before.slots[slot] for slot, was in after.slots.items() if slot not in sick)


async def seconds_to_event(world: HealthWorld) -> tuple[float, int]:
    """The same for an XID that the tenant's own program caused; any changed slot is one too many."""
    await world.rent(SICK)
    before = await world.look()
    began = time.monotonic()
    world.fake.state.xid(SICK, 13)

    async def told() -> bool:
        return any(fields["blame"] == "tenant" for _, fields in await world.events("gpu.xid"))

    await poll_async(told, what=TENANTS)
    took, after = time.monotonic() - began, await world.look()
    return took, sum(was != before.slots[slot] for slot, was in after.slots.items())


async def tried(name: str, library: Path, folder: Path) -> tuple[float, int]:
    """One fault on a host of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for fake in installed(library, FakeState(folder / "state"), patch):
            async with watched_host(fake, folder) as world:
                await asyncio.sleep(random.uniform(0, PERIOD_S))
                found = await (seconds_to_event(world) if name == TENANTS else seconds_to_slot(world, name))
                heal(fake.state)
    return found


def main() -> None:
    """Print a line for each fault, and the JSON line."""
    if missing := why_none():
        sys.exit(missing)
    rounds = max(1, round(10 * scale()))
    names = (*FAULTS, TENANTS)
    times: dict[str, list[float]] = {name: [] for name in names}
    others = 0
    with tempfile.TemporaryDirectory(prefix="windrow-faults-") as top:
        library = build(Path(top))
        for number in range(rounds):
            for name in names:
                folder = Path(top) / f"{name}-{number}"
                folder.mkdir()
                took, wrong = asyncio.run(tried(name, library, folder))
                times[name].append(took)
                others += wrong
    every = [took for one in times.values() for took in one]
    table([(name, f"{median(one):.2f} s, at most {max(one):.2f}") for name, one in times.items()])
    table([("slots that changed beside", others), ("all, p99 (s)", percentile(every, 0.99))])
    detail = {
        **{f"{name}_max_s": round(max(one), 3) for name, one in times.items()},
        "rounds": rounds,
        "median_s": round(median(every), 3),
        "p99_s": round(percentile(every, 0.99), 3),
        "other_slots": others,
        "goal_s": GOAL_S,
        "load": os.getloadavg()[0],
    }
    last_line("faults", max(every), "s", "sampling period", max(every) / PERIOD_S, detail)


if __name__ == "__main__":
    main()
