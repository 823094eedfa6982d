"""The port of services that run code by themselves, as searches use it. Pure."""

from collections.abc import Sequence
from typing import Protocol

from windrow_master.hybrid.backends.port import MachineOffer, Wanted
from windrow_master.hybrid.purchases.model import BackendRow
from windrow_master.jobs.model import JobRequest
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId


class Runs(Protocol):
    """Runs at services: each is a purchase, whose id is the run's."""

    kinds: frozenset[str]
    """Names of the kinds of backends that run code."""

    def why_not(self, request: JobRequest) -> str:
        """Why a job cannot run there; empty: it can."""

    async def offers(self, row: BackendRow, wanted: Wanted) -> Sequence[MachineOffer]:
        """The offers that fit. Raises Refused, Doubtful."""

    def begin(
        self,
        uow: UnitOfWork,
        *,
        job_id: str,
        account_id: AccountId,
        backend: BackendRow,
        offer: MachineOffer,
        duration_ns: int,
        expected_ns: int | None,
    ) -> str:
        """Have a run started; returns its id. expected_ns: as `Candidate` has it. Raises Forbidden, QuotaExceeded."""

    def drop(self, uow: UnitOfWork, run_id: str, reason: str) -> None:
        """End a run that nobody needs any more."""
