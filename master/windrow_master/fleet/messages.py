"""Messages of the fleet to the packages above it: what happened to a host, and what should run on it. Pure."""

from dataclasses import dataclass

from windrow_master.fleet.model import CommandRow, DesiredWorkload, LinkState
from windrow_master.store.messages import Fact, Question
from windrow_proto.ids import HostId
from windrow_proto.model import ObservedWorkload, Receipt


@dataclass(frozen=True, slots=True)
class WorkloadReported(Fact):
    """A host reports a workload, perhaps again."""

    host_id: HostId
    workload: ObservedWorkload


@dataclass(frozen=True, slots=True)
class CommandChanged(Fact):
    """A command's row has changed."""

    row: CommandRow


@dataclass(frozen=True, slots=True)
class ReceiptTaken(Fact):
    """A signed receipt has come, with the bytes that prove it."""

    host_id: HostId
    receipt: Receipt
    sealed: bytes


@dataclass(frozen=True, slots=True)
class LinkChanged(Fact):
    """A host has become Online, Suspect or Lost."""

    host_id: HostId
    state: LinkState


@dataclass(frozen=True, slots=True)
class SlotsLost(Fact):
    """Slots that are held are out of order."""

    host_id: HostId
    slot_ids: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class HostBanned(Fact):
    """A host was quarantined or retired (True), or may come back (False)."""

    host_id: HostId
    is_banned: bool


@dataclass(frozen=True, slots=True)
class HostLeaving(Fact):
    """A host says that it will be gone, and takes no new work. at_ns: wall time by its own word; None: it does not
    know. why: spot, rebalance or shutdown."""

    host_id: HostId
    at_ns: int | None
    why: str


@dataclass(frozen=True, slots=True)
class InstanceOf(Question[str]):
    """Asks which machine of its provider a host has to be; empty: any, or not known yet."""

    host_id: HostId


@dataclass(frozen=True, slots=True)
class DesiredOn(Question[tuple[DesiredWorkload, ...]]):
    """Workloads that should run on a host."""

    host_id: HostId


@dataclass(frozen=True, slots=True)
class HasHad(Question[bool]):
    """Asks whether a host was ever told to run this workload."""

    host_id: HostId
    workload_id: str


@dataclass(frozen=True, slots=True)
class Holds(Question[bool]):
    """Asks whether a host runs this workload, or has ended it a moment ago."""

    host_id: HostId
    workload_id: str


@dataclass(frozen=True, slots=True)
class ClusterOf(Question[str]):
    """The id of the cluster that a workload of this host belongs to; empty: not one of this host's."""

    host_id: HostId
    workload_id: str
