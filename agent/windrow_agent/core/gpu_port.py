"""The one face of every kind of GPU: what a backend answers, how it fails, and the stable names of its conditions.

Pure: no clock, no library. A backend is called from one thread only, and every call may block as long as a driver does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from windrow_proto.model import GpuFacts

Readings = Mapping[tuple[str, int], int | None]
"""(gpu uuid, metric number) to the wire's integer as metrics.py scales it; None where the card does not say."""

GPU_COUNT_MAX: Final = 64
"""More GPUs than any one machine holds today; what a library claims beyond is not looked at."""

GPU_METRICS: Final = tuple(range(1, 16))
"""The metrics that every sweep names for every card, absent where it does not say."""

PROCESSES: Final = 15
"""The metric that is read only when a sweep asks for process lists."""


class ConditionCode(StrEnum):
    """What can be the matter with a host's GPUs; part of the contract with operators, so never renamed."""

    NONE = "gpu.none"
    NO_DRIVER = "gpu.no_driver"
    NO_PERMISSION = "gpu.no_permission"
    DRIVER_MISMATCH = "gpu.driver_mismatch"
    UNAVAILABLE = "gpu.unavailable"
    INITIALISING = "gpu.initialising"
    SWEEP_STALLED = "gpu.sweep_stalled"
    EVENTS_UNSUPPORTED = "gpu.events_unsupported"
    LOST = "gpu.lost"
    DUPLICATE_UUID = "gpu.duplicate_uuid"
    KERNEL_DIFFERS = "gpu.kernel_differs"
    NOT_SERVED = "gpu.not_served"
    REMAP_PENDING = "gpu.remap_pending"
    REMAP_FAILED = "gpu.remap_failed"
    HOST_FAULT = "gpu.host_fault"
    HOT = "gpu.hot"
    THROTTLED = "gpu.throttled"
    MIG_CHANGED = "gpu.mig_changed"
    FOREIGN_USE = "gpu.foreign_use"
    HOST_STALLED = "host.sweep_stalled"


WAY_OUT: Final[Mapping[ConditionCode, str]] = {
    ConditionCode.NONE: "This host has no GPU that the agent can see. It is offered by its processors.",
    ConditionCode.NO_DRIVER: "A GPU or its library is there, but the kernel driver is not loaded. Install or load it "
    "(`modprobe nvidia`); the agent looks again every 30 s.",
    ConditionCode.NO_PERMISSION: "The driver refuses this user. Let the agent's user open /dev/nvidiactl and "
    "/dev/nvidia*.",
    ConditionCode.DRIVER_MISMATCH: "The driver's library and kernel module differ in version, as after an upgrade. "
    "Reboot, or reload the module; the agent then restarts itself.",
    ConditionCode.UNAVAILABLE: "The driver answers with an error. `nvidia-smi` and `dmesg` say more; the agent tries "
    "again every 30 s.",
    ConditionCode.INITIALISING: "The driver is starting. Without nvidia-persistenced this takes seconds per GPU.",
    ConditionCode.SWEEP_STALLED: "The driver has not answered in time, so the GPUs' state is unknown. If it stays, "
    "look at `dmesg` for XIDs and reboot the host.",
    ConditionCode.EVENTS_UNSUPPORTED: "The driver delivers no events: XIDs of this host are not seen.",
    ConditionCode.LOST: "This GPU has fallen off its bus; the others go on. Reboot the host; if it happens again, "
    "reseat or replace the card.",
    ConditionCode.DUPLICATE_UUID: "Two GPUs claim one UUID; the second is left out.",
    ConditionCode.KERNEL_DIFFERS: "The kernel names another card than the driver's library does. Install the library "
    "that came with the driver; this GPU is not offered meanwhile.",
    ConditionCode.NOT_SERVED: "This card is on the bus, but no driver serves it that the agent reads. It is shown and "
    "not offered. Load its driver (`modprobe amdgpu`, `modprobe xe`), or give it back if a virtual machine has it.",
    ConditionCode.REMAP_PENDING: "Memory rows wait to be remapped: drain and reset this GPU (`nvidia-smi -r`).",
    ConditionCode.REMAP_FAILED: "Memory rows could not be remapped: this GPU needs replacing.",
    ConditionCode.HOST_FAULT: "The driver reported a fault of the hardware or the host. Reset this GPU or reboot.",
    ConditionCode.HOT: "This GPU is within 10 degrees of slowing itself down. Look at its cooling.",
    ConditionCode.THROTTLED: "This GPU slows itself down by heat or by its power supply. Look at its cooling, its "
    "power cables and the supply.",
    ConditionCode.MIG_CHANGED: "The MIG mode of this GPU is not the one it was listed in, or is about to change. Set "
    "it back, or restart the agent to list it anew.",
    ConditionCode.FOREIGN_USE: "Something other than a rented workload uses this GPU. It is not offered meanwhile.",
    ConditionCode.HOST_STALLED: "Reading the host itself hangs, mostly a dead network disk under the data directory.",
}


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
