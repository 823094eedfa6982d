"""The mirror of the struct in fake_nvml.c, and the personas that fill it; what a test writes, the next call answers."""

import ctypes
import mmap
import platform
from pathlib import Path
from typing import Any, Self

U32, U64 = ctypes.c_uint32, ctypes.c_uint64
MAGIC = 0x57464E56
ABSENT = 0xFFFFFFFF
ABSENT64 = (1 << 64) - 1
GPUS, PROCESSES, EVENTS, FIELDS = 16, 8, 64, 308
MIG_DEVICES = 7
GPM = 14
"""Metrics of GPM by NVML's numbers, 1 to 13."""
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
XID, ECC_UNCORRECTED, MIG_CHANGED = 0x8, 0x2, 0x100
_LIBC = ctypes.CDLL(None)
_FUTEX, _FUTEX_WAKE = (202 if platform.machine() == "x86_64" else 98), 1
"""futex(2): the system call's number by processor, and the operation that wakes whoever waits."""
ALL_EVENTS = XID | ECC_UNCORRECTED | MIG_CHANGED | 0x1


class Process(ctypes.Structure):
    _fields_ = [("pid", U32), ("is_graphics", U32), ("memory", U64)]


class Slice(ctypes.Structure):
    """One part of a card, as fake_mig.c says; profile counts from 1 in the order of PROFILES, 0 is none."""

    _fields_ = [
        *((name, U32) for name in ("profile", "start", "is_whole", "programs")),
        ("memory_used", U64),
    ]


class Gpu(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_char * 80),
        ("bus_id", ctypes.c_char * 32),
        ("serial", ctypes.c_char * 32),
        ("vbios", ctypes.c_char * 32),
        *((name, U32) for name in ("pci_device", "pci_subsystem", "capability_major", "capability_minor")),
        *((name, U32) for name in ("lost", "fault", "calls", "process_count")),
        *((name, U64) for name in ("memory_total", "memory_used", "memory_reserved")),
        *((name, U64) for name in ("energy_mj", "throttle", "ecc_uncorrected", "temperature_read_ns")),
        *((name, U32) for name in ("temperature", "temperature_read", "memory_temperature", "slowdown")),
        *((name, U32) for name in ("power_mw", "power_limit_mw", "power_limit_max_mw")),
        *((name, U32) for name in ("utilization", "memory_utilization", "clock_sm", "clock_memory")),
        *((name, U32) for name in ("clock_sm_max", "clock_memory_max", "performance_state", "fan")),
        *((name, U32) for name in ("pcie_replays", "pcie_generation", "pcie_width")),
        *((name, U32) for name in ("cores", "bus_bits", "ecc_mode", "mig_mode", "mig_pending", "numa_node", "minor")),
        *((name, U32) for name in ("remap_correctable", "remap_uncorrectable", "remap_pending", "remap_failed")),
        ("event_types", U32),
        ("processes", Process * PROCESSES),
        *((name, ctypes.c_char * 32) for name in ("board_part", "inforom", "gsp")),
        *(("pdi", U64), ("bar1", U64), ("cpus", U64 * 2), ("field", U64 * FIELDS)),
        *((name, U32) for name in ("brand", "architecture", "compute_mode", "persistence", "virtualization")),
        *((name, U32) for name in ("ecc_pending", "shutdown", "memory_max", "gpu_max", "clock_video")),
        *((name, U32) for name in ("clock_video_max", "pcie_generation_now", "pcie_width_now", "encoder", "decoder")),
        *((name, U32) for name in ("links_up", "link_version", "fabric", "nearness", "p2p", "sram_exceeded")),
        *((name, U32) for name in ("unrepairable", "mig_max", "mig_denied", "mig_status")),
        ("slices", Slice * MIG_DEVICES),
        *(("gpm_elapsed", U64), ("gpm_busy", U64 * GPM)),
    ]


class Event(ctypes.Structure):
    _fields_ = [("gpu", U32), ("type", U32), ("value", U64), ("gpu_instance", U32), ("compute_instance", U32)]


class State(ctypes.Structure):
    _fields_ = [
        *((name, U32) for name in ("magic", "gpu_count", "init_code", "delay_us")),
        *((name, U32) for name in ("hang", "cuda", "event_head", "hanging")),
        ("driver", ctypes.c_char * 80),
        ("events", Event * EVENTS),
        ("gpus", Gpu * GPUS),
    ]


