"""A Dialer that costs little: the hosts of `relay`'s cold storm, whose load generator shares a machine with the Access.

What the Access sees is what the shipped dialler shows it: TCP, TLS 1.3 with the host's own certificate, HTTP/2, the
same call with the same fields. Under it are bench/_tls.py and bench/_http2.py instead of a channel of gRPC. It takes
what small messages need: no flow control, no pings of its own (an Access pings who is silent, and is answered).
"""

import asyncio
import socket
import time

from bench import _http2 as http2
from bench._tls import Shown, Tls, TlsError
from windrow_proto import link_streams as streams
from windrow_proto.errors import LinkClosed, WindrowError
from windrow_proto.keys import SERVER_NAMES, TlsIdentity
from windrow_proto.link_grpc import CONNECT, PING
from windrow_proto.link_warm import NONCE_BYTES, answer_of
from windrow_proto.ports import BandwidthLink, FrameLink, PingAnswer, WarmLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2, services_pb2

READ_BYTES = 1 << 16
NAME = SERVER_NAMES["access"]
SETTINGS = {2: 0, 3: 0, 4: 262_144, 6: 8_192, 65_027: 1}
"""Pushes, streams of the server, window, fields in all, fields of plain bytes: gRPC's own, with AGENT_OPTIONS."""


def fields_of(method: str) -> tuple[tuple[str, str], ...]:
    """Returns the headers that gRPC for Python sends at the beginning of a call."""
    return (
        (":scheme", "https"),
        (":method", "POST"),
        (":authority", NAME),
        (":path", method),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "grpc-python-asyncio/1.85.1 grpc-c/58.0.0 (linux; chttp2)"),
        ("grpc-accept-encoding", "identity, deflate, gzip"),
    )


