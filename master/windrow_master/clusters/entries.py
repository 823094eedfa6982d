"""Makes the queue's entry of a request for a cluster: its needs on each host, its cost, and what else decides on its
place. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow_master.clusters.model import ClusterRequest
from windrow_master.queue.model import MILLI, Entry, Need, cost
from windrow_master.spec import Resources, fields_of
from windrow_proto.ids import AccountId
from windrow_proto.units import MIB
from windrow_proto.volumes import Mount


@dataclass(frozen=True, slots=True)
class Shape:
    """All of a request that decides on a place. resources: the values of its fields, in their order. spenders: whose
    limits it counts for beside its project's. optimize: with `cost` a place here may be too dear."""

    resources: tuple[Any, ...]
    simulated: bool
    volumes: tuple[Mount, ...]
    secrets: tuple[str, ...]
    registry_secret: str | None
    spenders: tuple[str, ...] = ()
    optimize: str | None = None

    @property
    def request(self) -> ClusterRequest:
        """A request of this shape."""
        names = (one.attribute for one in fields_of(Resources))
        return ClusterRequest(**dict(zip(names, self.resources, strict=True)), simulated=self.simulated)


def entry_of(
    request: ClusterRequest,
    account_id: AccountId,
    entry_id: str,
    submitted_ns: int,
    *,
    tier_costs: Mapping[str, int],
    pools: frozenset[str] = frozenset(),
    spenders: tuple[str, ...] = (),
    **more: Any,
) -> Entry:
    """The entry of a request. tier_costs: of a card, in permille. pools: the classes of hosts that would do; empty:
    the queue asks its feed. spenders: as of Shape. more: fields of the entry, such as its class."""
    memory = -(-(request.memory_bytes or 0) // MIB)
    gpus, cpus = request.gpus * MILLI, request.cpus * MILLI
    resources = tuple(getattr(request, one.attribute) for one in fields_of(Resources))
    return Entry(
        entry_id=entry_id,
        leaf=account_id,
        cost=cost({request.tier or "": gpus * request.hosts}, cpus * request.hosts, memory * request.hosts, tier_costs),
        need=Need(
            cards=request.gpus,
            cpus=cpus,
            memory=memory,
            hosts=request.hosts,
            pools=pools,
            only=frozenset() if request.host_id is None else frozenset({request.host_id}),
        ),
        submitted_ns=submitted_ns,
        name=request.name,
        limit_ns=request.max_duration_ns,
        shape=Shape(
            resources,
            request.simulated,
            request.volumes,
            tuple(request.secrets),
            request.registry_secret,
            spenders,
            request.optimize,
        ),
        **more,
    )
