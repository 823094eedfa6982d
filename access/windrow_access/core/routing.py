"""Maps agent streams to routes of the trunk, and decides who wins when a host appears twice. Pure.

The newest stream of a host wins here (a reconnect must not wait for the old stream's timeout); whether two live boots
are a clone is the Master's to say, who sees every Access.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

Stream = TypeVar("Stream")


@dataclass(frozen=True, slots=True)
class RouteFacts(Generic[Stream]):
    """One open agent stream. not_after_ns: wall time at which its certificate ends and the stream with it."""

    route: int
    host_id: str
    not_after_ns: int
    stream: Stream


class Routes(Generic[Stream]):
    """The table of open streams of one process. Route numbers start at 1 and are never reused within a trunk."""

    def __init__(self) -> None:
        self._next = 1
        self._by_route: dict[int, RouteFacts[Stream]] = {}
        self._by_host: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._by_route)

    def open(
        self, host_id: str, not_after_ns: int, stream: Stream
    ) -> tuple[RouteFacts[Stream], RouteFacts[Stream] | None]:
        """Add a stream; returns it and the older stream of the same host, which the caller must close."""
        facts = RouteFacts(self._next, host_id, not_after_ns, stream)
        self._next += 1
        older = self._by_route.get(self._by_host.get(host_id, 0))
        self._by_route[facts.route] = facts
        self._by_host[host_id] = facts.route
        return facts, older

    def get(self, route: int) -> RouteFacts[Stream] | None:
        """The stream of a route, if it is still open."""
        return self._by_route.get(route)

    def of_host(self, host_id: str) -> RouteFacts[Stream] | None:
        """The newest stream of a host, if it has one here."""
        return self._by_route.get(self._by_host.get(host_id, 0))

    def close(self, route: int) -> RouteFacts[Stream] | None:
        """Remove a stream; returns it, or None if it had gone already."""
        facts = self._by_route.pop(route, None)
        if facts is not None and self._by_host.get(facts.host_id) == route:
            del self._by_host[facts.host_id]
        return facts

    def all(self) -> tuple[RouteFacts[Stream], ...]:
        """Every open stream, oldest first."""
        return tuple(self._by_route.values())

    def expired(self, wall_ns: int) -> tuple[RouteFacts[Stream], ...]:
        """Streams whose certificate has ended: TLS checks it at the handshake only, so we end them ourselves."""
        return tuple(facts for facts in self._by_route.values() if facts.not_after_ns <= wall_ns)
