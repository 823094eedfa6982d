"""Clusters as they are shown, and the preview of a new one. Values; nothing here decides. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase, Traffic, Workload
from windrow_master.clusters.states import FINAL
from windrow_master.placement.model import Chosen, Refusal
from windrow_proto.ids import HostId
from windrow_proto.units import Microcents


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster with its workloads and what was charged so far."""

    cluster: Cluster
    workloads: tuple[Workload, ...]
    cost: Microcents
    ends_at_ns: int | None = None
    """The time at which its duration or its budget ends it."""
    client_lease_ends_at_ns: int | None = None
    """The time at which it ends unless its client is heard from."""
    urls: Mapping[int, str] = field(default_factory=dict)
    """Of a service, where anybody reaches each of its ports."""
    traffic: Traffic = field(default_factory=Traffic)
    peer_links: tuple[bool, ...] = ()
    """Of a private network, of each two members whether they are joined now."""
    peer_link_problem: str = ""
    """The reason why two of them are not joined."""
    silent_hosts: Mapping[str, int | None] = field(default_factory=dict)
    """Of its hosts those that do not answer now, by name, with the time at which each was heard last."""
    whole: Cluster | None = None
    """With the values of its environment and its secret, where its renter asks for it alone."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of a new cluster: its place, its price and the amount to hold; or why there is none.

    proofs_on: hosts on which test rentals of the Master's own make way for it first.
    """

    members: tuple[Chosen, ...]
    hold: Microcents | None
    balance: Microcents
    refusal: Refusal | None = None
    proofs_on: tuple[HostId, ...] = ()

    @property
    def chosen(self) -> Chosen | None:
        """The best place, rank 0's; None where nothing fits."""
        return self.members[0] if self.members else None


def public_ports(cluster: Cluster) -> tuple[int, ...]:
    """The ports that anybody may reach while it runs, in order; none of a box, nor once it has ended."""
    if cluster.kind is not ClusterKind.SERVICE or cluster.phase in FINAL or cluster.phase is ClusterPhase.DELETING:
        return ()
    return tuple(sorted(set(cluster.request.ports)))
