"""Measures every ten seconds what each running workload uses, and puts the figures among the samples of its host."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from windrow_agent.core import workload_usage
from windrow_agent.core.workload_usage import Usage
from windrow_agent.workloads.manager import WorkloadManager
from windrow_proto.errors import WindrowError
from windrow_proto.ids import WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.samples import Sample
from windrow_proto.units import SECOND, seconds

EVERY_NS: Final = 10 * SECOND
"""As other slow metrics: a look is a question to a container daemon, or a reading of each process."""
PATIENCE_NS: Final = 5 * SECOND
"""For one workload; its figures are absent then."""

Put = Callable[[Mapping[tuple[str, int], int | None]], None]


class WorkloadMeter:
    """The figures of all workloads of one host. read: the last sample of the GPUs; put: takes one workload's series."""

    def __init__(self, workloads: WorkloadManager, read: Callable[[], Sample | None], put: Put, clock: Clock) -> None:
        self._workloads, self._read, self._put, self._clock = workloads, read, put, clock
        self._before: dict[WorkloadId, tuple[int, Usage]] = {}

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep_ns(EVERY_NS)

    async def look(self) -> None:
        """Measure all that run, once."""
        running = self._workloads.running_states()
        self._before = {state.workload_id: kept for state in running if (kept := self._before.get(state.workload_id))}
        for state in running:
            found = await self._measured(state.workload_id)
            cards = [slot.gpu_uuid for slot in state.slots if slot.gpu_uuid]
            found |= workload_usage.gpu_readings(self._read(), cards)
            if found:
                self._put(workload_usage.keyed(state.workload_id, found))

    async def _measured(self, workload_id: WorkloadId) -> dict[int, int]:
        try:
            async with asyncio.timeout(seconds(PATIENCE_NS)):
                usage = await self._workloads.runtime_of(workload_id).usage(workload_id)
        except (WindrowError, TimeoutError):
            usage = None
        if usage is None:
            return {}
        now_ns = self._clock.monotonic_ns()
        before_ns, before = self._before.get(workload_id, (now_ns, None))
        self._before[workload_id] = now_ns, usage
        return workload_usage.readings(usage, before, now_ns - before_ns)
