"""How many simulated hosts a market has that `windrow up` runs; elsewhere nobody starts any."""

from dataclasses import dataclass
from typing import Final, Protocol

from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InvalidInput

NOT_HERE: Final = (
    "Simulated hosts are added from here only where `windrow up` started the market. Elsewhere run "
    "`windrow-agent simulate --help` on a machine that reaches this Master."
)


class Simulator(Protocol):
    """Whoever starts and ends simulated hosts, where that is `windrow up`."""

    async def simulated(self) -> tuple[int, int]:
        """How many there are to be, and may be at most. Raises Unavailable when it does not answer."""

    async def simulate(self, count: int) -> None:
        """Have so many, within a minute or so. Raises Unavailable when it does not answer."""


@dataclass(frozen=True, slots=True)
class SimulatedHosts:
    """can_set: `windrow up` started this market. wanted, at_most: numbers of hosts; 0 where it did not."""

    can_set: bool
    wanted: int
    at_most: int


class SimulatedService:
    """Asks `windrow up` for simulated hosts."""

    def __init__(self, store: Store, simulator: Simulator | None) -> None:
        self._store, self._simulator = store, simulator

    async def look(self) -> SimulatedHosts:
        """Return how many there are to be. Raises Unavailable when `windrow up` is silent."""
        if self._simulator is None:
            return SimulatedHosts(False, 0, 0)
        return SimulatedHosts(True, *await self._simulator.simulated())

    async def set(self, count: int, actor: str) -> SimulatedHosts:
        """Have so many: new ones join, those that are too many are retired, with what runs on them.

        Raises Conflict where `windrow up` did not start the market, InvalidInput above the most.
        """
        if self._simulator is None:
            raise Conflict(NOT_HERE)
        at_most = (await self.look()).at_most
        if not 0 <= count <= at_most:
            raise InvalidInput(f"There can be 0 to {at_most} simulated hosts, not {count}.")

        def record(uow: UnitOfWork) -> None:
            uow.audit(actor, "simulated_hosts.set", "simulated_hosts", "", {"count": str(count)})

        await self._store.write(record, name="simulated_hosts.set")
        await self._simulator.simulate(count)
        return await self.look()
