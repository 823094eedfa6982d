"""Messages of clusters to the packages above them: volumes that they are to have, ranks that failed, jobs that made
them, limits of hosts, and places elsewhere. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow_master.clusters.model import Cluster, Workload
from windrow_master.queue.model import Entry
from windrow_master.store.messages import Fact, Question
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.units import Microcents
from windrow_proto.volumes import Mount


@dataclass(frozen=True, slots=True)
class VolumesAsked(Fact):
    """A request names volumes. Raises InvalidInput for one that is not there, Conflict for one that is to be written
    and that another cluster writes."""

    account_id: AccountId
    mounts: tuple[Mount, ...]


@dataclass(frozen=True, slots=True)
class VolumesTaken(Fact):
    """A cluster has these volumes from now on. Raises what VolumesAsked does."""

    account_id: AccountId
    mounts: tuple[Mount, ...]
    cluster_id: ClusterId


@dataclass(frozen=True, slots=True)
class RankFailed(Fact):
    """The first rank of a gang has failed. lines: the last of its log, for its renter; empty: it could not be had."""

    cluster: Cluster
    workload: Workload
    ranks: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IsOfJob(Question[bool]):
    """Asks whether a job that has not ended made this cluster: the job ends the cluster, and brings in its results."""

    cluster_id: ClusterId


@dataclass(frozen=True, slots=True)
class EntriesOf(Question[Mapping[ClusterId, Entry]]):
    """Asks which entries of the queue these clusters are attempts of; one that no living job made has none."""

    clusters: Sequence[Cluster]


@dataclass(frozen=True, slots=True)
class HostLimit:
    """The limit of a host. most: clusters at once; None: as its slots allow. only_for: the account whose work it takes;
    None: every account. closes_at_ns: the wall time from which it is not to be used; None: none is known. kept_for: the
    entry of the queue that it was bought for and that has not run there yet; empty: none."""

    most: int | None = None
    only_for: AccountId | None = None
    closes_at_ns: int | None = None
    kept_for: str = ""


@dataclass(frozen=True, slots=True)
class HostLimits(Question[Mapping[HostId, HostLimit]]):
    """Asks for the hosts that have a limit. hosts: among these alone; None: among all."""

    hosts: Sequence[HostId] | None = None


@dataclass(frozen=True, slots=True)
class ElsewhereAsked(Fact):
    """Jobs, or a machine that waits, may run elsewhere: at this backend, or at any. Raises Forbidden where their
    project may not buy there."""

    account_id: AccountId
    entry_ids: tuple[str, ...]
    backend: str


@dataclass(frozen=True, slots=True)
class NoRoom(Fact):
    """An entry that may run elsewhere had its turn in the queue, and there was no room for it here."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class HostsKept(Question[frozenset[HostId]]):
    """Asks for the hosts that are kept for other entries of the queue than this one."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class HostKeptFor(Question[HostId | None]):
    """Asks for the host that was bought for this entry, and has joined; None: there is none."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class CheapestElsewhere(Question[Microcents | None]):
    """Asks for the price per hour of the cheapest place elsewhere for an entry; None: there is none. Raises Unavailable
    while the prices are not known yet."""

    entry_id: str
