"""One overlay network on this host: the device that its member uses, and a link to each peer.

Only packets between the member and a peer pass, each by the link of that peer, and only connections that the workload
itself opens or takes.
"""

import asyncio
from typing import Final

from windrow_agent.overlay.firewall import Firewall, Owned
from windrow_agent.overlay.peer_link import PeerLink
from windrow_agent.runtimes.tun_device import Device
from windrow_proto.overlay_packets import ends, packed

PACKETS_AT_ONCE: Final = 32
"""Read from the device before the loop looks at others: a megabyte."""


class OverlayNetwork:
    """The network of one workload. `run` beside it; `close` ends the device."""

    def __init__(self, address: str, owned: Owned | None, device: Device) -> None:
        """owned: the sockets that may speak here; None: all of them, where the workload is alone in a network. device:
        with this address, in that network; closed with this. Raises InvalidInput."""
        self.address, self.stray = address, 0
        self.changed = asyncio.Event()
        self._own = packed(address)
        self._links: dict[bytes, PeerLink] = {}
        self._problems: dict[bytes, str] = {}
        self._firewall = Firewall(address, owned) if owned is not None else None
        self._device = device
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._device.fd, self._outward)

    async def run(self) -> None:
        """Judge who opens connections, until cancelled."""
        if self._firewall is not None:
            await self._firewall.run()

    def close(self) -> None:
        """End the device, and every link."""
        self._loop.remove_reader(self._device.fd)
        for link in self._links.values():
            link.end("the member is gone")
        self._device.close()

    def attach(self, peer: str, link: PeerLink) -> None:
        """Use this link to a peer, in the place of any before it."""
        before = self._links.get(packed(peer))
        self._links[packed(peer)] = link
        self._problems.pop(packed(peer), None)
        if before is not None:
            before.end("another link took its place")
        self.changed.set()

    def detach(self, peer: str, link: PeerLink, why: str) -> None:
        """Drop a link that is over."""
        if self._links.get(packed(peer)) is link:
            del self._links[packed(peer)]
        self.failed(peer, why)

    def failed(self, peer: str, why: str) -> None:
        """Note why there is no link to this peer."""
        self._problems[packed(peer)] = why

    def missing(self, peers: tuple[str, ...]) -> dict[str, str]:
        """The peers of these that have no link, and why, as far as that is known."""
        return {peer: self._problems.get(packed(peer), "") for peer in peers if packed(peer) not in self._links}

    def taker(self, peer: str) -> "PacketReceiver":
        """Returns the receiver of this peer's packets."""
        return PacketReceiver(self, packed(peer))

    def _outward(self) -> None:
        touched: dict[bytes, PeerLink] = {}
        for packet in self._device.packets(PACKETS_AT_ONCE):
            found = ends(packet)
            if found is None or found[0] != self._own or found[1] not in self._links:
                self.stray += 1
            elif self._firewall is None or self._firewall.pass_through(packet, True, self._send_one):
                link = touched[found[1]] = self._links[found[1]]
                link.send(packet)
        for link in touched.values():
            link.flush()

    def _send_one(self, packet: bytes) -> None:
        found = ends(packet)
        link = self._links.get(found[1]) if found is not None else None
        if link is not None:
            link.send(packet)
            link.flush()

    def take(self, packet: memoryview, peer: bytes) -> None:
        """Take a packet that has come by the link of this peer."""
        if ends(packet) != (peer, self._own):
            self.stray += 1
        elif self._firewall is None or self._firewall.pass_through(packet, False, self._give_one):
            self._device.write(packet)

    def _give_one(self, packet: bytes) -> None:
        self._device.write(memoryview(packet))


class PacketReceiver:
    """Gives the packets of one link to the network."""

    def __init__(self, network: OverlayNetwork, peer: bytes) -> None:
        self._network, self._peer = network, peer

    def __call__(self, packet: memoryview) -> None:
        """One packet."""
        self._network.take(packet, self._peer)
