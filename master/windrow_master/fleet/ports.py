"""What the fleet tells other rooms, as plain callables that main sets. Pure: each default does nothing.

All but the last three run inside a unit of work, on the writer's thread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windrow_master.fleet.model import CommandRow, DesiredWorkload, LinkState
from windrow_proto.ids import HostId
from windrow_proto.messages import Gap
from windrow_proto.model import ObservedWorkload, Receipt

Uow = Any
"""A windrow_master.store.unit.UnitOfWork; pure files do not import the store."""


def _nothing(*_: object) -> None:
    return None


def _nobody(*_: object) -> tuple[()]:
    return ()


@dataclass(slots=True)
class FleetPorts:
    """Who is told what.

    on_workload: a host reports a workload, maybe again. on_command: a command's row changed. on_receipt: a signed
    receipt with the bytes that prove it. on_host_link: a host became Online, Suspect or Lost. on_slots_lost: held slots
    are out of order. on_ban: a host was quarantined or retired (True), or may come back (False). desired: what should
    run on a host. access_public: an Access' Ed25519 key, None if it is not one of ours.
    relays: which Accesses serve now and are not drained; relay_regions: where each is, with those that left just now.
    on_wake: a host has something to be sent; on_ask: let it report its workloads; on_telemetry_gap: samples that will
    never come. These three,
    relays and relay_regions run on the loop.
    """

    on_workload: Callable[[Uow, HostId, ObservedWorkload], None] = _nothing
    on_command: Callable[[Uow, CommandRow], None] = _nothing
    on_receipt: Callable[[Uow, HostId, Receipt, bytes], None] = _nothing
    on_host_link: Callable[[Uow, HostId, LinkState], None] = _nothing
    on_slots_lost: Callable[[Uow, HostId, tuple[str, ...], str], None] = _nothing
    on_ban: Callable[[Uow, HostId, bool], None] = _nothing
    desired: Callable[[Uow, HostId], tuple[DesiredWorkload, ...]] = _nobody
    had: Callable[[Uow, HostId, str], bool] = lambda uow, host_id, workload_id: False
    holds: Callable[[Uow, HostId, str], bool] = lambda uow, host_id, workload_id: False
    cluster_of: Callable[[Uow, HostId, str], str] = lambda uow, host_id, workload_id: ""
    access_public: Callable[[Uow, str], bytes | None] = _nothing
    relays: Callable[[], tuple[str, ...]] = _nobody
    relay_regions: Callable[[], Mapping[str, str]] = dict
    on_wake: Callable[[HostId], None] = _nothing
    on_ask: Callable[[HostId], None] = _nothing
    on_telemetry_gap: Callable[[HostId, Gap], None] = _nothing
