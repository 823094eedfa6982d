"""The interface through which the fleet uses the link to hosts. Pure."""

from collections.abc import Mapping
from typing import Protocol

from windrow_proto.ids import HostId
from windrow_proto.messages import Gap


class Relays(Protocol):
    """The Accesses that hosts can be reached by; asked on the loop."""

    def serving(self) -> tuple[str, ...]:
        """Ids of those that take hosts now and are not drained."""

    def regions(self) -> Mapping[str, str]:
        """The region of each, those among them that left a moment ago."""


class HostLink(Protocol):
    """Listens to what the fleet has for a host that is connected; called on the loop."""

    def wake(self, host_id: HostId) -> None:
        """Commands for this host are in its outbox."""

    def ask_observed(self, host_id: HostId) -> None:
        """The host should say again what runs on it."""

    def telemetry_gap(self, host_id: HostId, gap: Gap) -> None:
        """These samples of the host will never come."""
