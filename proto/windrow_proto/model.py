"""Hosts, commands and workloads as values inside a process: frozen, typed, absent is None. Pure.

Numbers of the enums are those of the .proto files (a test compares them). As bytes: wire*.py. The link's: messages.py.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final

from windrow_proto.ids import ClusterId, CommandId, GpuUuid, SlotId, WorkloadId
from windrow_proto.volumes import Mount

NO_GPU = GpuUuid("")  # of a slot that is a share of the processors


class FrameClass(IntEnum):
    """The lowest goes first. Access sheds BACKLOG, then LIVE; not EVIDENCE (heartbeats, commands too) nor CHANNEL."""

    EVIDENCE = 0
    LIVE = 1
    CHANNEL = 2
    BACKLOG = 3


class Lane(IntEnum):
    """Own sequence, acknowledgement, credits and spool; see proto/README.md."""

    CONTROL = 0
    EVIDENCE = 1
    TELEMETRY = 2
    CHANNEL = 3
    SECOND = 4


class Kind(IntEnum):
    """Which message a body is. Below 32 agent to Master, below 64 Master to agent, from 64 both ways."""

    UNSPECIFIED = 0
    HELLO = 1
    HEARTBEAT = 2
    INVENTORY = 3
    COMMAND_STATUS = 4
    RECEIPT = 5
    EVENT = 6
    OBSERVED = 7
    BANDWIDTH = 8
    TELEMETRY = 9
    GAP = 10
    CANARY = 11
    RESUME = 12
    WELCOME = 32
    HEARTBEAT_REPLY = 33
    ACK = 34
    COMMAND = 35
    SETTINGS = 36
    REGION_MAP = 37
    LEASES = 38
    QUERY = 39
    CANARY_REPLY = 40
    CHANNEL = 64


class CommandKind(IntEnum):
    """The action that a command asks for."""

    UNSPECIFIED = 0
    CREATE = 1
    DELETE = 2
    MEASURE_BANDWIDTH = 3
    BENCHMARK = 4
    PARTITION = 5
    START = 6


class CommandPhase(IntEnum):
    """How far the agent got with a command. REFUSED: it never ran. NEVER_SEEN: the journal does not hold it."""

    UNSPECIFIED = 0
    ACCEPTED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5
    REFUSED = 6
    NEVER_SEEN = 7


class WorkloadPhase(IntEnum):
    """How far a workload got on its host."""

    UNSPECIFIED = 0
    PREPARING = 1
    WAITING_FILES = 2
    RUNNING = 3
    EXITED = 4
    STOPPING = 5
    GONE = 6
    FAILED = 7
    WAITING_MEMBERS = 8
    WAITING_VOLUMES = 9


class ChannelPurpose(IntEnum):
    """The traffic of a channel. FILES_IN goes to the host, FILES_OUT comes from it; both are tar streams. TUNNEL
    carries nothing: it is open as long as a tunnel whose bytes take another way (tunnels.py). CHALLENGE is of no
    workload: the messages of a compute challenge (wire_challenge.encode_step). CHECKPOINT: as checkpoints.py says.
    CORD: carries nothing but keys and counts; it is open as long as a link of the overlay network between two members
    (overlay_packets.py). SIGHT: of no workload, which other hosts this one reaches (reachability.py). TERMINAL: a shell
    with a terminal (terminals.py)."""

    UNSPECIFIED = 0
    LOGS = 1
    EXEC = 2
    FILES_IN = 3
    FILES_OUT = 4
    TCP = 5
    TUNNEL = 6
    CHALLENGE = 7
    CHECKPOINT = 8
    CORD = 9
    SIGHT = 10
    TERMINAL = 11


class Isolation(IntEnum):
    """The means that keep the work on a slot apart from its neighbours' on the same card; docs/slices.md.

    UNSPECIFIED: a share of the processors. WHOLE: there are no neighbours. MIG: memory, cache and processors of its
    own in hardware, and faults stay inside. MPS: shared address spaces' limits in software; one's fault ends them all.
    SHARED: turns in time, nothing else.
    """

    UNSPECIFIED = 0
    WHOLE = 1
    MIG = 2
    MPS = 3
    SHARED = 4


# --- what a host is -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GpuSlice:
    """A part of a card, rented by itself. compute_slices: of the card's mig_devices_max; by MPS, hundredths."""

    uuid: GpuUuid
    profile: str
    isolation: Isolation
    memory_bytes: int
    compute_slices: int


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU as its driver describes it; what the driver did not say is None. Ids of PCI: device << 16 | vendor.

    more: what gpu_fields.py names beyond these, in its units; only what was said. Peers may say what we do not know.
    slices: what it is cut into now; layout: the profiles that its owner lets it be cut into, none: it stays whole.
    """

    uuid: GpuUuid
    index: int
    vendor: str
    name: str
    pci_bus_id: str = ""
    pci_device_id: int = 0
    pci_subsystem_id: int = 0
    memory_bytes: int | None = None
    compute_capability_major: int | None = None
    compute_capability_minor: int | None = None
    serial: str | None = None
    vbios: str | None = None
    power_limit_mw: int | None = None
    power_limit_max_mw: int | None = None
    clock_sm_max_mhz: int | None = None
    clock_memory_max_mhz: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    core_count: int | None = None
    memory_bus_bits: int | None = None
    ecc_enabled: bool | None = None
    mig_enabled: bool | None = None
    numa_node: int | None = None
    device_minor: int | None = None
    more: Mapping[str, int | str] = field(default_factory=dict)
    slices: tuple[GpuSlice, ...] = ()
    layout: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One measured figure of a host or (subject = its uuid) of a GPU."""

    name: str
    value: float
    unit: str
    measured_wall_ns: int
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The parts of a host; changes seldom. `inventory_hash` names a version of it.

    more: what host_fields.py names beyond these, in its units; only what was said.
    """

    hostname: str = ""
    os: str = ""
    kernel: str = ""
    cpu_model: str = ""
    cpu_count: int = 0
    cpu_physical: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    machine_id_hash: str = ""
    agent_version: str = ""
    simulated: bool = False
    driver_version: str = ""
    cuda_version: str = ""
    gpus: tuple[GpuFacts, ...] = ()
    runtimes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    runtime_versions: Mapping[str, str] = field(default_factory=dict)
    benchmarks: tuple[Benchmark, ...] = ()
    owner_account: str = ""
    addresses: tuple[str, ...] = ()
    more: Mapping[str, int | str] = field(default_factory=dict)


_FIRST_OF_INVENTORY: Final = 19
_FIRST_OF_GPU: Final = 24
"""How many fields the first shape had, in their order: these are always hashed. A field added behind them is hashed
only where it says something, so that an agent which does not know it names the same version as a Master that does."""

_NOTHING: Final[tuple[object, ...]] = (None, "", (), {})
"""The value of a field that was not reported; 0 and False were said."""


def inventory_hash(inventory: Inventory) -> str:
    """Name this version of an inventory: SHA-256 in hexadecimal over all of its fields, the same on both ends."""
    # A whole number is written otherwise as an int than as the float that it is after the wire.
    figures = tuple(replace(figure, value=float(figure.value)) for figure in inventory.benchmarks)
    said = _said(_plain(replace(inventory, benchmarks=figures)), _FIRST_OF_INVENTORY)
    said["gpus"] = [_said(gpu, _FIRST_OF_GPU) for gpu in said["gpus"]]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """With dataclasses as mappings of their fields. `asdict` does that, too, and copies each text deeply."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    names = getattr(value, "__dataclass_fields__", None)
    return value if names is None else {name: _plain(getattr(value, name)) for name in names}