class Connection:
    """One connection, with one call at a time. It is also that call's link of frames."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._is_settled = self._is_open = False
        self._taken, self._body = bytearray(), bytearray()
        self._fields = http2.Fields()
        self._arrived: list[bytes] = []
        self._fault: LinkClosed | None = None
        self._awaited: asyncio.Future[None] | None = None
        self._stream = -1

    @property
    def is_closed(self) -> bool:
        """True if it has ended."""
        return self._fault is not None

    async def open(self, address: str) -> None:
        """Connect, shake hands and hear the other end's settings, as gRPC's channel does before its first call."""
        host, _, port = address.rpartition(":")
        try:
            await self._loop.sock_connect(self._socket, (host, int(port)))
        except OSError as error:
            self._end(f"Could not connect: {error}")
        else:
            self._loop.add_reader(self._socket.fileno(), self._readable)
            self._flush()
        while not self._is_settled:
            await self._news()

    def begin(self, method: str, first: bytes | None = None) -> None:
        """Begin a call. first: all that there is to say."""
        self._stream += 2
        self._is_open = False
        self._body.clear()
        self._say(http2.call(self._stream, fields_of(method)))
        if first is not None:
            self._say(http2.message(self._stream, first, is_last=True))

    async def let_in(self) -> None:
        """Until the stream is open; raises LinkClosed, whose cause is what the Access named."""
        while not self._is_open:
            await self._news()

    async def message(self) -> bytes:
        """The next message."""
        while not self._arrived:
            await self._news()
        return self._arrived.pop(0)

    async def send(self, frame: link_pb2.Frame) -> None:
        """As every FrameLink."""
        if self._fault is not None:
            raise self._fault
        self._say(http2.message(self._stream, frame.SerializeToString()))

    async def receive(self) -> link_pb2.Frame:
        """As every FrameLink."""
        return link_pb2.Frame.FromString(await self.message())

    async def close(self) -> None:
        """As every FrameLink."""
        self._end("this end closed it")

    async def _news(self) -> None:
        if self._fault is not None:
            raise self._fault
        self._awaited = self._loop.create_future()
        await self._awaited

    def _wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def _end(self, reason: str, cause: WindrowError | None = None) -> None:
        if self._fault is None:
            self._fault = LinkClosed(reason)
            self._fault.__cause__ = cause
            if self._socket.fileno() >= 0:
                self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._wake()

    # --- what comes and goes -------------------------------------------------------------------------------------

    def _readable(self) -> None:
        try:
            if not (came := self._socket.recv(READ_BYTES)):
                self._end("the peer closed it")
                return
            was_shaken = self._tls.is_shaken
            self._taken += self._tls.feed(came)
            if not was_shaken and self._tls.is_shaken:
                self._say(http2.PREFACE + http2.settings(SETTINGS))
            for kind, flags, stream, body in http2.frames(self._taken):
                self._on_frame(kind, flags, stream, body)
        except BlockingIOError:
            pass
        except (OSError, TlsError, http2.Malformed) as error:
            self._end(f"{type(error).__name__}: {error}")

    def _say(self, plain: bytes) -> None:
        if self._fault is None:
            self._tls.seal(plain)
            self._flush()

    def _flush(self) -> None:
        data = self._tls.out
        try:
            if data and self._socket.send(data) != len(data):
                self._end("a host's few bytes did not fit into its socket")
        except OSError as error:
            self._end(str(error))
        data.clear()

    def _on_frame(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == http2.SETTINGS and not flags & http2.ACK:
            self._tls.seal(http2.frame(http2.SETTINGS, http2.ACK, 0))  # it goes with the call that waits for it
            if self._is_settled:
                self._flush()
            self._is_settled = True
            self._wake()
        elif kind == http2.PING and not flags & http2.ACK:
            self._say(http2.frame(http2.PING, http2.ACK, 0, body))
        elif kind == http2.GO_AWAY:
            self._end("the peer goes away")
        elif kind == http2.HEADERS:
            fields = self._fields.read(body)
            if stream == self._stream:
                self._on_fields(fields, is_last=bool(flags & http2.END_STREAM))
        elif stream == self._stream and kind == http2.RESET:
            self._end("the peer reset it")
        elif stream == self._stream and kind == http2.DATA:
            self._body += body
            self._arrived += http2.messages(self._body)
            self._wake()

    def _on_fields(self, fields: list[tuple[str, str]], *, is_last: bool) -> None:
        said = dict(fields)
        if is_last and said.get("grpc-status") != "0":
            details = said.get("grpc-message", "")
            self._end(f"status {said.get('grpc-status')}: {details}", streams.named_in(fields, details))
        self._is_open |= streams.OPEN_KEY in said
        self._wake()


class LeanDialer:
    """A host's Dialer. It opens streams and pings, which is all that a host with one Access does at first."""

    def __init__(self, identity: TlsIdentity) -> None:
        self._shown = Shown(identity)
        self._links: list[Connection] = []

    async def connect(self, address: str, deadline_ns: int) -> FrameLink:
        """As GrpcDialer's."""
        connection = self._connection()
        try:
            async with asyncio.timeout(max(0, deadline_ns) / SECOND):
                await connection.open(address)
                connection.begin(CONNECT)
                await connection.let_in()
        except TimeoutError:
            await connection.close()
            raise LinkClosed(f"No answer within {deadline_ns / SECOND:.1f} s.") from None
        except BaseException:
            await connection.close()
            raise
        self._links = [link for link in self._links if not link.is_closed] + [connection]
        return connection

    def _connection(self) -> Connection:
        return Connection(Tls(self._shown, NAME, "h2"))

    async def ping(self, address: str, deadline_ns: int) -> PingAnswer:
        """As GrpcDialer's: three calls on a connection of their own."""
        connection, times = self._connection(), list[float]()
        try:
            async with asyncio.timeout(max(0, deadline_ns) / SECOND):
                await connection.open(address)
                for number in range(3):
                    nonce = number.to_bytes(NONCE_BYTES, "big")
                    begin = time.monotonic()
                    connection.begin(PING, services_pb2.PingRequest(nonce=nonce).SerializeToString())
                    reply = services_pb2.PingReply.FromString(await connection.message())
                    times.append(time.monotonic() - begin)
        except TimeoutError:
            raise LinkClosed(f"No answer to a ping within {deadline_ns / SECOND:.1f} s.") from None
        finally:
            await connection.close()
        return answer_of(reply, int(min(times[1:]) * SECOND))

    async def warm(self, address: str, deadline_ns: int) -> WarmLink:
        """No storm has a second Access."""
        raise LinkClosed("This dialer keeps no connection warm.")

    async def bandwidth(self, address: str, deadline_ns: int) -> BandwidthLink:
        """Nobody measures in a storm."""
        raise LinkClosed("This dialer measures nothing.")

    async def close(self) -> None:
        """As every Dialer."""
        links, self._links = self._links, []
        for link in links:
            await link.close()
