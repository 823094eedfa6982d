"""Guards a listener of uvicorn: admits connections before their handshake, and ends those that only take up a place.

accept ──▶ admission.py ──▶ TLS ──▶ head ──▶ body ──▶ answer ──▶ next head
          refused: closed   10 s    10 s     at 16 KiB/s or more, in averages of 30 s
"""

import asyncio
import errno
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import h11
import structlog
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from uvicorn.server import ServerState

from windrow_master.app.admission import Admission, Key, Patience, Stage
from windrow_proto.units import SECOND

REFUSED_AT_ONCE: Final = 64
"""Before others on the loop have their turn."""
LINGER_S: Final = 1.0
"""For the last words to whoever was too slow."""
TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 54\r\n\r\nToo many connections are open. Try again in a moment.\n"
)

log = structlog.get_logger("windrow_master")


class Guest(socket.socket):
    """An accepted connection. It counts until it is closed, whoever closes it."""

    def __init__(self, plain: socket.socket, on_close: Callable[[], None]) -> None:
        """Takes the place of `plain`."""
        super().__init__(plain.family, plain.type, plain.proto, fileno=plain.detach())
        self._on_close = on_close

    def cut(self) -> None:
        """End it: its transport finds that out and closes it."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it and let another have its place."""
        self._on_close()
        super().close()


class GuardedSocket(socket.socket):
    """A listening socket that accepts only whom its admission lets in. Used on the loop."""

    def __init__(self, listening: socket.socket, admission: Admission, patience: Patience, *, is_plain: bool) -> None:
        """Takes the place of `listening`. is_plain: HTTP without TLS, so that who is refused can be told."""
        super().__init__(fileno=listening.detach())
        self.setblocking(False)
        self._admission, self._patience, self._is_plain = admission, patience, is_plain
        self._guests: dict[Key, Guest] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self.cut: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Connections that are open."""
        return self._admission.count

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is admitted. Raises BlockingIOError when there is none."""
        for _ in range(REFUSED_AT_ONCE):
            plain, address = super().accept()
            key: Key = tuple(address)
            verdict = self._admission.come(key, str(address[0]), time.monotonic_ns())
            if not verdict.is_admitted:
                self._refuse(plain)
                continue
            if verdict.goes is not None:
                self.end(verdict.goes, "another came")
            guest = self._guests[key] = Guest(plain, partial(self._gone, key))
            handshake_s = self._patience.head_ns / SECOND
            self._timers[key] = asyncio.get_running_loop().call_later(handshake_s, self.end, key, "no handshake")
            return guest, address
        raise BlockingIOError(errno.EAGAIN, "those who came were refused")

    def serves(self, key: Key) -> None:
        """The handshake is over: from here on the protocol watches."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def stage(self, key: Key, stage: Stage) -> None:
        """Note whose turn it is now on a connection."""
        self._admission.stage(key, stage)

    def end(self, key: Key, reason: str) -> None:
        """Cut a connection."""
        self.cut[reason] += 1
        guest = self._guests.get(key)
        if guest is not None:
            guest.cut()

    def _gone(self, key: Key) -> None:
        self.serves(key)
        if self._guests.pop(key, None) is not None:
            self._admission.leave(key)

    def _refuse(self, plain: socket.socket) -> None:
        self.cut["too many"] += 1
        with plain, suppress(OSError):
            if self._is_plain:
                plain.setblocking(False)
                plain.send(TOO_MANY)


class GuardedConfig(uvicorn.Config):
    """uvicorn's settings with the guarded socket, for its protocols."""

    def __init__(self, app: ASGIApp, listening: GuardedSocket, patience: Patience, **settings: Any) -> None:
        super().__init__(OneLength(app), http=GuardedProtocol, **settings)
        self.listening, self.patience = listening, patience


class OneLength:
    """Refuses a request that says its length in two ways: what one reads as a body another reads as a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        names = [name for name, _ in scope.get("headers", ()) if name in {b"content-length", b"transfer-encoding"}]
        if len(set(names)) < 2:
            # What broke off has said why in the log, and uvicorn closes a connection whose answer has no end.
            with suppress(ConnectionAbortedError):
                await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        body: Message = {"type": "http.response.body", "body": b"Content-Length and Transfer-Encoding exclude another."}
        await send(body)


class CountedTransport(asyncio.Transport):
    """A transport that counts what was written to it; all else is the inner one's."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self.written = 0

    def write(self, data: Any) -> None:
        """Count and pass on."""
        self.written += len(data)
        self._inner.write(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)


