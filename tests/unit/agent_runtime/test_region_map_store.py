"""The newest map is kept for the next start, and neither a slow disk nor a full one holds anything up."""

import asyncio
from collections.abc import Callable

from tests.simulation.loop import SeededRng, VirtualClock, VirtualLoop, run
from windrow_agent.link.region_map_store import SAVE_WITHIN_NS, RegionMapStore
from windrow_agent.threads import InlineRunner


def _history(save: Callable[[bytes], None], *bodies: tuple[bytes, ...]) -> None:
    """Maps that come together, and after each lot of them as long as it takes to keep one."""

    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        store = RegionMapStore(save, InlineRunner(clock), clock, SeededRng("maps"))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(store.run())
            for together in bodies:
                for body in together:
                    store.newer(body)
                await clock.sleep_ns(SAVE_WITHIN_NS)
            running.cancel()

    run(1, history)


def test_of_maps_that_come_one_after_the_other_the_last_is_kept() -> None:
    kept: list[bytes] = []
    _history(kept.append, (b"one", b"two"), (), (b"three",))
    assert kept == [b"two", b"three"]


def test_a_disk_that_is_full_ends_nothing_and_the_next_map_is_kept() -> None:
    kept: list[bytes] = []

    def save(body: bytes) -> None:
        if body == b"one":
            raise OSError(28, "No space left on device")
        kept.append(body)

    _history(save, (b"one",), (b"two",))
    assert kept == [b"two"]
