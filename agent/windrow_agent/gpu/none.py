"""The backend of a host that is told to offer no GPU: always closed, always empty."""

from windrow_agent.gpu.port import Condition, ConditionCode, GpuEvent, GpuHealth, GpuInventory, Readings


class NoGpus:
    """Answers every question with nothing, under the condition `gpu.none`."""

    simulated = False
    waits = False

    def open(self) -> Condition | None:
        """Never ready: there is nothing to read."""
        return Condition(ConditionCode.NONE)

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
        return (Condition(ConditionCode.NONE),)

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """Nothing ever happens."""
        return []

    def leased(self, uuids: frozenset[str]) -> None:
        """Nothing to lease."""

    def close(self) -> None:
        """Nothing to let go of."""
