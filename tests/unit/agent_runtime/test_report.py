"""The report of a host: changes of one moment are one inventory, a later one is another, none is sent twice."""

import asyncio
from typing import Any

import pytest

from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.core.gpu_port import GpuInventory
from windrow_agent.core.inventory import HostFacts
from windrow_agent.report.reporter import Reporter, Sources
from windrow_agent.runtimes.port import RuntimeFacts
from windrow_proto.ids import BootId, GpuUuid
from windrow_proto.model import GpuFacts, Inventory, Kind
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.windows import RecordKey
from windrow_proto.wire_host import decode_inventory


class ChangingSampler:
    """Its host is renamed at these times after the start."""

    simulated = True
    conditions = ()
    gpus = GpuInventory()

    def __init__(self, clock: VirtualClock, at_ns: tuple[int, ...]) -> None:
        self._clock, self._at_ns = clock, list(at_ns)
        self.host_facts = HostFacts(hostname="host-0")

    def set_leases(self, leases: object) -> None:
        """Nobody looks at them here."""

    def take_events(self) -> list[Any]:
        """None."""
        return []

    async def wait_change(self) -> None:
        """Until the next renaming; then for ever."""
        if not self._at_ns:
            await asyncio.Event().wait()
        await self._clock.sleep_ns(self._at_ns.pop(0) - self._clock.monotonic_ns())
        self.host_facts = HostFacts(hostname=f"host-{self._clock.monotonic_ns()}")


class Told:
    """In place of the outbox."""

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.bodies: list[bytes] = []
        self.taken = 0

    async def put(self, lane: object, kind: Kind, body: bytes) -> RecordKey:
        """Keep it."""
        self.kinds.append(kind)
        self.bodies.append(body)
        return RecordKey(BootId(b""), len(self.kinds))

    def is_on_its_way(self, lane: object, key: RecordKey) -> bool:
        """Until the Master has taken it."""
        return key.origin_sequence > self.taken


class SlowRuntime:
    """A runtime that takes two seconds to see whether it can be used."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    async def facts(self) -> RuntimeFacts:
        """Returns that the runtime can be used."""
        await self._clock.sleep_ns(2 * SECOND)
        return RuntimeFacts(True, "bubblewrap", "")


async def report(reporter: Reporter) -> None:
    """Its changes, with what it looks at for them."""
    async with asyncio.TaskGroup() as group:
        group.create_task(reporter.send_changes())
        group.create_task(reporter.probe_runtimes())


def test_the_first_inventory_waits_until_it_is_known_what_can_run_here() -> None:
    async def history(loop: VirtualLoop) -> list[int]:
        clock, told, counts = VirtualClock(loop), Told(), list[int]()
        runtimes = {"process": SlowRuntime(clock)}
        sources = Sources(ChangingSampler(clock, ()), runtimes, int, "1", tuple, dict)  # type: ignore[arg-type]
        telling = loop.create_task(report(Reporter(sources, told, clock)))  # type: ignore[arg-type]
        for _ in range(3):
            await clock.sleep_ns(SECOND)
            counts.append(told.kinds.count(Kind.INVENTORY))
        telling.cancel()
        return counts

    assert run(1, history) == [0, 0, 1]


class UnusableRuntime:
    """Something is missing for it."""

    async def facts(self) -> RuntimeFacts:
        """Returns that the runtime cannot be used, and a condition that says why."""
        return RuntimeFacts(False, "", "bubblewrap is missing", "process.no_sandbox")


def test_the_condition_of_a_runtime_that_cannot_be_used_is_told() -> None:
    async def told(loop: VirtualLoop) -> Inventory:
        clock, outbox = VirtualClock(loop), Told()
        runtimes = {"process": UnusableRuntime()}
        sources = Sources(ChangingSampler(clock, ()), runtimes, int, "1", tuple, dict)  # type: ignore[arg-type]
        telling = loop.create_task(report(Reporter(sources, outbox, clock)))  # type: ignore[arg-type]
        await clock.sleep_ns(SECOND)
        telling.cancel()
        return decode_inventory(outbox.bodies[-1])

    inventory = run(1, told)
    assert (inventory.runtimes, inventory.conditions) == ((), ("process.no_sandbox",))


class ContainedRuntime:
    """Its daemon knows whose users its containers have."""

    async def facts(self) -> RuntimeFacts:
        """Returns that the runtime can be used."""
        return RuntimeFacts(True, "24", "", more={"container_own_users": 1})


def test_whose_users_containers_have_is_among_the_facts_of_the_host() -> None:
    async def told(loop: VirtualLoop) -> Inventory:
        clock, outbox = VirtualClock(loop), Told()
        runtimes = {"docker": ContainedRuntime()}
        sources = Sources(ChangingSampler(clock, ()), runtimes, int, "1", tuple, dict)  # type: ignore[arg-type]
        telling = loop.create_task(report(Reporter(sources, outbox, clock)))  # type: ignore[arg-type]
        await clock.sleep_ns(SECOND)
        telling.cancel()
        return decode_inventory(outbox.bodies[-1])

    assert run(1, told).more["container_own_users"] == 1


class ToollessRuntime:
    """Its daemon cannot give NVIDIA's cards to containers."""

    async def facts(self) -> RuntimeFacts:
        """Returns that the runtime can be used."""
        return RuntimeFacts(True, "24", "", gives_nvidia=False)


