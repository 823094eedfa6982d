"""The values of findings: the readings of one card over a window, and what holds it back. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_proto.ids import HostId

Line = Sequence[tuple[int, float | None]]
"""Points of one metric: the start of the step in ms of wall time, and the value in the metric's unit."""
PCIE_LANE_BYTES_PER_S: Final[Mapping[int, float]] = {
    1: 0.25e9,
    2: 0.5e9,
    3: 0.985e9,
    4: 1.969e9,
    5: 3.938e9,
    6: 7.563e9,
}
"""What one lane carries in one direction, by generation: the transfer rates of the PCI Express Base Specification less
their line code (8b/10b, from generation 3 on 128b/130b, generation 6 in flits)."""


class Cause(StrEnum):
    """What holds a card back. The order is that in which they are looked for: the first that fits explains the rest."""

    HOT = "hot"
    POWER_CAPPED = "power_capped"
    IDLE = "idle"
    PCIE_BOUND = "pcie_bound"
    CPU_BOUND = "cpu_bound"
    DATA_STARVED = "data_starved"
    MEMORY_NEARLY_FULL = "memory_nearly_full"


TITLES: Final[Mapping[Cause, str]] = {
    Cause.HOT: "Slowed down by heat",
    Cause.POWER_CAPPED: "Slowed down by its power limit",
    Cause.IDLE: "Idle",
    Cause.PCIE_BOUND: "Waits for the PCIe link",
    Cause.CPU_BOUND: "Waits for the CPUs",
    Cause.DATA_STARVED: "Waits for its data",
    Cause.MEMORY_NEARLY_FULL: "Memory nearly full",
}
"""Each cause in a few words."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What is known of a card and of the work on it. cpus: processors that the work may use; serves: it waits for
    requests, so that a card that is half busy is no fault. None: the driver did not say."""

    host_id: HostId
    host_name: str
    rank: int
    gpu: str
    index: int | None
    cpus: int
    serves: bool = False
    memory_bytes: float | None = None
    power_limit_watts: float | None = None
    power_limit_max_watts: float | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None

    @property
    def pcie_bytes_per_s(self) -> float | None:
        """What its link carries in one direction, in bytes a second."""
        lane = PCIE_LANE_BYTES_PER_S.get(self.pcie_generation or 0)
        return None if lane is None or not self.pcie_lanes else lane * self.pcie_lanes

    @property
    def name(self) -> str:
        """In a sentence."""
        return f"GPU {self.index} of {self.host_name}" if self.index is not None else f"the GPU of {self.host_name}"


@dataclass(frozen=True, slots=True)
class Readings:
    """The lines of one card, its host and the work on it, by the names of metrics; all have the same steps."""

    step_ms: int
    lines: Mapping[str, Line]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One chart that shows a finding. limit: the line that it is held against, in the metric's unit."""

    metric: str
    label: str
    unit: str
    points: Line
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What holds one card back. lost: the share of the time of the window that it cost, 0 to 1; remedy: what to
    change."""

    cause: Cause
    card: CardFacts
    words: str
    remedy: str
    lost: float
    evidence: tuple[Evidence, ...] = field(default=())
