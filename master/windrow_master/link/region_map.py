"""Sends the map of Accesses to the hosts: a change is told to a tenth of them a second, a loss seconds later.

An Access has just died then, and its hosts want the Master, the other Accesses and their own processors for the way
back; that it is dead they have seen for themselves.
"""

from collections.abc import Mapping
from typing import Final

from windrow_master.link.accesses import Accesses
from windrow_master.link.route import HostRoute
from windrow_proto.errors import LinkClosed
from windrow_proto.ids import HostId
from windrow_proto.messages import RegionMap
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import Clock
from windrow_proto.units import MILLISECOND
from windrow_proto.wire_link import encode_region_map

TICKS: Final = 10
"""In which all hosts hear of a change."""
TICKS_AFTER_LOSS: Final = 5
"""Before the first of them does, once an Access has gone: until then its hosts are on their way."""
TOLD_MIN: Final = 50
"""In one tick, of few hosts."""


class RegionMaps:
    """The current map, and the map that each host has; `routes` is the hub's table of live routes."""

    def __init__(self, accesses: Accesses, routes: Mapping[HostId, HostRoute], clock: Clock) -> None:
        self._accesses, self._routes, self._clock = accesses, routes, clock
        self._is_changed = True
        self._ticks_left = 0
        self._version, self._body = 0, b""

    def changed(self, *, is_loss: bool = False) -> None:
        """An Access came, went, or is (no longer) drained."""
        self._is_changed = True
        if is_loss and not self._ticks_left:
            self._ticks_left = TICKS_AFTER_LOSS

    def tell(self, route: HostRoute) -> None:
        """Send the newest map this way. Raises LinkClosed when the route has ended."""
        if self._is_changed:
            self._is_changed = False
            # Of a later Master it has to be newer, too, and nothing is kept for that.
            self._version = max(self._version + 1, self._clock.wall_ns() // MILLISECOND)
            self._body = encode_region_map(RegionMap(self._version, self._accesses.points()))
        route.map_version = self._version
        route.send(Kind.REGION_MAP, Lane.CONTROL, self._body)

    def tick(self) -> None:
        """Once a second: tell some of those that have an older one."""
        self._is_changed |= self._accesses.forget()
        if self._ticks_left:
            self._ticks_left -= 1
            return
        behind = [one for one in self._routes.values() if self._is_changed or one.map_version != self._version]
        for route in behind[: max(TOLD_MIN, len(self._routes) // TICKS)]:
            try:
                self.tell(route)
            except LinkClosed:
                pass  # whoever reads the route hears it, too
