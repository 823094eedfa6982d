"""Ten faults of GPUs as the fake driver shows them, and what each has to lead to."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.fake_nvml.state import ECC_UNCORRECTED, MIG_CHANGED, FakeState

SICK = 3
"""The card that a fault is made in."""


def remap_pending(state: FakeState) -> None:
    state.gpu(SICK).remap_pending = 1


def corrupt(state: FakeState) -> None:
    state.gpu(SICK).ecc_uncorrected = 1


def run_foreign(state: FakeState) -> None:
    state.run_processes(SICK, (4242, False))
    state.gpu(SICK).memory_used = 500 << 20


def change_mig(state: FakeState) -> None:
    state.gpu(SICK).mig_mode = state.gpu(SICK).mig_pending = 1
    state.event(SICK, MIG_CHANGED)


@dataclass(frozen=True, slots=True)
class Fault:
    """inject: what happens in the driver; code: the condition; slot: the state of the slot it leads to."""

    inject: Callable[[FakeState], None]
    code: str
    slot: str = "free"
    all_cards: bool = False


FAULTS = {
    "xid_79": Fault(lambda state: state.xid(SICK, 79), "gpu.host_fault", "faulted"),
    "gpu_lost": Fault(lambda state: setattr(state.gpu(SICK), "lost", 1), "gpu.lost", "faulted"),
    "row_remap_pending": Fault(remap_pending, "gpu.remap_pending"),
    "ecc_counter": Fault(corrupt, "gpu.host_fault", "faulted"),
    "ecc_event": Fault(lambda state: state.event(SICK, ECC_UNCORRECTED), "gpu.host_fault", "faulted"),
    "thermal_throttle": Fault(lambda state: setattr(state.gpu(SICK), "throttle", 0x48), "gpu.throttled"),
    "foreign_process": Fault(run_foreign, "gpu.foreign_use"),
    "mig_change": Fault(change_mig, "gpu.mig_changed"),
    "hanging_driver": Fault(lambda state: setattr(state.state, "hang", 1), "gpu.sweep_stalled", all_cards=True),
    "driver_upgrade": Fault(lambda state: setattr(state.gpu(0), "fault", 18), "gpu.driver_mismatch", all_cards=True),
}


def heal(state: FakeState) -> None:
    """Let the cards and their driver be sound again; what a program did is over."""
    gpu = state.gpu(SICK)
    gpu.lost = gpu.remap_pending = gpu.throttle = gpu.process_count = gpu.memory_used = gpu.mig_mode = (
        gpu.mig_pending
    ) = 0
    state.gpu(0).fault = state.state.hang = state.state.init_code = 0
