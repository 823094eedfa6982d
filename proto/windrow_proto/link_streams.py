"""One open gRPC stream as a link of the ports, either end; and the channel options that both ends must agree on.

A cancelled `receive` loses nothing and leaves the link open; a cancelled `send` ends the link, since nobody knows
whether the message went.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from windrow_proto.errors import InvalidInput, LinkClosed, WindrowError, from_code
from windrow_proto.once import Once
from windrow_proto.units import MILLISECOND

T = TypeVar("T")

FRAME_BYTES_MAX: Final = 1_114_112
"""A sealed control message (1 MiB) with its frame around it."""
BATCH_BYTES_MAX: Final = 4 << 20
"""A trunk batch: what Access gathers (1 MiB) and the one frame that went over."""
CODE_KEY: Final = "windrow-code"
"""Trailing metadata that names the error of errors.py a stream ended with."""
RETRY_KEY: Final = "windrow-retry-after-ms"
"""Beside it: when another try makes sense, in whole milliseconds."""
RETRY_DIGITS_MAX: Final = 9
OPEN_KEY: Final = "windrow-open"
"""Initial metadata of a stream that was let in; a refusal has none, and may look like a beginning otherwise."""
READ_AHEAD: Final = 4
"""Messages a link takes in before they are asked for: enough that reading and using overlap, little beside a window."""
STREAM_ERRORS: Final = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)

_BOTH_ENDS: Final[tuple[tuple[str, int], ...]] = (
    # A frozen peer is noticed after time + timeout only if ping_timeout_ms is set, too (its default is a minute).
    # A second more than the heartbeats of a small fleet: as long as they come and are answered, nothing is pinged.
    ("grpc.keepalive_time_ms", 6000),
    ("grpc.keepalive_timeout_ms", 3000),
    ("grpc.http2.ping_timeout_ms", 3000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_metadata_size", 8192),
    ("grpc.absolute_max_metadata_size", 8192),
)
AGENT_OPTIONS: Final = (
    *_BOTH_ENDS,
    # Left on, one stalled reader holds 4 MB instead of this.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 262_144),
    ("grpc.max_receive_message_length", FRAME_BYTES_MAX),
    ("grpc.max_send_message_length", FRAME_BYTES_MAX),
)
TRUNK_OPTIONS: Final = (
    # Few and between our own processes: the window may follow the line, or a far Master would starve its Accesses.
    *_BOTH_ENDS,
    ("grpc.max_receive_message_length", BATCH_BYTES_MAX),
    ("grpc.max_send_message_length", BATCH_BYTES_MAX),
)
HANDSHAKE_TIMEOUT_MS: Final = 10_000
"""From a connection's acceptance to the end of its TLS handshake and HTTP/2 settings; gRPC's default is two minutes.
An agent dials for 5 s."""
SETTINGS_TIMEOUT_MS: Final = 10_000
"""For the acknowledgement of our HTTP/2 settings; a minute by default."""
PING_STRIKES_MAX: Final = 2
"""Pings sooner than they may come before the connection is ended; gRPC's default, here because we count on it."""
STREAMS_MAX: Final = 4
"""Open at once on one connection: an agent has one; without it gRPC lets 2**31 begin."""
SERVER_OPTIONS: Final = (
    # Without it our own keepalive is answered with GOAWAY too_many_pings.
    ("grpc.http2.min_ping_interval_without_data_ms", 4000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 4000),
    ("grpc.so_reuseport", 1),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
    ("grpc.http2.settings_timeout", SETTINGS_TIMEOUT_MS),
    ("grpc.http2.max_ping_strikes", PING_STRIKES_MAX),
)
CLIENT_OPTIONS: Final = (
    # Otherwise channels of one process share a connection, and probes and streams queue behind each other.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


class GrpcLink(Generic[T]):
    """One end of a stream of messages `T`. Made by link_grpc.py.

    One task reads ahead, a little: a message costs no task of its own, and a receive that is cancelled takes nothing
    with it. One receiver and one sender at a time.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Any]],
        write: Callable[[T], Awaitable[None]],
        drop: Callable[[], Awaitable[None]],
    ) -> None:
        """read, write: of the gRPC call or context. drop: ends the call and frees what it holds; called once."""
        self._read, self._write, self._drop = read, write, drop
        self._arrived: list[T] = []  # of READ_AHEAD at most; a deque takes half a kilobyte when it is empty
        self._reader: asyncio.Task[None] | None = None
        self._sender: asyncio.Task[Any] | None = None
        self._is_sender_freed = False
        self._awaited: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._fault: LinkClosed | InvalidInput | None = None
        self.closed = Once()

    @property
    def is_closed(self) -> bool:
        """True if it has ended."""
        return self.closed.is_set()

    async def send(self, message: T) -> None:
        """Hand over one message; waits while the peer is slow. Raises LinkClosed when the stream has ended."""
        self._raise_if_closed()
        self._sender = asyncio.current_task()
        try:
            await self._write(message)
        except STREAM_ERRORS as error:
            await self.end(words(error), named_error(error))
        except asyncio.CancelledError:
            if self._is_cancelled(self._sender):
                await self.close()
                raise
            await self.end("the call was cancelled")
        finally:
            self._sender = None
        self._raise_if_closed()

    def _is_cancelled(self, sender: "asyncio.Task[Any] | None") -> bool:
        """True if the caller of `send` was cancelled by somebody else than `end`, and not only the call inside."""
        if sender is None:
            return True
        if self._is_sender_freed:
            self._is_sender_freed = False
            return sender.uncancel() > 0
        return sender.cancelling() > 0

    async def receive(self) -> T:
        """The next message, in the order sent. Raises LinkClosed when the stream has ended; its `__cause__` is the
        WindrowError that the other side named, if it named one. Raises InvalidInput when no message came but noise."""
        while not self._arrived:
            self._raise_if_closed()
            loop = asyncio.get_running_loop()
            if self._reader is None:
                self._reader = loop.create_task(self._read_ahead())
            self._awaited = loop.create_future()
            try:
                await self._awaited
            finally:
                self._awaited = None
        message = self._arrived.pop(0)
        _wake(self._room)
        return message

    async def close(self) -> None:
        """End the stream both ways; safe to call twice."""
        self._arrived.clear()
        await self.end("this end closed it")

    async def end(self, reason: str, cause: BaseException | None = None, *, is_noise: bool = False) -> None:
        """Say why to whoever sends, or receives when all that has come is received, and end the call."""
        if self._fault is not None:
            return
        kind = InvalidInput if is_noise else LinkClosed
        self._fault = kind(f"The stream has ended: {reason}")
        self._fault.__cause__ = cause
        self.closed.set()
        current = asyncio.current_task()
        if self._reader is not None and self._reader is not current:
            self._reader.cancel()
        if self._sender is not None and self._sender is not current:
            self._is_sender_freed = self._sender.cancel()
        _wake(self._awaited)
        await self._drop()

    def _raise_if_closed(self) -> None:
        if self._fault is not None:
            raise type(self._fault)(self._fault.detail) from self._fault.__cause__  # by no name here: that is a ring

    async def _read_ahead(self) -> None:
        try:
            while (message := await self._read()) is not grpc.aio.EOF:
                if message is None:
                    raise DecodeError  # how gRPC's client, unlike its server, tells of what it could not read
                self._arrived.append(message)
                _wake(self._awaited)
                if len(self._arrived) >= READ_AHEAD:
                    self._room = asyncio.get_running_loop().create_future()
                    await self._room
                    self._room = None
            await self.end("the peer closed it")
        except STREAM_ERRORS as error:
            await self.end(words(error), named_error(error))
        except DecodeError:
            await self.end("what came is no message of this protocol", is_noise=True)
        except asyncio.CancelledError:
            await self.end("the call was cancelled")
            raise


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def named_error(error: BaseException) -> WindrowError | None:
    """The error of errors.py that the other side ended the call with, if it named one."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return None
    return named_in(error.trailing_metadata() or (), error.details() or "")


def named_in(metadata: Iterable[tuple[str, str | bytes]], details: str) -> WindrowError | None:
    """The same, from a call's trailing metadata and details."""
    said = {key: value if isinstance(value, str) else value.decode(errors="replace") for key, value in metadata}
    if CODE_KEY not in said:
        return None
    error, after_ms = from_code(said[CODE_KEY], details), said.get(RETRY_KEY, "")
    if after_ms.isascii() and after_ms.isdigit() and len(after_ms) <= RETRY_DIGITS_MAX:
        error.retry_after_ns = int(after_ms) * MILLISECOND
    return error


def named(error: WindrowError) -> tuple[tuple[str, str], ...]:
    """The trailing metadata that says so."""
    told = ((RETRY_KEY, str(-(-error.retry_after_ns // MILLISECOND))),) if error.retry_after_ns else ()
    return (CODE_KEY, error.code), *told


def words(error: BaseException) -> str:
    """Returns a description of the failure, for a log line and an error's detail."""
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {(error.details() or '')[:300]}"
    return f"{type(error).__name__}: {str(error)[:300]}"
