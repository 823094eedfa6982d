"""The backend of a host that is told to offer no GPU: always closed, always empty."""

from collections.abc import Mapping

from windrow_agent.core.gpu_port import Condition, CutRefusedError, GpuEvent, GpuHealth, GpuInventory, GpuLook, Readings
from windrow_proto.conditions import ConditionCode


class NoGpus:
    """Answers every question with nothing, under the condition `gpu.none`."""

    simulated = False
    waits = False

    def open(self) -> Condition | None:
        """Never ready: there is nothing to read."""
        return Condition(ConditionCode.GPU_NONE)

    def inventory(self) -> GpuInventory:
        """No GPUs, no driver."""
        return GpuInventory()

    def sample(self, with_processes: bool) -> Readings:
        """No readings."""
        return {}

    def health(self) -> tuple[GpuHealth, ...]:
        """No GPUs to judge."""
        return ()

    def conditions(self) -> tuple[Condition, ...]:
        """Why there is nothing."""
        return (Condition(ConditionCode.GPU_NONE),)

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """Nothing ever happens."""
        return []

    def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """Nothing to look at."""
        return {}

    def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Nothing to cut."""
        raise CutRefusedError("this host has no such GPU")

    def leased(self, uuids: frozenset[str]) -> None:
        """Nothing to lease."""

    def close(self) -> None:
        """Nothing to let go of."""
