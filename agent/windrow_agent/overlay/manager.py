"""The overlay networks of this host: made for a member, linked to its peers as the Master asks, removed with the
member.

A device lives no longer than this process. After a restart the Master asks for the links again, which makes it again;
connections of the member that were open go on.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from windrow_agent.core.workload import WorkloadState
from windrow_agent.host.psutil_reader import addresses
from windrow_agent.overlay import self_test
from windrow_agent.overlay.network import OverlayNetwork
from windrow_agent.overlay.peer_link import PeerLink
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.port import Progress, Runtime
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_agent.runtimes.tun_device import NAME, Device, cannot, cannot_own
from windrow_agent.threads import to_its_end
from windrow_proto.errors import Conflict, InvalidInput, LinkClosed, RuntimeUnavailable, Unavailable, WindrowError
from windrow_proto.ids import WorkloadId
from windrow_proto.keys import TlsIdentity, lone_identity
from windrow_proto.messages import ChannelOpen
from windrow_proto.model import WorkloadPhase, WorkloadSpec
from windrow_proto.overlay_packets import PREFIX_BITS, UP, packed
from windrow_proto.ports import Clock
from windrow_proto.together import together
from windrow_proto.tunnel_dial import come, joined
from windrow_proto.tunnels import HOST_NAME
from windrow_proto.units import SECOND, seconds
from windrow_tunnel.sockets import mutual_context
from windrow_tunnel.tls import TunnelTls

log = structlog.get_logger()

PEERS_MAX: Final = 15
"""Peers of one member: each has a link of its own."""
NETWORKS_MAX: Final = 32
"""Of one host."""
JOIN_NS: Final = 60 * SECOND
"""For the links of a new member to its peers: some of their hosts may have to be told first."""
PEM_BYTES_MAX: Final = 4_096
KEY_S: Final = 20.0
"""For the other end's key to come."""
DIAL_S: Final = 8.0
"""For the Access, its handshake included."""
MEET_S: Final = 30.0
"""For the other end to come there."""
GREET_S: Final = 10.0
TELL_NS: Final = 10 * SECOND
"""Between two reports of the bytes that went through a link."""

Hear = Callable[[], Awaitable[bytes | None]]
Say = Callable[[bytes], Awaitable[None]]
Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]


@dataclass(slots=True)
class LinkTraffic:
    """Bytes of packets that went through a link."""

    received_bytes: int = 0
    sent_bytes: int = 0


class HostWorkloads(Protocol):
    """The workloads of this host, as far as an overlay network asks for them."""

    @property
    def runtimes(self) -> Mapping[str, Runtime]:
        """By name."""

    def state(self, workload_id: WorkloadId) -> WorkloadState | None:
        """None: there is no such workload here."""

    def runtime_of(self, workload_id: WorkloadId) -> Runtime:
        """The runtime of a workload that is here; raises NotFound."""


