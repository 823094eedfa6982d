"""Holds the live connections to hosts, by host, and the Access through which each one goes."""

from windrow_master.fleet.presence import PresenceBook
from windrow_master.link.channels import ChannelPipe
from windrow_master.link.route import HostRoute
from windrow_master.network.nearest_access import Nearby, TunnelPlace
from windrow_master.network.tunnels import TunnelAddresses
from windrow_proto.errors import HostUnreachable
from windrow_proto.ids import HostId
from windrow_proto.messages import ChannelOpen


class Routes(dict[HostId, HostRoute]):
    """Kept by the hub; it is the ChannelBroker of everything that talks to workloads."""

    def __init__(self, presence: PresenceBook) -> None:
        super().__init__()
        self._presence, self._channel_id = presence, 0

    async def open(self, host_id: HostId, opening: ChannelOpen) -> ChannelPipe:
        """A channel to a workload of this host; raises HostUnreachable when no route to it is open."""
        route = self.get(host_id)
        if route is None or not route.is_open:
            raise HostUnreachable(subject=host_id)
        self._channel_id += 1
        return route.open_channel(self._channel_id, opening)

    def access_of(self, host_id: HostId) -> str:
        """The Access that this host is connected to; empty: none."""
        route = self.get(host_id)
        return "" if route is None else route.access_id

    def tunnel_addresses(self, host_id: HostId) -> TunnelAddresses | None:
        """Of the Access worker that this host is connected to; None where it is not, or has no tunnels."""
        route = self.get(host_id)
        if route is None or not all(route.tunnels):
            return None
        return TunnelAddresses(*route.tunnels)

    def nearby(self, host_id: HostId, places: tuple[TunnelPlace, ...]) -> Nearby:
        """For the choice of an Access for tunnels to a host: its own, and the round trips to others. places: those that
        may be chosen."""
        route, live = self.get(host_id), self._presence.get(host_id)
        if route is None or live is None:
            return Nearby()
        rtts_ns = dict(live.rtts_ns)
        if live.rtt_ns is not None:
            rtts_ns[route.access_id] = live.rtt_ns
        return Nearby(route.access_id, places, rtts_ns)
