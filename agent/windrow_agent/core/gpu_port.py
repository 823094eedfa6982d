"""The interface of every kind of GPU: what a backend answers, and how it fails.

Pure: no clock, no library. A backend is called from one thread only, and every call may block as long as a driver does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from windrow_proto.conditions import ConditionCode
from windrow_proto.model import GpuFacts

Readings = Mapping[tuple[str, int], int | None]
"""(gpu uuid, metric number) to the wire's integer as metrics.py scales it; None where the card does not say."""

GPU_COUNT_MAX: Final = 64
"""More GPUs than any one machine holds today; what a library claims beyond is not looked at."""

GPU_METRICS: Final = tuple(range(1, 16))
"""The metrics that every sweep names for every card, absent where it does not say."""

PROCESSES: Final = 15
"""The metric that is read only when a sweep asks for process lists."""


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """One thing that is the matter. subject: a GPU's UUID, or empty for the host; detail: for people, not for keys."""

    code: ConditionCode
    subject: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        """What heartbeat and inventory carry: `code` or `code:subject`."""
        return f"{self.code}:{self.subject}" if self.subject else str(self.code)


class GpuEventKind(StrEnum):
    """What a GPU reports on its own, as the code of the Event that is sent."""

    XID = "gpu.xid"
    LOST = "gpu.lost"
    RECOVERED = "gpu.recovered"
    ECC_UNCORRECTED = "gpu.ecc_uncorrected"
    RECOVERY_ACTION = "gpu.recovery_action"
    UNAVAILABLE = "gpu.unavailable"
    MIG_CHANGED = "gpu.mig_changed"


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """Something that happened to one GPU. number: the XID, or 0; at_wall_ns: 0 until the sampler stamps it.

    pid, process: who caused an XID by the kernel's log; None and empty where that does not say or cannot be read.
    detail: for an XID the log's own words. slice_uuid: the slice of the card that an XID happened in, empty: not known,
    or the card is whole.
    """

    kind: GpuEventKind
    uuid: str
    number: int = 0
    detail: str = ""
    at_wall_ns: int = 0
    pid: int | None = None
    process: str = ""
    slice_uuid: str = ""

    @property
    def where(self) -> str:
        """The slice, or the card."""
        return self.slice_uuid or self.uuid


@dataclass(frozen=True, slots=True)
class GpuInventory:
    """What does not change from second to second. Versions are empty where there is no driver."""

    gpus: tuple[GpuFacts, ...] = ()
    driver_version: str = ""
    cuda_version: str = ""


POWER_CAP: Final = 0x4
HEAT_BY_SOFTWARE: Final = 0x20
HEAT_BY_HARDWARE: Final = 0x40
POWER_BRAKE: Final = 0x80
"""Reasons for lower clocks as NVML's bits, which is how the wire has those of every maker."""


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """What decides whether one GPU may be offered, as of the last sweep; None where the card does not say.

    slowed_by: NVML's bits for why clocks are below what was asked for; ecc_uncorrected: errors since the driver was
    loaded; mig_enabled: the mode in force; mig_pending: that of after the next reset.
    """

    uuid: str
    is_lost: bool = False
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    temperature_celsius: int | None = None
    slowdown_celsius: int | None = None
    memory_used_bytes: int | None = None
    memory_bytes: int | None = None
    compute_processes: int | None = None
    slowed_by: int | None = None
    ecc_uncorrected: int | None = None
    mig_enabled: bool | None = None
    mig_pending: bool | None = None


@dataclass(frozen=True, slots=True)
class GpuLook:
    """One card or slice, looked at out of turn. facts: of the card, its modes read anew, the memory the slice's own;
    processes: programs that compute there; None where it does not say."""

    facts: GpuFacts
    memory_used_bytes: int | None = None
    processes: int | None = None


class CutRefusedError(Exception):
    """A card could not be cut as asked; it is as it was. The text says why, for people."""


class GpuBackend(Protocol):
    """GPUs of one kind on this host. Not thread safe; but for `cut` nothing raises for what a driver or card does."""

    simulated: bool
    """True where nothing of it is real; carried into every inventory."""

    @property
    def waits(self) -> bool:
        """True where `events` sleeps up to its timeout; False where it returns at once and the caller waits."""

    def open(self) -> Condition | None:
        """Start the library; None when it is ready, else why not. May be called again after `close`."""

    def inventory(self) -> GpuInventory:
        """Read the facts of every GPU anew; a lost one keeps the facts it had."""

    def sample(self, with_processes: bool) -> Readings:
        """One sweep over all GPUs. with_processes: also process lists, MIG modes, slow metrics where it has
        them, and a look for lost GPUs."""

    def health(self) -> tuple[GpuHealth, ...]:
        """One per GPU, from the last sweep; reads nothing."""

    def conditions(self) -> tuple[Condition, ...]:
        """What the backend found to be the matter since it was opened; reads nothing."""

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """What happened since the last call; waits for the first at most `timeout_s` (0: not at all)."""

    def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """These cards and slices as they are now; what does not answer is left out."""

    def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Cut a card into slices of these profiles, in this order; none: make it whole again. Raises CutRefusedError.
        Only for a card that nobody uses; one that is cut so already stays as it is."""

    def leased(self, uuids: frozenset[str]) -> None:
        """Which GPUs our workloads hold now. Real cards show it by themselves; simulated ones then pretend to work."""

    def close(self) -> None:
        """Let go of the library; safe to call twice and when `open` failed."""
