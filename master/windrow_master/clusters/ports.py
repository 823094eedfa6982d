"""The interface by which the Master's own test rentals make way for renters. Pure."""

from collections.abc import Sequence
from typing import Protocol

from windrow_proto.ids import HostId


class Proofs(Protocol):
    """The test rentals that are under way; acceptance/service.py has them."""

    def end_on(self, hosts: Sequence[HostId]) -> None:
        """Have those on these hosts end; nobody waits for it."""

    async def give_way(self, hosts: Sequence[HostId]) -> bool:
        """The same, and wait until they hold nothing there any more; whether that came in time."""
