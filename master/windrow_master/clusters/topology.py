"""Decides how the members of one cluster reach each other, from what their hosts reported of each other. Pure.

direct    every host was shown the token of every other at the address that the members will be told
tunnels   one was not, or they are in networks of which none leads to the other: a private network, whose
          packets go through Accesses; every host has to be able to be in one, and there are at most 16.
          Containers and processes in sandboxes always meet so: nobody comes to the addresses of their hosts
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, Protocol

from windrow_master.clusters.model import Network, NetworkMode
from windrow_proto.errors import NoCapacity
from windrow_proto.ids import HostId

PRIVATE_HOSTS_MAX: Final = 16
"""Of one private network: each two members are joined by a link of their own, so 16 are 120 of them."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """One host of a cluster to be. address: where the others would meet it; network: see Candidate.network;
    is_contained: its member is a container; is_alone: its member has a network of its own, as every container has."""

    host_id: HostId
    host_name: str
    address: str
    network: str | None
    is_contained: bool = False
    is_alone: bool = False


class Reachability(Protocol):
    """Interface: which hosts reach each other; network/reachability.py implements it."""

    def decide(self, hosts: Sequence[Meeting]) -> Network | None:
        """Return how they meet; None: they have to look first. Raises NoCapacity."""

    async def look(self, hosts: Sequence[Meeting]) -> None:
        """Have them look, within some ten seconds."""


class PeerLink(Protocol):
    """A line of a private network, as it is shown."""

    @property
    def is_up(self) -> bool:
        """True if its members are joined now."""

    @property
    def problem(self) -> str:
        """The reason why they are not."""


@dataclass(frozen=True, slots=True)
class Found:
    """The report of one host about another: whether it reaches it, and why not."""

    is_seen: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class KnownReachability:
    """All that is known of some hosts. pairs: who looked, at whom; cannot: why a host can be in no private network,
    empty where it can, absent where it is not known; cannot_contained: the same of its containers."""

    pairs: Mapping[tuple[HostId, HostId], Found]
    cannot: Mapping[HostId, str]
    cannot_contained: Mapping[HostId, str] = field(default_factory=dict)

    def refusals(self, hosts: Sequence[Meeting]) -> Mapping[HostId, str]:
        """Those of containers, or of hosts: what the members of one cluster are."""
        return self.cannot_contained if hosts[0].is_contained else self.cannot


def is_known(hosts: Sequence[Meeting], known: KnownReachability) -> bool:
    """Return whether enough is known to decide."""
    if any(host.host_id not in known.refusals(hosts) for host in hosts):
        return False
    return (
        any(host.is_alone for host in hosts)
        or _parted(hosts)
        or all((one.host_id, other.host_id) in known.pairs for one, other in permutations(hosts, 2))
    )


def decide(hosts: Sequence[Meeting], known: KnownReachability) -> Network:
    """Return how they meet; raises NoCapacity where they cannot."""
    why = _why_not_direct(hosts, known)
    if not why:
        return Network(NetworkMode.DIRECT, "every host sees every other")
    if len(hosts) > PRIVATE_HOSTS_MAX:
        raise NoCapacity(f"{why}, and a private network has at most {PRIVATE_HOSTS_MAX} hosts.")
    for host in hosts:
        if cannot := known.refusals(hosts).get(host.host_id, ""):
            whose = "containers of " if host.is_contained else ""
            raise NoCapacity(f"{why}, and {whose}{host.host_name} can be in no private network: {cannot}.")
    return Network(NetworkMode.TUNNELS, why)


def _parted(hosts: Sequence[Meeting]) -> bool:
    """Return whether they are in networks of which none leads to the other."""
    return len({host.network for host in hosts}) > 1 or hosts[0].network is None


def _why_not_direct(hosts: Sequence[Meeting], known: KnownReachability) -> str:
    if any(host.is_alone for host in hosts):
        return f"{'containers' if hosts[0].is_contained else 'processes in sandboxes'} have networks of their own"
    if _parted(hosts):
        other = next((one for one in hosts if one.network != hosts[0].network), hosts[-1])
        return f"{hosts[0].host_name} and {other.host_name} are in different networks"
    for one, other in permutations(hosts, 2):
        found = known.pairs.get((one.host_id, other.host_id), Found(False, "nobody looked"))
        if not found.is_seen:
            return f"{one.host_name} does not see {other.host_name} at {other.address} ({found.why})"
    return ""