class GuardedProtocol(H11Protocol):
    """One connection: each wait for its peer has an end."""

    def __init__(
        self,
        config: GuardedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._listening, self._patience = config.listening, config.patience
        self._key: Key = ()
        self._counted: CountedTransport
        self._head_timer: asyncio.TimerHandle | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        self._received = self._answered_at = 0
        self._before = (0, 0, 0)
        self._moved: list[int] = []
        self._is_ending = self._is_upgraded = False

    # --- what asyncio and uvicorn call --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """After the handshake, if there is one."""
        self._counted = CountedTransport(transport)
        super().connection_made(self._counted)
        self._key = tuple(transport.get_extra_info("peername") or ())
        self._listening.serves(self._key)
        self._judge(is_new=True)

    def data_received(self, data: bytes) -> None:
        """More of a head or a body."""
        self._received += len(data)
        super().data_received(data)
        if self._is_upgraded:
            return
        self._judge()
        if self._is_answered() and self._received - self._answered_at > self._patience.discarded_bytes:
            self._end("a body whose request was answered")

    def on_response_complete(self) -> None:
        """The answer is handed over; the rest of the body is read and dropped, so that its sender sees the answer."""
        self._answered_at = self._received
        super().on_response_complete()
        self._judge()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """From here on it is GuardedWebSocket's, and keeps its place."""
        self._is_upgraded = True
        self._stop_timers()
        self._listening.stage(self._key, Stage.BUSY)
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """The peer reads more slowly than we write."""
        super().pause_writing()
        self._judge()

    def resume_writing(self) -> None:
        """It has read what waited."""
        super().resume_writing()
        self._judge()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop_timers()
        super().connection_lost(exc)

    # --- whose turn it is ---------------------------------------------------------------------------------------------

    def _judge(self, *, is_new: bool = False) -> None:
        waits_for_head = self.conn.their_state is h11.IDLE
        has_begun = is_new or bool(self.conn.trailing_data[0])
        if not waits_for_head:
            self._stop_head_timer()
        elif has_begun and self._head_timer is None:
            self._head_timer = self.loop.call_later(self._patience.head_ns / SECOND, self._head_is_late)
        is_slow = self._waits_for_body() or self.flow.write_paused or self.transport.is_closing()
        stage = Stage.SLOW if is_slow else Stage.WAITING if waits_for_head else Stage.BUSY
        self._listening.stage(self._key, stage)
        if stage is not Stage.WAITING and self._look_timer is None:
            self._before = self._totals()
            self._look_timer = self.loop.call_later(self._patience.look_ns / SECOND, self._look)

    def _waits_for_body(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused

    def _is_answered(self) -> bool:
        return self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY

    def _totals(self) -> tuple[int, int, int]:
        """Bytes that came, bytes that left, bytes that wait to leave."""
        waiting = self._counted.get_write_buffer_size()
        return self._received, self._counted.written - waiting, waiting

    def _look(self) -> None:
        """Count the bytes that moved since the last look, where it was the peer's turn to move some."""
        self._look_timer = None
        came_before, left_before, waited_before = self._before
        came, left, waits = self._totals()
        is_behind = waits > 0 and left - left_before < waited_before
        if is_behind:
            self._moved.append(left - left_before)
        elif self._waits_for_body():
            self._moved.append(came - came_before)
        else:
            self._moved.clear()
        if self._patience.is_too_slow(self._moved):
            self._end("a slow reader" if is_behind else "a slow body")
            return
        del self._moved[: -self._patience.looks]
        self._judge()

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._end("a slow head")

    def _stop_timers(self) -> None:
        self._stop_head_timer()
        if self._look_timer is not None:
            self._look_timer.cancel()
            self._look_timer = None

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end(self, reason: str) -> None:
        """Say why, if no answer has begun, and end it. More that comes meanwhile does not put that off."""
        if self._is_ending:
            return
        self._is_ending = True
        self._listening.cut[reason] += 1
        log.info("connection_ended", reason=reason, peer=str(self._key[0]) if self._key else "")
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self.transport.is_closing():
            head = [(b"content-type", b"text/plain"), (b"connection", b"close")]
            text = b"The request came too slowly. Nothing was changed.\n"
            for event in (h11.Response(status_code=408, headers=head), h11.Data(data=text), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.flow.resume_writing()
        if self._look_timer is not None:
            self._look_timer.cancel()
        self._look_timer = self.loop.call_later(LINGER_S, self.transport.abort)


class GuardedWebSocket(WSProtocol):
    """One WebSocket, whose peer keeps us from nothing: who reads no more is read no more, and is cut off at the end."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """After the upgrade."""
        super().connection_made(ClosedInTime(transport))

    def pause_writing(self) -> None:
        """It reads more slowly than we write: no more is taken from it, or answers to its pings would pile up."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """It has read what waited."""
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()


class ClosedInTime(CountedTransport):
    """A transport that waits only so long at its end for a peer to take what was written."""

    def close(self) -> None:
        """Close it, and abort it after LINGER_S."""
        if not self.is_closing():
            asyncio.get_running_loop().call_later(LINGER_S, self.abort)
        super().close()
