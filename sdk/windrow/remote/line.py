"""The connection to one worker: opens, carries frames both ways, and notices when the worker has gone."""

import asyncio
import contextlib
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final

from windrow import tunnel
from windrow.errors import CannotSend, LineBroken, WindrowClientError, WorkerRefused, WrongSecret
from windrow.nearest import Nearest
from windrow.remote.memory import Memory
from windrow.worker import frames
from windrow.worker.frames import PIECE_BYTES, BadFrame, Frame, Kind
from windrow_tunnel.tls import TunnelEnd

FRAMES_WAITING: Final = 256
"""Of one exchange, not yet taken; then the line is not read further."""

Way = Callable[[], AbstractAsyncContextManager[socket.socket]]
"""Gives a connection of this machine that ends at the worker."""


def through_tunnel(open_tunnel: tunnel.Ask, memory: Memory, nearest: Nearest) -> Way:
    """By a tunnel to the port; open_tunnel: asks the Master for it, blocking. Meanwhile the Access that the worker was
    last reached by is approached: two round trips less where it is still the one."""

    @asynccontextmanager
    async def way() -> AsyncIterator[socket.socket]:
        met = await _asked(partial(open_tunnel, nearest.wish()), memory)
        ticket, host = await tunnel.reach(open_tunnel, nearest, *met)
        with contextlib.closing(host):
            memory.reached(ticket)
            near, far = socket.socketpair()
            with far:
                far.setblocking(False)
                near.setblocking(False)
                async with asyncio.TaskGroup() as group:
                    carrying = group.create_task(_carry(far, host))
                    try:
                        yield near
                    finally:
                        carrying.cancel()

    return way


async def _asked(
    open_tunnel: Callable[[], dict[str, Any]], memory: Memory
) -> tuple[dict[str, Any], ssl.SSLSocket | None]:
    """A ticket, and the connection to its Access where there is one already."""
    with contextlib.closing(_Early(memory.access)) as early:
        async with asyncio.TaskGroup() as group:
            approaching = group.create_task(early.approach())
            ticket = await asyncio.to_thread(open_tunnel)
            if not early.is_for(ticket):
                approaching.cancel()
        return ticket, early.taken(ticket)


class _Early:
    """A connection to the Access that was the right one last time."""

    def __init__(self, where: dict[str, Any] | None) -> None:
        self._where = where
        self._found: ssl.SSLSocket | None = None

    async def approach(self) -> None:
        """Connect, where that can be done."""
        if self._where is not None:
            with contextlib.suppress(WindrowClientError, KeyError, TypeError):  # the ticket says where it is now
                self._found = await tunnel.approach(self._where)

    def is_for(self, ticket: dict[str, Any]) -> bool:
        """True if the ticket is for this Access."""
        return self._where is not None and all(ticket[name] == said for name, said in self._where.items())

    def taken(self, ticket: dict[str, Any]) -> ssl.SSLSocket | None:
        """Hands the connection over to the caller, where it is of use for this ticket."""
        if not self.is_for(ticket):
            return None
        found, self._found = self._found, None
        return found

    def close(self) -> None:
        """End what was not taken."""
        if self._found is not None:
            self._found.close()


async def _carry(far: socket.socket, host: TunnelEnd) -> None:
    with contextlib.suppress(WindrowClientError):  # whoever reads the other end sees its end
        await tunnel.carry(far, host, lambda _sent, _came: None)
    far.close()


class Exchange:
    """One request and all that comes back for it."""

    def __init__(self, line: "Line", number: int) -> None:
        self._line, self.number = line, number
        self.came: asyncio.Queue[Frame | None] = asyncio.Queue(FRAMES_WAITING)

    async def say(self, kind: Kind, record: dict[str, Any], body: bytes = b"") -> None:
        """A frame that holds a record, after its body; raises LineBroken, and CannotSend for too long a record."""
        asked, last = frames.encode_record(kind, self.number, record), b""
        if len(asked) > frames.FRAME_BYTES_MAX:
            raise CannotSend(f"What is said with a {kind.name} is {len(asked)} bytes; send such things as arguments.")
        for at in range(0, len(body), PIECE_BYTES):
            await self._line.send(last)
            last = frames.encode(Kind.DATA, self.number, body[at : at + PIECE_BYTES])
        await self._line.send(last + asked)

    async def next(self) -> Frame:
        """Returns the next frame; raises LineBroken, and WorkerRefused for a refusal."""
        if self._line.is_over and self.came.empty():
            raise LineBroken(self._line.why)
        frame = await self.came.get()
        if frame is None:
            raise LineBroken(self._line.why)
        if frame.kind is Kind.REFUSED:
            refusal = frame.record()
            raise WorkerRefused(str(refusal.get("code")), str(refusal.get("text")))
        return frame