class OverlayManager:
    """The overlay networks of this host: raises, tests and ends them."""

    def __init__(self, workloads: Callable[[], HostWorkloads], clock: Clock, spawn: Spawn) -> None:
        """workloads: returns the workloads of this host; called when one is needed."""
        self._workloads, self._clock, self._spawn = workloads, clock, spawn
        self._networks: dict[WorkloadId, tuple[OverlayNetwork, asyncio.Task[None]]] = {}
        self._raising = asyncio.Lock()

    @property
    def count(self) -> int:
        """Networks that are up here."""
        return len(self._networks)

    def refusal(self, spec: WorkloadSpec) -> WindrowError | None:
        """Why this host cannot be in the private network of this workload; None: it can."""
        try:
            own = packed(spec.address)[:3]
            if not all(packed(peer)[:3] == own for peer in spec.peers) or len(spec.peers) > PEERS_MAX:
                raise InvalidInput(f"A private network has at most {PEERS_MAX + 1} members of one /{PREFIX_BITS}.")
        except InvalidInput as error:
            return error
        is_container = spec.runtime == DockerRuntime.name
        if spec.runtime != ProcessRuntime.name and not is_container:
            return RuntimeUnavailable(f"Workloads of the runtime {spec.runtime!r} are in no private network.")
        is_alone = is_container or self._has_own_networks()
        why = cannot_own() if is_alone and not is_container else cannot(in_container=is_container)
        if why:
            return RuntimeUnavailable(f"This host can be in no private network: {why}.", subject=spec.workload_id)
        if is_alone:
            return None  # its network is its own
        near = [name for found, name in addresses().items() if socket.inet_aton(found)[:3] == own]
        if taken := [name for name in near if not name.startswith(NAME)]:
            return Conflict(f"{taken[0]} of this host has addresses near {spec.address}.", subject=spec.workload_id)
        return None

    async def refusals(self) -> tuple[str, str]:
        """Why processes of this host could be in no private network, and why containers could not; empty: they
        could."""
        of_processes = cannot_own() if self._has_own_networks() else await self_test.refusal()
        return of_processes, cannot(in_container=True)

    def _has_own_networks(self) -> bool:
        runtime = self._workloads().runtimes.get(ProcessRuntime.name)
        return isinstance(runtime, ProcessRuntime) and runtime.has_own_networks

    async def join(self, spec: WorkloadSpec, progress: Progress) -> None:
        """Return once there is a link to every peer; raises RuntimeUnavailable, or Unavailable naming the missing."""
        if not spec.peers:
            return
        network = await self._raised(spec.workload_id, spec.address)
        progress("connecting", 0)
        try:
            async with asyncio.timeout(seconds(JOIN_NS)):
                while missing := network.missing(spec.peers):
                    progress("connecting", 1000 * (len(spec.peers) - len(missing)) // len(spec.peers))
                    network.changed.clear()
                    await network.changed.wait()
        except TimeoutError:
            said = "; ".join(f"{peer}: {why or 'did not come'}" for peer, why in network.missing(spec.peers).items())
            words = f"No connection to the other members of its cluster within {JOIN_NS // SECOND} s ({said[:500]})"
            raise Unavailable(f"{words}.", subject=spec.workload_id) from None

    def leave(self, workload_id: WorkloadId) -> None:
        """Removes the network of a workload that is gone, with its device."""
        network, running = self._networks.pop(workload_id, (None, None))
        if network is not None and running is not None:
            running.cancel()
            network.close()
            log.info("private_network_ended", workload_id=workload_id, stray=network.stray)

    def and_then(self, more: Callable[[WorkloadState], Awaitable[None]]) -> Callable[[WorkloadState], Awaitable[None]]:
        """Returns a function that removes the network of a workload that has ended, and then does `more`."""

        async def left(state: WorkloadState) -> None:
            self.leave(state.workload_id)
            await more(state)

        return left

    async def serve(self, asked: ChannelOpen, identity: TlsIdentity, hear: Hear, say: Say, moved: LinkTraffic) -> None:
        """Serve one link, from its key to its end. hear: the Master's next words, None at their end; say: to it; moved:
        to be written when the link is over.

        Raises LinkClosed at the end of what was up, and what was in the way of it: NotFound, RuntimeUnavailable,
        InvalidInput, Unavailable.
        """
        network = await self._raised(asked.workload_id, asked.cord_own)
        own = lone_identity(HOST_NAME)
        await say(own.certificate_pem)
        try:
            tls = await self._met(asked, identity, own, hear)
        except WindrowError as error:
            network.failed(asked.cord_peer, error.detail)
            raise
        link = PeerLink(tls, network.taker(asked.cord_peer), self._clock)
        network.attach(asked.cord_peer, link)
        log.info("peer_link_up", link=asked.tunnel_id, workload_id=asked.workload_id, peer=asked.cord_peer)
        why = "the Master ended it"
        try:
            await say(UP)
            await together(link.run(), self._tell(link, say))
        except LinkClosed as error:
            why = error.detail
            raise
        finally:
            network.detach(asked.cord_peer, link, why)
            tls.close()
            moved.received_bytes, moved.sent_bytes = link.received_bytes, link.sent_bytes
            counts = {"sent_bytes": link.sent_bytes, "received_bytes": link.received_bytes, "lost": link.lost}
            log.info("peer_link_over", link=asked.tunnel_id, reason=why, **counts)

    async def _tell(self, link: PeerLink, say: Say) -> None:
        while True:
            await self._clock.sleep_ns(TELL_NS)
            await say(f"{link.received_bytes} {link.sent_bytes}".encode())

    async def _met(self, asked: ChannelOpen, identity: TlsIdentity, own: TlsIdentity, hear: Hear) -> TunnelTls:
        """Its other end, once both have come to the Access and shown each other their keys."""
        is_server = packed(asked.cord_own) < packed(asked.cord_peer)
        where = asked.tunnel_address
        try:
            async with asyncio.timeout(KEY_S):
                peer_pem = await hear()
            if not peer_pem or len(peer_pem) > PEM_BYTES_MAX:
                raise LinkClosed("The other end sent no key.")
            context = mutual_context(own.key_pem, own.certificate_pem, peer_pem, is_server)
            async with asyncio.timeout(DIAL_S):
                access = await come(where, identity.ca_pem, asked.tunnel_grant)
            async with asyncio.timeout(MEET_S):
                raw = await joined(access)
        except (OSError, TimeoutError) as error:  # ssl.SSLError is one
            words = f"This host or its peer does not reach the relay for tunnels at {where}: "
            raise Unavailable(f"{words}{error or 'no answer'}.", subject=asked.tunnel_id) from error
        try:
            tls = TunnelTls(raw, context, None if is_server else HOST_NAME)
            async with asyncio.timeout(GREET_S):
                await tls.greet()
        except (OSError, TimeoutError) as error:
            raw.close()
            raise Unavailable(
                "The caller at the relay is not the other end of this link.", subject=asked.tunnel_id
            ) from error
        except BaseException:
            raw.close()
            raise
        return tls

    def _check_stays(self, workload_id: WorkloadId) -> None:
        """Raises Conflict where it is being ended."""
        state = self._workloads().state(workload_id)
        if state is None or state.phase in (WorkloadPhase.STOPPING, WorkloadPhase.FAILED):
            raise Conflict(f"Workload {workload_id} is being ended.", subject=workload_id)

    async def _raised(self, workload_id: WorkloadId, address: str) -> OverlayNetwork:
        """The network of a workload that is here, raised if it is not yet."""
        async with self._raising:
            runtime = self._workloads().runtime_of(workload_id)
            self._check_stays(workload_id)
            if (known := self._networks.get(workload_id)) is not None:
                return known[0]
            inside: Path | int | None = None
            if isinstance(runtime, DockerRuntime | ProcessRuntime):
                inside = await runtime.network(workload_id)
            if len(self._networks) >= NETWORKS_MAX:
                words = f"This host is in {NETWORKS_MAX} private networks already."
                raise RuntimeUnavailable(words, subject=workload_id)
            owned = None
            if inside is None:
                if not isinstance(runtime, ProcessRuntime):
                    raise RuntimeUnavailable(f"Workload {workload_id} is in no private network.", subject=workload_id)
                owned = partial(runtime.sockets, workload_id)
            device = await to_its_end(partial(Device, address, inside))
            try:
                self._check_stays(workload_id)  # it may have been ended meanwhile
            except Conflict:
                device.close()
                raise
            network = OverlayNetwork(address, owned, device)
            self._networks[workload_id] = network, self._spawn(network.run(), f"private network {workload_id}")
            log.info("private_network_up", workload_id=workload_id, address=address)
            return network
