"""Tracks running acceptance tests, and ends those that hold the slots which a renter needs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from windrow_master.acceptance.model import Proof
from windrow_master.acceptance.rental import Rental
from windrow_master.clusters import lookup
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

GIVE_WAY_NS: Final = 20 * SECOND
"""For a test to be off a host for a renter who waits: the host may take ten seconds to end it."""
GIVE_WAY_LOOK_NS: Final = SECOND // 10
"""Between two looks at whether it is, each one read."""


@dataclass(slots=True, eq=False)
class Walk:
    """One test under way."""

    proof: Proof
    rental: Rental
    renting: "asyncio.Task[None] | None" = None
    gave_way: bool = False


class UnderWay(dict[HostId, Walk | None]):
    """The tests of this Master that are under way, by host; None: it is being begun. Used on the loop only."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__()
        self._store, self._clock = store, clock

    def end_on(self, hosts: Sequence[HostId]) -> None:
        """Have the tests on these hosts end; nobody waits for it."""
        for walk in (walk for host_id in hosts if (walk := self.get(host_id)) is not None):
            walk.gave_way = walk.rental.is_unwanted = True
            if walk.renting is not None and walk.rental.cluster_id is not None:
                walk.renting.cancel()

    async def give_way(self, hosts: Sequence[HostId]) -> bool:
        """The same, and wait until none holds anything there, whatever began it; whether that came in time."""
        self.end_on(hosts)
        ends_ns = self._clock.monotonic_ns() + GIVE_WAY_NS
        while await self._store.read(partial(_hold_any, hosts=hosts)):
            if self._clock.monotonic_ns() >= ends_ns:
                return False
            await self._clock.sleep_ns(GIVE_WAY_LOOK_NS)
        return True


def _hold_any(uow: UnitOfWork, hosts: Sequence[HostId]) -> bool:
    """Return whether tests hold slots of these hosts, those that have ended by their rows among them."""
    return any(one.host_id in hosts for one in lookup.held_by_account(uow, PROOF_ACCOUNT))
