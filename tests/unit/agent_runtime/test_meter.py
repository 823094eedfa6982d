"""The figures of each running workload go among its host's samples; a runtime that hangs costs only its own."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.core.workload_usage import Usage
from windrow_agent.workloads.meter import WorkloadMeter
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.metrics import BY_NAME
from windrow_proto.samples import Sample
from windrow_proto.units import SECOND

CORES, MEMORY, GPU = (BY_NAME[f"workload_{name}"].number for name in ("cpu_cores", "memory_used_bytes", "gpu_ratio"))
CARD = "GPU-1"


class Counting:
    """Workloads on a runtime that counts a second and a half of processor time for each second."""

    def __init__(self, clock: VirtualClock, *running: str) -> None:
        self.clock, self.running = clock, list(running)

    def running_states(self) -> tuple[Any, ...]:
        slots = (SimpleNamespace(gpu_uuid=CARD),)
        return tuple(SimpleNamespace(workload_id=one, slots=slots) for one in self.running)

    def runtime_of(self, _workload_id: str) -> "Counting":
        return self

    async def usage(self, workload_id: str) -> Usage:
        if workload_id == "hangs":
            await asyncio.sleep(3600)
        if workload_id == "refuses":
            raise RuntimeUnavailable("The container daemon does not answer.")
        return Usage(cpu_ns=self.clock.monotonic_ns() * 3 // 2, memory_bytes=2048)


def measured(seconds: int, *running: str) -> list[Mapping[tuple[str, int], int | None]]:
    async def history(loop: VirtualLoop) -> list[Mapping[tuple[str, int], int | None]]:
        clock, put = VirtualClock(loop), list[Mapping[tuple[str, int], int | None]]()
        sample = Sample(0, {(CARD, BY_NAME["gpu_utilization_ratio"].number): 40})
        meter = WorkloadMeter(Counting(clock, *running), lambda: sample, put.append, clock)  # type: ignore[arg-type]
        task = loop.create_task(meter.run())
        await clock.sleep_ns(seconds * SECOND)
        task.cancel()
        return put

    return run(1, history)


def test_the_first_look_has_sizes_and_the_next_ones_rates_as_well() -> None:
    first, second = measured(11, "workload_1")
    assert first == {("workload_1", MEMORY): 2, ("workload_1", GPU): 400}
    assert second == {**first, ("workload_1", CORES): 1500}


def test_a_runtime_that_hangs_or_refuses_takes_only_its_own_figures_away() -> None:
    found = measured(6, "hangs", "refuses", "workload_1")
    assert found == [
        {("hangs", GPU): 400},
        {("refuses", GPU): 400},
        {("workload_1", MEMORY): 2, ("workload_1", GPU): 400},
    ]


def test_a_host_without_workloads_asks_nobody() -> None:
    assert measured(30) == []
