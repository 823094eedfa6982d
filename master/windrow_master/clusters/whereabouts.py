"""Adds to a snapshot what few requests ask for: distances, reliability, the project of a provider's name."""

from dataclasses import replace

from windrow_master.fleet.distances import distance
from windrow_master.fleet.service import FleetService
from windrow_master.identity.accounts import find_account
from windrow_master.placement.model import Request, Snapshot
from windrow_master.placement.whereabouts import middle_of
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId


class Whereabouts:
    """Knows where hosts are, and how reliable."""

    def __init__(self, fleet: FleetService) -> None:
        self._fleet = fleet

    def known(self, uow: UnitOfWork, wanted: Request, snapshot: Snapshot) -> tuple[Request, Snapshot]:
        """The request with its provider's id, and the snapshot with what it asks for."""
        if wanted.provider_id is not None:
            found = find_account(uow, wanted.provider_id)
            wanted = wanted if found is None else replace(wanted, provider_id=found.id)
        middle = middle_of(wanted)
        if middle is None and wanted.min_reliability_percent is None:
            return wanted, snapshot
        figures = {} if wanted.min_reliability_percent is None else self._fleet.reliability.figures(uow)

        def percent(host_id: HostId) -> int | None:
            return int(figures[host_id] * 100 + 1e-9) if host_id in figures else None

        known = self._fleet.distances
        candidates = tuple(
            replace(
                one,
                near_ms=None if middle is None or not one.region else distance(known, middle, one.region),
                reliability_percent=percent(one.host_id),
            )
            for one in snapshot.candidates
        )
        return wanted, replace(snapshot, candidates=candidates)