@pytest.mark.parametrize(("vendor", "conditions"), [("nvidia", ("docker.no_gpus",)), ("amd", ())])
def test_a_host_whose_containers_get_no_nvidia_cards_says_so_where_it_has_some(
    vendor: str, conditions: tuple[str, ...]
) -> None:
    async def told(loop: VirtualLoop) -> Inventory:
        clock, outbox = VirtualClock(loop), Told()
        sampler = ChangingSampler(clock, ())
        sampler.gpus = GpuInventory((GpuFacts(GpuUuid("GPU-1"), 0, vendor, "X1"),))
        runtimes = {"docker": ToollessRuntime()}
        sources = Sources(sampler, runtimes, int, "1", tuple, dict)  # type: ignore[arg-type]
        telling = loop.create_task(report(Reporter(sources, outbox, clock)))  # type: ignore[arg-type]
        await clock.sleep_ns(SECOND)
        telling.cancel()
        return decode_inventory(outbox.bodies[-1])

    assert run(1, told).conditions == conditions


def tellings(*at_ns: int) -> int:
    async def history(loop: VirtualLoop) -> int:
        clock, told = VirtualClock(loop), Told()
        sources = Sources(ChangingSampler(clock, at_ns), {}, int, "1", tuple, dict)  # type: ignore[arg-type]
        telling = loop.create_task(report(Reporter(sources, told, clock)))  # type: ignore[arg-type]
        await clock.sleep_ns(5 * SECOND)
        telling.cancel()
        return told.kinds.count(Kind.INVENTORY)

    return run(1, history)


def test_an_inventory_that_is_on_its_way_is_not_told_again_to_who_asks_for_it() -> None:
    async def history(loop: VirtualLoop) -> list[int]:
        clock, told, counts = VirtualClock(loop), Told(), list[int]()
        sources = Sources(ChangingSampler(clock, ()), {}, int, "1", tuple, dict)  # type: ignore[arg-type]
        reporter = Reporter(sources, told, clock)  # type: ignore[arg-type]
        telling = loop.create_task(report(reporter))
        for told.taken in (0, 0, 1, 1):
            await clock.sleep_ns(SECOND)
            counts.append(told.kinds.count(Kind.INVENTORY))
            reporter.inventory_wanted()
        telling.cancel()
        return counts

    assert run(1, history) == [1, 1, 1, 2]


def test_changes_of_one_moment_are_told_together() -> None:
    assert tellings() == 1
    assert tellings(SECOND, SECOND + MILLISECOND, SECOND + 2 * MILLISECOND) == 2


def test_what_changes_later_is_told_anew() -> None:
    assert tellings(SECOND, 2 * SECOND, 3 * SECOND) == 4