def _said(fields: Mapping[str, Any], first: int) -> dict[str, Any]:
    return {name: value for at, (name, value) in enumerate(fields.items()) if at < first or value not in _NOTHING}


# --- commands and what became of them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """A slot and the token it was granted under; gpu_uuid: of the card or its slice, empty for cpu slots.

    isolation: as the slot was offered; UNSPECIFIED for cpu slots and from those that do not know the word.
    """

    slot_id: SlotId
    token: int
    gpu_uuid: GpuUuid = NO_GPU
    isolation: Isolation = Isolation.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A workload to start. Durations count on the host's monotonic clock from receipt; zero caps: no limit of ours.
    With await_members it waits for START. address: where the other members reach it; listens: ports there that must be
    free. peers: the addresses of all others in the private network in which `address` is its own; none: it meets them
    directly. registry_login: for one pull of its image, sealed to its host (sealed.py). sealed_env: more of env, sealed
    to its host: what its renter set. may_use_local_image: an image that the host has will do: the account owns the
    host, or its owner offers this image to everybody. entrypoint: in place of the image's ENTRYPOINT and CMD; empty:
    none; None: the image's own. starts_in_workspace: in /workspace, although its image has a WORKDIR."""

    workload_id: WorkloadId
    cluster_id: ClusterId
    slots: tuple[SlotGrant, ...]
    runtime: str
    image: str = ""
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cpu_milli: int = 0
    memory_bytes: int = 0
    ports: tuple[int, ...] = ()
    await_files: bool = False
    lease_ns: int = 0
    paid_ns: int = 0
    log_cap_bytes: int = 0
    files_cap_bytes: int = 0
    await_members: bool = False
    address: str = ""
    listens: tuple[int, ...] = ()
    peers: tuple[str, ...] = ()
    registry_login: bytes = field(default=b"", repr=False)
    volumes: tuple[Mount, ...] = ()
    may_use_local_image: bool = False
    sealed_env: bytes = field(default=b"", repr=False)
    entrypoint: str | None = None
    starts_in_workspace: bool = False


