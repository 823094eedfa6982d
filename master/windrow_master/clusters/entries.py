"""Makes the queue's entry of a request for a cluster: its needs on each host, its cost, and what else decides on its
place. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from windrow_master.clusters.model import ClusterRequest
from windrow_master.queue.model import MILLI, Entry, Need, cost
from windrow_master.spec import Resources, fields_of
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import MIB, Bytes
from windrow_proto.volumes import Mount

_RESOURCES: Final = tuple(one.attribute for one in fields_of(Resources))
_TIER, _HOST = _RESOURCES.index("tier"), _RESOURCES.index("host_id")


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
        return ClusterRequest(**dict(zip(_RESOURCES, self.resources, strict=True)), simulated=self.simulated)


class Asked(Protocol):
    """Interface: what a request for a cluster and one for a job say alike, beside their resources."""

    @property
    def gpus(self) -> int: ...
    @property
    def cpus(self) -> int: ...
    @property
    def memory_bytes(self) -> Bytes | None: ...
    @property
    def tier(self) -> str | None: ...
    @property
    def host_id(self) -> HostId | None: ...
    @property
    def name(self) -> str: ...
    @property
    def max_duration_ns(self) -> int | None: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def volumes(self) -> tuple[Mount, ...]: ...
    @property
    def secrets(self) -> Sequence[str]: ...
    @property
    def registry_secret(self) -> str | None: ...
    @property
    def optimize(self) -> str | None: ...


def entry_of(
    request: Asked,
    account_id: AccountId,
    entry_id: str,
    submitted_ns: int,
    *,
    tier_costs: Mapping[str, int],
    hosts: int = 1,
    tier: str | None = None,
    kept: HostId | None = None,
    pools: frozenset[str] = frozenset(),
    spenders: tuple[str, ...] = (),
    **more: Any,
) -> Entry:
    """The entry of a request. tier_costs: of a card, in permille. tier: that it runs in; empty or None: what it asks
    for. kept: the host that was bought for it, where it waits for no other. pools: the classes of hosts that would do;
    empty: the queue asks its feed. spenders: as of Shape. more: fields of the entry, such as its class."""
    tier, host_id = tier or request.tier, request.host_id if kept is None else kept
    memory = -(-(request.memory_bytes or 0) // MIB)
    gpus, cpus = request.gpus * MILLI, request.cpus * MILLI
    resources = [getattr(request, one) for one in _RESOURCES]
    resources[_TIER], resources[_HOST] = tier, host_id
    return Entry(
        entry_id=entry_id,
        leaf=account_id,
        cost=cost({tier or "": gpus * hosts}, cpus * hosts, memory * hosts, tier_costs),
        need=Need(
            cards=request.gpus,
            cpus=cpus,
            memory=memory,
            hosts=hosts,
            pools=pools,
            only=frozenset() if host_id is None else frozenset({host_id}),
        ),
        submitted_ns=submitted_ns,
        name=request.name,
        limit_ns=request.max_duration_ns,
        shape=Shape(
            tuple(resources),
            request.simulated,
            request.volumes,
            tuple(request.secrets),
            request.registry_secret,
            spenders,
            request.optimize,
        ),
        **more,
    )
