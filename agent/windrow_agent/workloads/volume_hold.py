"""Keeps the folders of a workload that has ended until its volumes are saved, for a limited time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from windrow_proto.ids import WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND

SILENCE_NS: Final = 10 * MINUTE
"""Without a save under way: a Master that is away this long finds the versions that it saved before."""
LOOK_NS: Final = SECOND // 10


@dataclass(slots=True)
class _Held:
    is_ended: bool = False
    is_settled: bool = False
    moves: int = 0


class VolumeHold:
    """Of all workloads of this host. Used on the loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[WorkloadId, _Held] = {}

    async def through(self, workload_id: WorkloadId) -> None:
        """Its program has ended. Returns once its volumes are settled, or nobody has saved any for too long."""
        held = self._held.setdefault(workload_id, _Held())
        held.is_ended = True
        until_ns = self._clock.monotonic_ns() + SILENCE_NS
        while not held.is_settled and self._clock.monotonic_ns() < until_ns:
            if held.moves:
                until_ns = self._clock.monotonic_ns() + SILENCE_NS
            await self._clock.sleep_ns(LOOK_NS)

    async def ended(self, workload_id: WorkloadId) -> None:
        """Once the program of what is being ended has ended: what it leaves is final then."""
        until_ns = self._clock.monotonic_ns() + SILENCE_NS
        while not self._of(workload_id).is_ended and self._clock.monotonic_ns() < until_ns:
            await self._clock.sleep_ns(LOOK_NS)

    @contextmanager
    def moving(self, workload_id: WorkloadId) -> Iterator[None]:
        """Something of it is being moved, for as long as this lasts."""
        held = self._of(workload_id)
        held.moves += 1
        try:
            yield
        finally:
            held.moves -= 1

    def settle(self, workload_id: WorkloadId) -> None:
        """All that can be saved of it is; nothing before its program has ended, which then starts or goes on."""
        held = self._of(workload_id)
        held.is_settled = held.is_ended

    def forget(self, workload_id: WorkloadId) -> None:
        """Forgets a workload that is gone for good."""
        self._held.pop(workload_id, None)

    def _of(self, workload_id: WorkloadId) -> _Held:
        return self._held.setdefault(workload_id, _Held())
