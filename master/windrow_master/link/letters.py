"""Letters: messages that a host sends over a second Access about the connection that it has by the first one.

Any Access may bring a letter of any host, so nothing that is wrong with one is held against the host or its route.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import structlog

from windrow_master.fleet.service import FleetService
from windrow_master.link.downlink import Downlink
from windrow_master.link.route import HostRoute
from windrow_master.link.wire import Trunk
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId
from windrow_proto.v1 import link_pb2, services_pb2
from windrow_proto.wire_fields import parse

LETTER_BYTES_MAX: Final = 4096

log = structlog.get_logger(__name__)


class Letters:
    """Answers them; routes: the hub's table of live ones."""

    def __init__(self, routes: Mapping[HostId, HostRoute], fleet: FleetService, down: Downlink) -> None:
        self._routes, self._fleet, self._down = routes, fleet, down

    def take(self, trunk: Trunk, letter: services_pb2.Letter) -> None:
        """Answer one that came by this trunk; what no host of ours can have written is dropped."""
        route = self._routes.get(HostId(letter.host_id))
        if route is None or not route.is_open:
            return
        try:
            answered = route.answer_canary(parse(link_pb2.Frame, letter.sealed, LETTER_BYTES_MAX))
        except WindrowError:
            return
        if answered is None:
            return
        frame, is_kept_back = answered
        trunk.put_letter(services_pb2.Letter(host_id=letter.host_id, sealed=frame.SerializeToString()))
        if is_kept_back:
            self.accuse(route)

    def accuse(self, route: HostRoute) -> None:
        """The Access of this route keeps back what goes through it: it is an event."""
        log.error("messages_kept_back", host_id=route.host_id, access_id=route.access_id)
        self._down.later(partial(self._fleet.messages_kept_back, route.host_id, route.access_id))
