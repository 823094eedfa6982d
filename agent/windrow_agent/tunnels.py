"""The host's end of a tunnel: a connection to a port of a workload and one to an Access, and bytes between the two.

Only what the Master asks for under its proof is dialled, and only where the runtime says that the workload itself
listens. Neither connection is read further than the other takes it. A tunnel ends with the channel that asked for it.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from windrow_agent.runtimes.port import Runtime
from windrow_proto.connection import FLUSH_S, Connection
from windrow_proto.errors import Conflict, DeadlineExceeded, InvalidInput, LinkClosed, Unavailable, WindrowError
from windrow_proto.keys import SERVER_NAMES, TlsIdentity
from windrow_proto.messages import ChannelOpen
from windrow_proto.tunnels import END, GRANT_LIFE_NS, HEAD_BYTES_MAX, RecordReader, judge_answer, record, request
from windrow_proto.units import seconds

log = structlog.get_logger()

CONNECT_S: Final = 5.0
"""For the workload to accept: it is on this very machine."""
DIAL_S: Final = 8.0
"""For the Access, its handshake included; whoever asked for the tunnel waits for that."""
HEAD_ENDS: Final = b"\r\n\r\n"


class Tunnel:
    """One tunnel. `dial`, then `carry`; `abort` in any case at the end."""

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = 0
        self.joined, self.over = asyncio.Event(), asyncio.Event()
        self.failure: WindrowError | None = None
        self._inside, self._outside = _Inside(self), _Outside(self)

    async def dial(self, runtime: Runtime, asked: ChannelOpen, identity: TlsIdentity) -> None:
        """Open both connections. Raises Conflict (nothing of the workload's listens there), Unavailable and what
        the runtime raises."""
        await self._dial_inside(await runtime.reach(asked.workload_id, asked.port), asked)
        await self._dial_outside(asked, identity)

    async def _dial_inside(self, addresses: tuple[tuple[str, int], ...], asked: ChannelOpen) -> None:
        why = ""
        for host, port in addresses:
            try:
                async with asyncio.timeout(CONNECT_S):
                    await asyncio.get_running_loop().create_connection(lambda: self._inside, host, port)
                    return
            except (OSError, TimeoutError) as error:
                why = str(error) or "no answer"
        words = f"Nothing listens on port {asked.port} of this workload ({why[:100]})."
        raise Conflict(f"{words} Start a server there, or name another port.", subject=asked.workload_id)

    async def _dial_outside(self, asked: ChannelOpen, identity: TlsIdentity) -> None:
        host, _, port = asked.tunnel_address.rpartition(":")
        if not port.isdigit():
            raise InvalidInput(f"{asked.tunnel_address!r} is no address of an Access.")
        context = ssl.create_default_context(cadata=identity.ca_pem.decode())
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            async with asyncio.timeout(DIAL_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: self._outside,
                    host.strip("[]"),
                    int(port),
                    ssl=context,
                    server_hostname=SERVER_NAMES["access"],
                    ssl_shutdown_timeout=FLUSH_S,
                )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is one
            words = f"The host does not reach its Access for tunnels at {asked.tunnel_address}: {error or 'no answer'}."
            raise Unavailable(f"{words} Its network must let it out to this port.", subject=asked.tunnel_id) from error
        self._outside.write(request(asked.tunnel_grant))

    async def carry(self) -> None:
        """Until both directions have ended. Raises what the Access refused it with, or LinkClosed when it was cut."""
        try:
            async with asyncio.timeout(seconds(GRANT_LIFE_NS) + FLUSH_S):
                await self.joined.wait()
        except TimeoutError:
            raise DeadlineExceeded("No renter came for this tunnel.") from None
        await self.over.wait()
        if self.failure is not None:
            raise self.failure

    def abort(self) -> None:
        """Let go of both connections now."""
        self._inside.abort()
        self._outside.abort()

    # --- called by the two connections -----------------------------------------------------------------------------

    def begin(self) -> None:
        """The renter is there."""
        self.joined.set()
        self._inside.resume()

    def outward(self, data: bytes) -> None:
        """Bytes of the workload; none: it has ended its direction."""
        self.bytes_out += len(data)
        self._outside.write(record(data) if data else END)
        if not data:
            self._finish_if_done()

    def inward(self, data: memoryview) -> None:
        """Bytes of the renter's."""
        self.bytes_in += len(data)
        self._inside.write(data)

    def inward_end(self) -> None:
        """The renter has ended its direction."""
        self._inside.finish()
        self._finish_if_done()

    def hold(self, one: "_Connection") -> None:
        """This connection does not take more: the other is not read."""
        (self._outside if one is self._inside else self._inside).pause()

    def go_on(self, one: "_Connection") -> None:
        """It does again."""
        (self._outside if one is self._inside else self._inside).resume()

    def fail(self, error: WindrowError) -> None:
        """It ends here, before both directions have."""
        if not self.over.is_set():
            self.failure = error
            self._over()
            self.abort()

    def _finish_if_done(self) -> None:
        if self._inside.is_finished and self._outside.reader.is_ended:
            self._over()
            self._inside.close()
            self._outside.close()

    def _over(self) -> None:
        self.over.set()
        self.joined.set()


class _Connection(Connection):
    """What both have in common."""

    def __init__(self, tunnel: Tunnel) -> None:
        super().__init__()
        self._tunnel = tunnel

    def pause_writing(self) -> None:
        self._tunnel.hold(self)

    def resume_writing(self) -> None:
        self._tunnel.go_on(self)


class _Inside(_Connection):
    """To the workload; not read until the renter is there."""

    is_finished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.pause()

    def data_received(self, data: bytes) -> None:
        self._tunnel.outward(data)

    def eof_received(self) -> bool:
        self.is_finished = True
        self._tunnel.outward(b"")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._tunnel.fail(LinkClosed("The workload has cut the connection."))


class _Outside(_Connection):
    """To the Access: its answer, then records."""

    def __init__(self, tunnel: Tunnel) -> None:
        super().__init__(tunnel)
        self.reader = RecordReader()
        self._head = b""
        self._is_open = self._is_end_told = False

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            self._head += data
            head, found, rest = self._head.partition(HEAD_ENDS)
            if not found and len(self._head) <= HEAD_BYTES_MAX:
                return
            try:
                judge_answer(head, rest)
            except WindrowError as error:
                self._tunnel.fail(error)
                return
            self._is_open, self._head, data = True, b"", rest
            self._tunnel.begin()
        try:
            for piece in self.reader.feed(data):
                self._tunnel.inward(piece)
        except InvalidInput as error:
            self._tunnel.fail(error)
            return
        if self.reader.is_ended and not self._is_end_told:
            self._is_end_told = True
            self._tunnel.inward_end()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._tunnel.fail(LinkClosed("The renter or the Access has cut the tunnel."))


async def serve(
    tunnel: Tunnel, runtime: Runtime, asked: ChannelOpen, identity: TlsIdentity, ready: Callable[[], Awaitable[None]]
) -> None:
    """One tunnel to its end. identity: what the host trusts; ready: called when the renter may come. Raises what `dial`
    and `carry` do; cancelled, it ends at once."""
    try:
        await tunnel.dial(runtime, asked, identity)
        log.info("tunnel_ready", tunnel=asked.tunnel_id, workload_id=asked.workload_id, port=asked.port)
        await ready()
        await tunnel.carry()
    except BaseException:
        tunnel.abort()
        raise
    finally:
        log.info("tunnel_over", tunnel=asked.tunnel_id, bytes_in=tunnel.bytes_in, bytes_out=tunnel.bytes_out)
