"""The renter's end of a tunnel: a connection to an Access with the Master's grant, then bytes both ways.

Asynchronous, on the standard library alone. Neither side is read further than the other takes it. After the upgrade
come records: four bytes of length and so many bytes, length 0 ends a direction; so that one can end before the other.
"""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Any, cast

from windrow.errors import ApiProblem, LocalCut, TunnelBroken, TunnelRefused

PATH = "/tunnel"
HEAD_BYTES = 4
RECORD_BYTES_MAX = 256 * 1024
ANSWER_BYTES_MAX = 8 * 1024
BUFFER_BYTES = 256 * 1024
"""What waits for one side to take it before the other is not read any more."""
DIAL_S = 15.0
JOIN_S = 20.0
"""For the Access to join us with the host; it gives up after ten itself."""
FLUSH_S = 10.0
"""For the other side to take what is under way when the tunnel ends."""
END = bytes(HEAD_BYTES)
HEAD_ENDS = b"\r\n\r\n"


class Records:
    """Takes records apart as they come."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self.is_ended = False

    def feed(self, data: bytes) -> list[memoryview]:
        """What these bytes carry; raises TunnelBroken for what is no record."""
        found: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            if self.is_ended:
                raise TunnelBroken("Bytes came after the tunnel's end.")
            if self._left:
                found.append(rest[: self._left])
                self._left -= len(found[-1])
                rest = rest[len(found[-1]) :]
                continue
            wanted = HEAD_BYTES - len(self._head)
            self._head += bytes(rest[:wanted])
            rest = rest[wanted:]
            if len(self._head) == HEAD_BYTES:
                self._left, self._head = int.from_bytes(self._head, "big"), b""
                self.is_ended = not self._left
                if self._left > RECORD_BYTES_MAX:
                    raise TunnelBroken(f"A record of {self._left} bytes came; the limit is {RECORD_BYTES_MAX}.")
        return found


class Local(asyncio.Protocol):
    """The side of this machine: a connection that was accepted, or standard input and output.

    Reads nothing until `start`.
    """

    def __init__(self) -> None:
        self.tunnel: Tunnel | None = None
        self.is_ended = False
        self._transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accepted."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(BUFFER_BYTES)
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Bytes for the workload."""
        assert self.tunnel is not None
        self.tunnel.outward(data)

    def eof_received(self) -> bool:
        """No more of them; what comes back still may."""
        self.is_ended = True
        if self.tunnel is not None:
            self.tunnel.outward(b"")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """It has gone."""
        self.gone.set()
        if self.tunnel is not None:
            self.tunnel.fail(LocalCut("The local connection was cut."))

    def pause_writing(self) -> None:
        """It does not take what it is sent."""
        if self.tunnel is not None:
            self.tunnel.pause()

    def resume_writing(self) -> None:
        """It took it."""
        if self.tunnel is not None:
            self.tunnel.resume()

    def start(self, tunnel: "Tunnel") -> None:
        """Read on, into this tunnel."""
        self.tunnel = tunnel
        self.resume()

    def write(self, data: memoryview) -> None:
        """Bytes of the workload's."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def finish(self) -> None:
        """There are no more of those."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def pause(self) -> None:
        """Read no more for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """End it once it took what was written."""
        if self._transport is not None:
            self._transport.close()
            asyncio.get_running_loop().call_later(FLUSH_S, self._transport.abort)

    def abort(self) -> None:
        """End it now."""
        if self._transport is not None:
            self._transport.abort()


class Tunnel(asyncio.Protocol):
    """One tunnel. `dial`, then `carry`."""

    def __init__(self, local: Local, on_bytes: Callable[[int, int], None] = lambda sent, received: None) -> None:
        """on_bytes: called with how many more bytes were sent and received."""
        self._local = local
        self._on_bytes = on_bytes
        self.sent_bytes = self.received_bytes = 0
        self._records = Records()
        self._head = b""
        self._is_open = self._is_end_told = False
        self._joined, self._over = asyncio.Event(), asyncio.Event()
        self._failure: Exception | None = None
        self._transport: asyncio.Transport | None = None

    async def dial(self, ticket: dict[str, Any]) -> None:
        """Connect with what the Master answered; returns when the host is there. Raises TunnelRefused, ApiProblem."""
        host, _, port = str(ticket["address"]).rpartition(":")
        context = ssl.create_default_context(cadata=ticket["ca_pem"])
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            async with asyncio.timeout(DIAL_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: self,
                    host.strip("[]"),
                    int(port),
                    ssl=context,
                    server_hostname=ticket["server_name"],
                    ssl_shutdown_timeout=FLUSH_S,
                )
        except (OSError, TimeoutError, ValueError) as error:  # ssl.SSLError is an OSError
            raise TunnelRefused(
                f"The Access at {ticket['address']} does not answer ({error or 'no answer in time'}). Its port for "
                "tunnels must be open from here; ask who runs this market, or try again."
            ) from error
        lines = (f"GET {PATH} HTTP/1.1", f"Host: {ticket['server_name']}", "Connection: Upgrade")
        shown = (f"Upgrade: {ticket['protocol']}", f"Authorization: Bearer {ticket['grant']}", "", "")
        self._write("\r\n".join((*lines, *shown)).encode())
        try:
            async with asyncio.timeout(JOIN_S):
                await self._joined.wait()
        except TimeoutError:
            self.abort()
            raise TunnelRefused("The Access did not join the tunnel in time. Try again.") from None
        if self._failure is not None and not self._is_open:
            raise self._failure

    async def carry(self) -> None:
        """Until both directions have ended; raises TunnelBroken when it was cut before."""
        self._local.start(self)
        if self._local.is_ended:
            self.outward(b"")
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        """End both sides now."""
        if self._transport is not None:
            self._transport.abort()
        self._local.abort()

    # --- the local side ----------------------------------------------------------------------------------------------

    def outward(self, data: bytes) -> None:
        """Bytes for the workload; none: this direction has ended."""
        self.sent_bytes += len(data)
        self._on_bytes(len(data), 0)
        self._write(len(data).to_bytes(HEAD_BYTES, "big") + data if data else END)
        if not data:
            self._end_if_done()

    def pause(self) -> None:
        """Nothing more can be taken here."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Now it can."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def fail(self, error: Exception) -> None:
        """It ends before both directions have."""
        if self._over.is_set():
            return
        self._failure = error
        self._over.set()
        self._joined.set()
        self.abort()

    # --- the Access's side -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        """The Access's answer, then records."""
        if not self._is_open:
            self._head += data
            head, found, rest = self._head.partition(HEAD_ENDS)
            if not found and len(self._head) <= ANSWER_BYTES_MAX:
                return
            if not head.startswith(b"HTTP/1.1 101 "):
                self.fail(_refusal(head, rest))
                return
            self._is_open, self._head, data = True, b"", rest
            self._joined.set()
        try:
            pieces = self._records.feed(data)
        except TunnelBroken as error:
            self.fail(error)
            return
        for piece in pieces:
            self.received_bytes += len(piece)
            self._on_bytes(0, len(piece))
            self._local.write(piece)
        if self._records.is_ended and not self._is_end_told:
            self._is_end_told = True
            self._local.finish()
            self._end_if_done()

    def connection_lost(self, error: Exception | None) -> None:
        """The Access or the host has cut it."""
        self.fail(TunnelBroken("The tunnel was cut: the cluster has ended, or its host has lost its connection."))

    def pause_writing(self) -> None:
        """The other side does not take more."""
        self._local.pause()

    def resume_writing(self) -> None:
        """It does again."""
        self._local.resume()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _end_if_done(self) -> None:
        if self._local.is_ended and self._records.is_ended:
            self._over.set()
            self._local.close()
            if self._transport is not None:
                self._transport.close()
                asyncio.get_running_loop().call_later(FLUSH_S, self._transport.abort)


def _refusal(head: bytes, body: bytes) -> Exception:
    words = head.split(b"\r\n", 1)[0][:100].decode("ascii", "replace")
    try:
        document = json.loads(body)
        return ApiProblem(int(document["status"]), document)
    except (ValueError, KeyError, TypeError):
        return TunnelRefused(f"The Access refused the tunnel: {words}.")
