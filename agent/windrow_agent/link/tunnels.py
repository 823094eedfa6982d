"""The host's end of a tunnel: a connection to a port of a workload and one to an Access, and bytes between the two.

Only what the Master asks for under its proof is dialled, and only where the runtime says that the workload itself
listens. Who comes through the Access sees the key of this one tunnel, and has to know its secret. Neither connection is
read further than the other takes it. A tunnel ends with the channel that asked for it.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from windrow_agent.runtimes.port import Runtime
from windrow_proto.errors import Conflict, DeadlineExceeded, LinkClosed, Unavailable
from windrow_proto.keys import TlsIdentity, lone_identity
from windrow_proto.messages import ChannelOpen
from windrow_proto.tunnel_dial import come, joined
from windrow_proto.tunnels import GRANT_LIFE_NS, HOST_NAME, SECRET_BYTES, judge_secret, market_error
from windrow_proto.units import seconds
from windrow_tunnel.errors import LocalCut, TunnelError
from windrow_tunnel.pump import Pump
from windrow_tunnel.seal import SEALED, SEED_BYTES, SealedEnd
from windrow_tunnel.sockets import server_context
from windrow_tunnel.tls import TunnelEnd, TunnelTls

log = structlog.get_logger()

CONNECT_S: Final = 5.0
"""For the workload to accept: it is on this very machine."""
DIAL_S: Final = 8.0
"""For the Access, its handshake included; whoever asked for the tunnel waits for that."""
GREET_S: Final = 10.0
"""For the renter to shake hands and say the tunnel's secret, once it is there."""
LATE_S: Final = 10.0
"""Beyond the life of the grant, for a renter whose answer is under way."""


class Tunnel:
    """One tunnel, from `serve` to its end."""

    def __init__(self) -> None:
        """bytes_in: went into the workload so far; bytes_out: came out of it."""
        self.bytes_in = self.bytes_out = 0

    async def serve(
        self,
        runtime: Runtime,
        asked: ChannelOpen,
        identity: TlsIdentity,
        ready: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """From dialling to the end of both directions. identity: what the host trusts; ready: called with the
        certificate to be shown, in PEM, when the renter may come.

        Raises Conflict (nothing of the workload's listens there), Unavailable, what the runtime raises, what the Access
        refuses it with, BadProof (whoever came is not the renter), or LinkClosed when it was cut. Cancelled, it ends at
        once.
        """
        inside = await _inside(runtime, asked)
        try:
            access = await _to_access(asked, identity)
            log.info("tunnel_ready", tunnel=asked.tunnel_id, workload_id=asked.workload_id, port=asked.port)
            own = lone_identity(HOST_NAME)
            outside = await _met(access, own, asked.tunnel_digest, ready)
            try:
                await Pump(inside, outside, self._count).run()
            except LocalCut:
                raise LinkClosed("The workload has cut the connection.") from None
            except TunnelError as error:
                raise market_error(error) from error
            finally:
                outside.close()
        finally:
            inside.close()
            log.info("tunnel_over", tunnel=asked.tunnel_id, bytes_in=self.bytes_in, bytes_out=self.bytes_out)

    def _count(self, sent: int, received: int) -> None:
        self.bytes_out += sent
        self.bytes_in += received


async def _inside(runtime: Runtime, asked: ChannelOpen) -> socket.socket:
    why = ""
    for host, port in await runtime.reach(asked.workload_id, asked.port):
        try:
            async with asyncio.timeout(CONNECT_S):
                return await runtime.dial(asked.workload_id, host, port)
        except (OSError, TimeoutError) as error:
            why = str(error) or "no answer"
    words = f"Nothing listens on port {asked.port} of this workload ({why[:100]})."
    raise Conflict(f"{words} Start a server there, or name another port.", subject=asked.workload_id)


async def _to_access(asked: ChannelOpen, identity: TlsIdentity) -> ssl.SSLSocket:
    try:
        async with asyncio.timeout(DIAL_S):
            return await come(asked.tunnel_address, identity.ca_pem, asked.tunnel_grant)
    except (OSError, TimeoutError) as error:  # ssl.SSLError is one
        words = f"The host does not reach its relay for tunnels at {asked.tunnel_address}: {error or 'no answer'}."
        raise Unavailable(f"{words} Its network must let it out to this port.", subject=asked.tunnel_id) from error


async def _met(
    access: ssl.SSLSocket, own: TlsIdentity, digest: bytes, ready: Callable[[bytes], Awaitable[None]]
) -> TunnelEnd:
    """The renter's connection, once it is there and has said the secret."""
    try:
        await ready(own.certificate_pem)
        async with asyncio.timeout(seconds(GRANT_LIFE_NS) + LATE_S):
            raw = await joined(access)
    except TimeoutError:
        raise DeadlineExceeded("No renter connected to this tunnel in time.") from None
    except OSError as error:
        raise LinkClosed("The relay has cut the tunnel before the renter came.") from error
    finally:
        access.close()
    try:
        async with asyncio.timeout(GREET_S):
            try:
                return await _greeted(raw, own, digest)
            except BaseException:
                raw.close()
                raise
    except (OSError, TimeoutError) as error:
        raise LinkClosed("The caller through the relay did not greet as a renter does.") from error


async def _greeted(raw: socket.socket, own: TlsIdentity, digest: bytes) -> TunnelEnd:
    context = server_context(own.key_pem, own.certificate_pem)
    context.set_alpn_protocols([SEALED])
    outside = TunnelTls(raw, context)
    await outside.greet()
    judge_secret(await _all(outside, SECRET_BYTES), digest)
    if not outside.agreed(SEALED):
        return outside
    seed = await _all(outside, SEED_BYTES)
    return SealedEnd(raw, seed, outside.rest(), is_host=True)


async def _all(outside: TunnelTls, count: int) -> bytes:
    said = b""
    while len(said) < count:
        said += await outside.hear(count - len(said))
    return said
