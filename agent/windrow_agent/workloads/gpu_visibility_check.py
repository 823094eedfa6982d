"""Checks from inside rented containers that they can still open their GPUs, and reports each container that cannot."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from windrow_agent.core import gpu_visibility
from windrow_agent.runtimes.port import Runtime
from windrow_agent.workloads.manager import WorkloadManager
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import WindrowError
from windrow_proto.ids import WorkloadId
from windrow_proto.model import Event, WorkloadPhase
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND, seconds

log = structlog.get_logger()

LOOK_INSIDE_NS: Final = MINUTE
AGAIN_NS: Final = 2 * SECOND
"""One look that fails is no finding: the driver may be restarting."""
ANSWER_NS: Final = 10 * SECOND
SAID_BYTES_MAX: Final = 64 * 1024
CONTAINERS: Final = "docker"


class GpuVisibilityCheck:
    """The containers of one host; `run` looks for as long as the agent runs."""

    def __init__(
        self,
        workloads: WorkloadManager,
        clock: Clock,
        changed: Callable[[], None],
        tell: Callable[[Event], Awaitable[None]],
    ) -> None:
        self._workloads, self._clock, self._changed, self._tell = workloads, clock, changed, tell
        self._stripped: Mapping[str, WorkloadId] = {}

    @property
    def conditions(self) -> tuple[str, ...]:
        """A condition for each GPU that its container has lost."""
        return tuple(f"{ConditionCode.GPU_STRIPPED}:{uuid}" for uuid in sorted(self._stripped))

    async def run(self) -> None:
        """Look at all of them, a minute after the look before."""
        while True:
            await self._clock.sleep_ns(LOOK_INSIDE_NS)
            await self.look()

    async def look(self) -> None:
        """Look at all of them once; whatever is new is told."""
        found: dict[str, WorkloadId] = {}
        for workload_id, granted in self._renting().items():
            found |= dict.fromkeys(await self._missing(workload_id, granted), workload_id)
        before, self._stripped = self._stripped, found
        if found != before:
            self._changed()
        for uuid in sorted(found.keys() - before.keys()):
            log.warning("gpu_stripped", gpu=uuid, workload_id=found[uuid])
            code, workload = ConditionCode.GPU_STRIPPED, {"workload": found[uuid]}
            await self._tell(Event(code.value, self._clock.wall_ns(), uuid, code.words, workload))

    def _renting(self) -> dict[WorkloadId, frozenset[str]]:
        states = ((i, entry.state) for i, entry in self._workloads.journal.workloads.items())
        running = ((i, s) for i, s in states if s.phase is WorkloadPhase.RUNNING and s.runtime == CONTAINERS)
        given = {i: frozenset(slot.gpu_uuid for slot in state.slots if slot.gpu_uuid) for i, state in running}
        return {workload_id: uuids for workload_id, uuids in given.items() if uuids}

    async def _missing(self, workload_id: WorkloadId, granted: frozenset[str]) -> frozenset[str]:
        found = granted
        for is_second in (False, True):
            try:
                answer = await said(self._workloads.runtime_of(workload_id), workload_id)
            except WindrowError as error:  # it ended meanwhile, or its engine does not answer
                log.info("not_looked_inside", workload_id=workload_id, error=error.detail)
                return frozenset()
            found &= gpu_visibility.missing(*answer, granted) or frozenset()
            if is_second or not found:
                break
            await self._clock.sleep_ns(AGAIN_NS)
        return found


async def said(runtime: Runtime, workload_id: WorkloadId) -> tuple[int | None, str]:
    """Runs the driver's program inside a workload: its exit code, None if it did not end in time, and its output.
    Raises what Runtime.exec raises."""
    session = await runtime.exec(workload_id, gpu_visibility.COMMAND)
    words = bytearray()
    try:
        async with asyncio.timeout(seconds(ANSWER_NS)):
            while len(words) < SAID_BYTES_MAX and (piece := await session.read()) is not None:
                words += piece[1]
    except TimeoutError:
        return None, ""
    finally:
        await session.close()
    return session.exit_code, words.decode(errors="replace")
