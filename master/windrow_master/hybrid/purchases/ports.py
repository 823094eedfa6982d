"""The port of the hosts that bought machines become. Pure."""

from typing import Protocol

from windrow_master.hybrid.purchases.model import Purchase
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId
from windrow_proto.units import Microcents


class Hosts(Protocol):
    """The hosts that machines become, and their bootstrap; in the caller's transaction."""

    def bootstrap(self, uow: UnitOfWork, purchase: Purchase, life_ns: int) -> str:
        """User data with a join token for this purchase alone."""

    def revoke(self, uow: UnitOfWork, purchase: Purchase) -> None:
        """Make its join token worthless."""

    def redacted(self, console: str) -> str:
        """The text without secrets."""

    def is_busy(self, uow: UnitOfWork, host_id: HostId) -> bool:
        """True while it has work."""

    def price(self, uow: UnitOfWork, purchase: Purchase, margin_percent: int) -> None:
        """Let hosts like its own cost what it costs, and the margin."""

    def paid(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        """The sum that renters paid for it."""

    def drain(self, uow: UnitOfWork, host_id: HostId, at_ns: int, reason: str) -> None:
        """Let nothing new start on it, and its work move: it will be gone at this wall time."""

    def lose(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """It is gone now: its work is lost, its leases end."""

    def quarantine(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """Use it for nothing."""

    def check_instance(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Compare the machine that its agent says it is on with the one that was bought."""