H100: dict[str, Any] = {
    "name": b"NVIDIA H100 80GB HBM3",
    "serial": b"1650000000000",
    "vbios": b"96.00.89.00.01",
    "pci_device": 0x233010DE,
    "pci_subsystem": 0x16C110DE,
    "capability_major": 9,
    "capability_minor": 0,
    "memory_total": 81559 << 20,
    "memory_reserved": 551 << 20,
    "temperature": 34,
    "memory_temperature": 40,
    "slowdown": 87,
    "power_mw": 70_440,
    "power_limit_mw": 700_000,
    "power_limit_max_mw": 700_000,
    "clock_sm": 1980,
    "clock_memory": 2619,
    "clock_sm_max": 1980,
    "clock_memory_max": 2619,
    "energy_mj": 123_456_789,
    "fan": ABSENT,
    "pcie_generation": 5,
    "pcie_width": 16,
    "cores": 16896,
    "bus_bits": 5120,
    "ecc_mode": 1,
    "ecc_pending": 1,
    "event_types": ALL_EVENTS,
    "board_part": b"000-00000-0000-000",
    "inforom": b"G520.0200.00.05",
    "gsp": b"580.95.05",
    "pdi": 0x1234_5678_9ABC_DEF0,
    "bar1": 128 << 30,
    "brand": 14,
    "architecture": 9,
    "persistence": 1,
    "shutdown": 92,
    "memory_max": 95,
    "gpu_max": 85,
    "clock_video": 1500,
    "clock_video_max": 1800,
    "pcie_generation_now": 1,
    "pcie_width_now": 16,
    "links_up": 18,
    "link_version": 4,
    "fabric": 3,
    "nearness": 50,
    "mig_max": 7,
    "gpm_elapsed": 1,
}
FIELD: dict[int, int] = {
    **dict.fromkeys((3, 5, 6, 11, 12, 22, 23, 38, 45, 52, 59, 74, 75, 142, 143, *range(173, 184), 230), 0),
    90: 26_562,
    91: 18,
    138: 4,
    139: 2,
    187: 200_000,
    189: 700_000,
    197: 5 << 20,
    198: 3 << 20,
}
"""Answers of a persona's card by field id, where it has no member of its own; other ids are not supported."""

RTX_4090: dict[str, Any] = {
    **H100,
    "name": b"NVIDIA GeForce RTX 4090",
    "serial": b"",
    "pci_device": 0x268410DE,
    "capability_major": 8,
    "capability_minor": 9,
    "memory_total": 24564 << 20,
    "memory_temperature": ABSENT,
    "power_limit_mw": 450_000,
    "power_limit_max_mw": 450_000,
    "clock_memory": 10501,
    "clock_memory_max": 10501,
    "fan": 30,
    "pcie_generation": 4,
    "cores": 16384,
    "bus_bits": 384,
    "ecc_mode": 0,
    "mig_mode": ABSENT,
    "numa_node": ABSENT,
    "remap_pending": ABSENT,
    **dict.fromkeys(("board_part", "inforom", "gsp"), b""),
    **dict.fromkeys(("sram_exceeded", "unrepairable", "mig_max", "p2p"), ABSENT),
    **dict.fromkeys(("links_up", "fabric", "pdi", "gpm_elapsed"), 0),
    "memory_max": 0,
    "field": {187: 150_000, 189: 450_000},
}


class FakeState:
    """A state file with `count` cards of one persona, open for writing."""

    def __init__(self, path: Path, count: int = 8, persona: dict[str, Any] | None = None) -> None:
        self.path = path
        path.write_bytes(bytes(ctypes.sizeof(State)))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.state = State.from_buffer(self._map)
        self.state.gpu_count, self.state.cuda, self.state.driver = count, 13000, b"580.95.05"
        for index in range(count):
            gpu = self.state.gpus[index]
            gpu.field[:] = [ABSENT64] * FIELDS
            for name, value in {"field": FIELD, **(persona or H100)}.items():
                if name == "field":
                    for field_id, said in value.items():
                        gpu.field[field_id] = said
                else:
                    setattr(gpu, name, value)
            gpu.cpus[0] = 0xFFFF_FFFF
            gpu.uuid = b"GPU-00000000-0000-4000-8000-%012d" % index
            gpu.bus_id = b"00000000:%02X:00.0" % (0x18 + 8 * index)
            gpu.minor = index
            gpu.serial = gpu.serial and b"%s%02d" % (gpu.serial[:-2], index)
        self.state.magic = MAGIC

    def gpu(self, index: int) -> Any:
        """The live struct of one card."""
        return self.state.gpus[index]

    def uuid(self, index: int) -> str:
        """The UUID of one card as text."""
        return str(self.state.gpus[index].uuid.decode())

    def xid(self, index: int, number: int, part: int | None = None) -> None:
        """Let the driver report an XID to whoever waits. part: put down to this one of the card's slices."""
        self.event(index, XID, number, *((part + 1, 0) if part is not None else ()))

    def event(self, index: int, kind: int, value: int = 0, instance: int = ABSENT, compute: int = ABSENT) -> None:
        """Let the driver report an event of this type to whoever waits."""
        self.state.events[self.state.event_head % EVENTS] = Event(index, kind, value, instance, compute)
        self.state.event_head += 1
        head = ctypes.byref(self.state, State.event_head.offset)
        _LIBC.syscall(_FUTEX, head, _FUTEX_WAKE, (1 << 31) - 1, None, None, 0)

    def cut(self, index: int, *profiles: str) -> None:
        """Let somebody have cut a card so: at each profile's own place, one after the other."""
        gpu, start = self.state.gpus[index], 0
        gpu.mig_mode = gpu.mig_pending = 1
        for at, profile in enumerate(profiles):
            gpu.slices[at] = Slice(1 + PROFILES.index(profile), start, 1, 0, 0)
            start += (1, 2, 4, 4, 8)[PROFILES.index(profile)]

    def profiles(self, index: int) -> list[str]:
        """The profiles that a card is partitioned into, as the driver knows it."""
        return [PROFILES[one.profile - 1] for one in self.state.gpus[index].slices if one.profile]

    def run_processes(self, index: int, *processes: tuple[int, bool]) -> None:
        """Let these (pid, is graphics) run on a card."""
        for at, (pid, is_graphics) in enumerate(processes):
            self.state.gpus[index].processes[at] = Process(pid, int(is_graphics), 1 << 30)
        self.state.gpus[index].process_count = len(processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let a hanging call go; the mapping stays, since a thread may still read it."""
        self.state.hang = 0
