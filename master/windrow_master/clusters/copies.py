"""Copies of one request, an array's, that start together: in one transaction, whose rows go in together."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from windrow_master.clusters.controller import CREATE_KIND
from windrow_master.clusters.messages import HostsKept
from windrow_master.clusters.model import Cluster, ClusterRequest
from windrow_master.clusters.needs import Needs
from windrow_master.clusters.nominations import Nominations
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.clusters.snapshot import Missed
from windrow_master.identity.model import Principal
from windrow_master.placement.live import Nominated
from windrow_master.placement.model import Placement
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import Microcents

Made = tuple[Cluster, Placement]


class Starts(Protocol):
    """Makes one cluster, in the caller's transaction."""

    def new(
        self,
        uow: UnitOfWork,
        principal: Principal,
        request: ClusterRequest,
        key: str | None,
        is_proof: bool,
        login: RegistryLogin | None,
        budget: Microcents | None,
        among: Nominated | None,
        but: frozenset[HostId],
        like: ClusterRequest | None = None,
    ) -> Made | Needs:
        """A cluster with its place, rented and not started."""

    def read_ahead(self, uow: UnitOfWork, host_ids: Sequence[HostId]) -> None:
        """Read at once what starts on these hosts will read one after the other."""

    def tell_start(self, uow: UnitOfWork, principal: Principal, cluster: Cluster, found: Placement, kind: str) -> None:
        """Write down that it starts, and let it."""


class _Cut(Exception):
    """Raised when one of several copies cannot start. number: its place among them."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Copies:
    """Starts copies."""

    def __init__(self, store: Store, nominations: Nominations, starts: Starts) -> None:
        self._store, self._nominations, self._starts = store, nominations, starts

    async def create(
        self,
        principal: Principal,
        copies: Sequence[tuple[str, ClusterRequest]],
        made: Callable[[UnitOfWork, int, Cluster, Placement], None],
        budget: Microcents | None,
    ) -> Sequence[Made]:
        """Rent and start copies of a request, each under its key, as `create` does one after another, in one
        transaction. Returns those from the first on that have a place, and whatever else they need; of the others
        nothing is changed. made: called in the transaction with the number of each."""

        def change(uow: UnitOfWork, among: Sequence[Nominated | None]) -> list[Made]:
            known, found = uow[ClusterRepository].keys(principal.account_id, [key for key, _ in copies]), list[Made]()
            self._starts.read_ahead(uow, [host_id for one in among if one is not None for host_id in one.hosts])
            out = uow.ask(HostsKept(""))
            for number, ((key, request), hosts) in enumerate(zip(copies, among, strict=False)):
                try:
                    like = found[0][0].request if found else None
                    new = self._starts.new(uow, principal, request, key, False, None, budget, hosts, out, like)
                    if key in known or not isinstance(new, tuple):
                        raise _Cut(number)
                    self._starts.tell_start(uow, principal, *new, CREATE_KIND)
                    uow.operation(CREATE_KIND, new[0].cluster_id, principal.account_id, principal.actor)
                    made(uow, number, *new)
                except (WindrowError, Missed) as error:
                    raise _Cut(number) from error
                found.append(new)
            try:
                uow.flush()
            except WindrowError as error:  # of one of them; which one is not known
                raise _Cut(len(found) // 2) from error
            return found

        async def act(among: Sequence[Nominated | None]) -> Sequence[Made]:
            while among:
                try:
                    return await self._store.write(partial(change, among=among), name="cluster.create")
                except _Cut as cut:  # all of it is undone: once more without this one and those after it
                    among = among[: cut.number]
            return ()

        return await self._nominations.placed_copies(principal.account_id, copies[0][1], len(copies), act)
