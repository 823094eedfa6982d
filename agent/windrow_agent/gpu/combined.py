"""Combines all backends of one host behind the one port: NVIDIA's library and the kernel's files, whichever has cards.

open       each is asked; one that is ready is enough      inventory   one that was refused is asked again
a fault of a library: told as its own, so that all of them are opened anew
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from windrow_agent.core.gpu_port import (
    Condition,
    CutRefusedError,
    GpuBackend,
    GpuEvent,
    GpuHealth,
    GpuInventory,
    GpuLook,
    Readings,
)
from windrow_proto.conditions import ConditionCode

QUIET: Final = frozenset({ConditionCode.GPU_NONE})
"""Beside cards of another kind nobody need hear that there are none of this."""


class CombinedGpus:
    """These backends as one. The first is the one whose word counts where none of them has a card."""

    simulated = False

    def __init__(self, backends: Sequence[GpuBackend]) -> None:
        self._backends = tuple(backends)
        self._refused: dict[int, Condition] = {}

    @property
    def waits(self) -> bool:
        """True if one of the open backends sleeps in `events`."""
        return any(backend.waits for backend in self._open)

    @property
    def _open(self) -> tuple[GpuBackend, ...]:
        return tuple(one for at, one in enumerate(self._backends) if at not in self._refused)

    def open(self) -> Condition | None:
        """Ask each; None when one is ready, else the first that stands in the way of cards."""
        self._refused = {}
        for at, backend in enumerate(self._backends):
            refused = backend.open()
            if refused is not None:
                self._refused[at] = refused
        if len(self._refused) < len(self._backends):
            return None
        told = list(self._refused.values())
        return next((one for one in told if one.code not in QUIET), told[0])

    def inventory(self) -> GpuInventory:
        """Facts of all cards; indices go on from one kind to the next."""
        for at in sorted(self._refused):
            refused = self._backends[at].open()
            if refused is None:
                del self._refused[at]
            else:
                self._refused[at] = refused
        found = [backend.inventory() for backend in self._open]
        gpus = [gpu for one in found for gpu in one.gpus]
        return GpuInventory(
            tuple(replace(gpu, index=index) if gpu.index != index else gpu for index, gpu in enumerate(gpus)),
            next((one.driver_version for one in found if one.driver_version), ""),
            next((one.cuda_version for one in found if one.cuda_version), ""),
        )

    def sample(self, with_processes: bool) -> Readings:
        """One sweep over all of them."""
        readings = [backend.sample(with_processes) for backend in self._open]
        return readings[0] if len(readings) == 1 else {key: value for one in readings for key, value in one.items()}

    def health(self) -> tuple[GpuHealth, ...]:
        """One per GPU, from the last sweep."""
        return tuple(health for backend in self._open for health in backend.health())

    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of all backends; a backend that is not open beside one that is, under its own name."""
        found = [condition for backend in self._open for condition in backend.conditions()]
        for at, refused in self._refused.items():
            if self._open and refused.code not in QUIET:
                name = type(self._backends[at]).__name__.lower()
                found.append(Condition(ConditionCode.GPU_NOT_SERVED, name, f"{refused.code}: {refused.detail}"))
        return tuple(found)

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """Events of all backends; the one that waits is asked last, so that it is not waited for in vain."""
        found: list[GpuEvent] = []
        for backend in sorted(self._open, key=lambda one: one.waits):
            found += backend.events(0 if found else timeout_s)
        return found

    def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """These cards and slices as they are now."""
        return {uuid: look for backend in self._open for uuid, look in backend.look(uuids).items()}

    def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Cut a card of the kind that has it."""
        for backend in self._open:
            if any(health.uuid == uuid for health in backend.health()):
                return backend.cut(uuid, profiles)
        raise CutRefusedError("this host has no such GPU")

    def leased(self, uuids: frozenset[str]) -> None:
        """Which GPUs our workloads hold now."""
        for backend in self._backends:
            backend.leased(uuids)

    def close(self) -> None:
        """Let go of all of them."""
        for backend in self._backends:
            backend.close()
        self._refused = {}