class Line:
    """A connection. `run` meets the worker and serves until it has gone; `met` then tells."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._exchanges: dict[int, Exchange] = {}
        self._number = 0
        self._writer: asyncio.StreamWriter | None = None
        self.met: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.why = "The connection to the worker ended."
        self.is_over = False

    async def run(self, way: Way) -> None:
        """To its end. What goes wrong before the worker was met is raised by `met`."""
        try:
            async with way() as connection:
                reader, self._writer = await asyncio.open_connection(sock=connection, limit=2 * frames.FRAME_BYTES_MAX)
                try:
                    async with asyncio.timeout(frames.HELLO_S):
                        await self._meet(reader)
                    self.met.set_result(None)
                    await self._serve(reader)
                finally:
                    self._writer.close()
        except* (OSError, EOFError, TimeoutError, BadFrame) as group:
            self.why = f"The connection to the worker ended: {_first(group)}"
            self._failed(LineBroken(self.why))
        except* WindrowClientError as group:
            self.why = str(_first(group))
            self._failed(_first(group))
        finally:
            self.is_over = True
            self._failed(LineBroken(self.why))
            for exchange in self._exchanges.values():
                with contextlib.suppress(asyncio.QueueFull):
                    exchange.came.put_nowait(None)

    @contextlib.contextmanager
    def exchange(self) -> Any:
        """A number of its own for a request."""
        self._number += 1
        made = self._exchanges[self._number] = Exchange(self, self._number)
        try:
            yield made
        finally:
            del self._exchanges[made.number]
            while not made.came.empty():
                made.came.get_nowait()  # the line may wait for its place

    async def send(self, data: bytes) -> None:
        """Raises LineBroken."""
        if self.is_over or self._writer is None:
            raise LineBroken(self.why)
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise LineBroken(self.why) from error

    def _failed(self, error: BaseException) -> None:
        if not self.met.done():
            self.met.set_exception(error)
            self.met.exception()  # whoever waits sees it; nobody has to

    async def _meet(self, reader: asyncio.StreamReader) -> None:
        """Our proof is sent with what comes next, unanswered: where the worker does not take it, it ends the line."""
        assert self._writer is not None
        own = secrets.token_hex(frames.NONCE_BYTES)
        self._writer.write(frames.encode_record(Kind.HELLO, 0, {"nonce": own}))
        if await reader.readexactly(len(frames.GREETING)) != frames.GREETING:
            raise WrongSecret(
                "The program there is not a worker of this version; delete the cluster and create it again."
            )
        nonce = await reader.readexactly(frames.NONCE_BYTES)
        answer = await frames.read_frame(reader)
        if answer.kind is not Kind.WELCOME or not frames.is_proof(
            answer.record().get("proof"), self._secret, b"worker", own.encode()
        ):
            raise WrongSecret("The program there does not know this worker's secret; nothing was sent to it.")
        self._writer.write(frames.encode_record(Kind.PROOF, 0, {"proof": frames.proof(self._secret, b"client", nonce)}))

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        async with asyncio.TaskGroup() as group:
            pinging = group.create_task(self._ping())
            try:
                while True:
                    async with asyncio.timeout(frames.SILENT_S):
                        frame = await frames.read_frame(reader)
                    if frame.kind is Kind.REFUSED and frame.number == 0:
                        refusal = frame.record()  # of all that is asked here
                        raise WorkerRefused(str(refusal.get("code")), str(refusal.get("text")))
                    if (exchange := self._exchanges.get(frame.number)) is not None:
                        await exchange.came.put(frame)
            finally:
                pinging.cancel()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(frames.PING_S)
            with contextlib.suppress(LineBroken):
                await self.send(frames.encode(Kind.PING, 0))


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
