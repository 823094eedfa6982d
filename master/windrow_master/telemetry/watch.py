"""Decides how often each host sends its samples: often while somebody watches it, seldom in a huge fleet. Pure."""

from dataclasses import dataclass, field
from typing import Final

from windrow_proto.ids import HostId
from windrow_proto.units import SECOND

WATCHED_NS: Final = SECOND
DEFAULT_NS: Final = 5 * SECOND
HUGE_NS: Final = 30 * SECOND
HUGE_HOSTS: Final = 5_000
"""From here on nobody can look at all of it, and a batch each 5 s from everybody costs more than it tells."""
LINGER_NS: Final = 10 * SECOND
"""After the last watcher left: who changes a page and comes back finds the host still fast."""


@dataclass(slots=True)
class WatchBook:
    """The hosts that are watched. Times are monotonic."""

    _watchers: dict[HostId, int] = field(default_factory=dict)
    _until_ns: dict[HostId, int] = field(default_factory=dict)

    def begin(self, host_id: HostId) -> None:
        """Somebody looks at a host."""
        self._watchers[host_id] = self._watchers.get(host_id, 0) + 1

    def end(self, host_id: HostId, now_ns: int) -> None:
        """Somebody looks away."""
        left = self._watchers.get(host_id, 0) - 1
        if left > 0:
            self._watchers[host_id] = left
        else:
            self._watchers.pop(host_id, None)
            self._until_ns[host_id] = now_ns + LINGER_NS

    def period_ns(self, host_id: HostId, fleet: int, now_ns: int) -> int:
        """The period of batches for one host, in a fleet of so many."""
        if host_id in self._watchers or self._until_ns.get(host_id, 0) > now_ns:
            return WATCHED_NS
        return HUGE_NS if fleet > HUGE_HOSTS else DEFAULT_NS

    def lapsed(self, now_ns: int) -> tuple[HostId, ...]:
        """Hosts whose time after the last watcher is over; each is named once."""
        over = tuple(h for h, until in self._until_ns.items() if until <= now_ns)
        for host_id in over:
            del self._until_ns[host_id]
        return tuple(h for h in over if h not in self._watchers)