@dataclass(frozen=True, slots=True)
class StartSpec:
    """A workload that may start now, since all members of its cluster are ready."""

    workload_id: WorkloadId
    slots: tuple[SlotGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteSpec:
    """A workload to end; grace_ns lies between SIGTERM and SIGKILL. keeps_files: its log and files stay until another
    one."""

    workload_id: WorkloadId
    slots: tuple[SlotGrant, ...] = ()
    grace_ns: int = 0
    keeps_files: bool = False


ENVIRONMENT: Final = ".venv"  # in a working folder: installed packages, never among the files that the work changed
RELAYS_MAX: Final = 3  # that measure one host's line, one after the other


@dataclass(frozen=True, slots=True)
class BandwidthSpec:
    """How long and how much to measure, per direction and relay. access_ids: by whom beside the host's own relay."""

    duration_ns: int
    cap_bytes: int
    nonce: str
    access_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """Which card to cut into slices of which profiles, in this order; none: whole again."""

    gpu_uuid: GpuUuid
    profiles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """An order of the Master; the one field that its kind names is set, none for BENCHMARK."""

    command_id: CommandId
    kind: CommandKind
    create: WorkloadSpec | None = None
    delete: DeleteSpec | None = None
    bandwidth: BandwidthSpec | None = None
    partition: PartitionSpec | None = None
    start: StartSpec | None = None


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """The state of a command so far; error_code is one of errors.py, empty while nothing failed."""

    command_id: CommandId
    phase: CommandPhase
    step: str = ""
    progress_permille: int = 0
    error_code: str = ""
    error_detail: str = ""
    result: Mapping[str, str] = field(default_factory=dict)
    at_wall_ns: int = 0


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """One workload as the host sees it; `ports` maps the container's port (text) to one on the host's loopback.

    faults: of what is gone, the slots that it did not leave as it found them, and why, in words.
    """

    workload_id: WorkloadId
    phase: WorkloadPhase
    slots: tuple[SlotGrant, ...] = ()
    exit_code: int | None = None
    running_ns: int = 0
    runtime: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    detail: str = ""
    faults: Mapping[SlotId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """All workloads of a host at one moment."""

    workloads: tuple[ObservedWorkload, ...]
    digest: bytes
    at_wall_ns: int


_NOTHING_RUNS: Final = hashlib.sha256(json.dumps([]).encode()).digest()


def observed_digest(workloads: tuple[ObservedWorkload, ...]) -> bytes:
    """SHA-256 over what reconciling compares: id, phase, slots with tokens and exit code; order does not matter."""
    if not workloads:
        return _NOTHING_RUNS  # so it is on most hosts of most fleets, and asked with each heartbeat
    facts = sorted(
        (w.workload_id, int(w.phase), sorted((s.slot_id, s.token) for s in w.slots), repr(w.exit_code))
        for w in workloads
    )
    return hashlib.sha256(json.dumps(facts).encode()).digest()


@dataclass(frozen=True, slots=True)
class Receipt:
    """How long a workload ran so far, on the monotonic clock; number counts from 1 per workload."""

    workload_id: WorkloadId
    cluster_id: ClusterId
    slots: tuple[SlotGrant, ...]
    number: int
    running_ns: int
    started_wall_ns: int
    at_wall_ns: int
    final: bool = False
    exit_code: int | None = None
    end_reason: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once; `code` is stable (workload.exited), `subject` empty for the host itself."""

    code: str
    at_wall_ns: int
    subject: str = ""
    detail: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseRenewal:
    """More time for a workload, counted from receipt; token: the highest of its slots."""

    workload_id: WorkloadId
    lease_ns: int
    paid_ns: int
    token: int
