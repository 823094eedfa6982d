"""A worker as callers see it: calls that survive a broken line, code that is sent once, output as it comes."""

import asyncio
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from windrow.errors import (
    CannotSend,
    LineBroken,
    MasterUnreachable,
    TunnelRefused,
    UntrustedResult,
    WorkerRefused,
)
from windrow.remote import loop
from windrow.remote.code import Tree
from windrow.remote.line import Exchange, Line, Way
from windrow.worker.frames import BODY_BYTES_MAX, FRAME_BYTES_MAX, Kind
from windrow.worker.runs import RECORD

RECONNECT_S: Final = 120.0
"""For a line that broke to be there again; then the call gives up, and its run goes on."""
PAUSE_S: Final = 1.0
ENV_SILENT_S: Final = 1900.0

OnOutput = Callable[[int, bytes], None]
"""Is told the stream (1 or 2) and whole lines."""


@dataclass(slots=True)
class Ended:
    """How a run ended: the worker's record, and the pickle of what it returned or raised."""

    record: dict[str, Any]
    data: bytearray


@dataclass(slots=True)
class Asked:
    """A call, as it is sent; offset: of its output, what has been shown."""

    record: dict[str, Any]
    body: bytes
    tree: Tree | None
    on_output: OnOutput
    offset: int = 0
    rest: bytearray = field(default_factory=bytearray)
    is_sent: bool = False
    """True if the worker may know it."""
    begun: "Future[None]" = field(default_factory=Future)
    """Done once the worker has it, which then runs it whatever becomes of us; or once it is over."""

    @property
    def run(self) -> dict[str, Any]:
        return {"run": self.record["run"], "offset": self.offset}


class Session:
    """One worker. All of it on one event loop."""

    def __init__(self, way: Way, secret: bytes, known: set[str], on_known: Callable[[set[str]], None]) -> None:
        """known: digests of files that the worker had; on_known: is told when there are more."""
        self._way, self._secret, self._known, self._on_known = way, secret, known, on_known
        self._trees: set[str] = set()
        self._line: Line | None = None
        self._serving: Future[None] | None = None
        self._lock = asyncio.Lock()
        self._code = asyncio.Lock()

    async def connect(self) -> None:
        """Meet the worker, if that is still to be done. Raises WindrowClientError."""
        await self._connected()

    async def call(self, asked: Asked) -> Ended:
        """Run it to its end; raises FunctionError."""
        try:
            return await self._kept(lambda: self._call_once(asked), asked)
        finally:
            if not asked.begun.done():
                asked.begun.set_result(None)

    async def attach(self, run: str, on_output: OnOutput) -> Ended:
        """The output and the end of a run from before."""
        asked = Asked({"run": run}, b"", None, on_output, is_sent=True)
        return await self._kept(lambda: self._attach_once(asked), asked)

    async def cancel(self, run: str) -> None:
        """Interrupt it; its call ends then."""
        line = await self._connected()
        with line.exchange() as exchange:
            await exchange.say(Kind.CANCEL, {"run": run})

    async def make_env(self, requirements: list[str], tell: Callable[[str], None]) -> str:
        """Have an environment with these; returns its name."""
        line = await self._connected()
        with line.exchange() as exchange:
            await exchange.say(Kind.ENV, {"requirements": requirements})
            async with asyncio.timeout(ENV_SILENT_S):
                while (frame := await exchange.next()).kind is not Kind.DONE:
                    tell(str(frame.record().get("line")))
        return str(frame.record()["env"])

    async def close(self) -> None:
        """Let go of the line; runs go on."""
        if self._serving is not None:
            self._serving.cancel()

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _kept(self, attempt: Callable[[], Coroutine[Any, Any, Ended]], asked: Asked) -> Ended:
        ends = time.monotonic() + RECONNECT_S
        may_be_old = self._line is not None  # a worker lets go of a line that has been idle, perhaps just now
        while True:
            offset = asked.offset
            try:
                return await attempt()
            except (LineBroken, MasterUnreachable, TunnelRefused) as error:
                if asked.offset > offset:
                    ends = time.monotonic() + RECONNECT_S
                if time.monotonic() > ends or not (asked.is_sent or may_be_old):
                    raise
                lost, may_be_old = error, False
            asked.rest.clear()
            await asyncio.sleep(PAUSE_S)
            attempt = partial(self._again, asked, lost)

    async def _again(self, asked: Asked, lost: Exception) -> Ended:
        try:
            return await self._attach_once(asked)
        except WorkerRefused as refused:
            if refused.code != "unknown_run" or asked.offset or not asked.body:
                raise
            return await self._call_once(asked)  # it never came there
        except LineBroken as error:
            raise error from lost

    async def _call_once(self, asked: Asked) -> Ended:
        for is_last in (False, True):
            line = await self._connected()
            if asked.tree is not None:
                async with self._code:
                    asked.tree = await self._send_code(line, asked.tree)
                asked.record["tree"] = asked.tree.digest
            try:
                with line.exchange() as exchange:
                    asked.is_sent = True
                    await exchange.say(Kind.CALL, asked.record, asked.body)
                    return await self._followed(exchange, asked)
            except WorkerRefused as refused:
                asked.is_sent = False
                if refused.code != "need_code" or is_last:
                    raise
                self._trees.clear()
                self._known.clear()
        raise AssertionError("the last turn returns or raises")

    async def _attach_once(self, asked: Asked) -> Ended:
        line = await self._connected()
        with line.exchange() as exchange:
            await exchange.say(Kind.ATTACH, asked.run)
            return await self._followed(exchange, asked)

    @staticmethod
    async def _followed(exchange: Exchange, asked: Asked) -> Ended:
        data = bytearray()
        while True:
            frame = await exchange.next()
            if frame.kind is Kind.BEGUN and not asked.begun.done():
                asked.begun.set_result(None)
            elif frame.kind is Kind.OUTPUT:
                _show(asked, frame.payload)
            elif frame.kind is Kind.DATA:
                data += frame.payload
                if len(data) > BODY_BYTES_MAX:
                    raise UntrustedResult(
                        f"A result of more than {BODY_BYTES_MAX >> 20} MiB comes: no worker sends one."
                    )
            elif frame.kind is Kind.DONE:
                return Ended(frame.record(), data)

    async def _connected(self) -> Line:
        async with self._lock:
            if self._line is None or self._line.is_over:
                self._line = Line(self._secret)
                self._serving = loop.start(self._line.run(self._way))
                await asyncio.shield(self._line.met)
            return self._line

    async def _send_code(self, line: Line, tree: Tree) -> Tree:
        """Everything of it that the worker has not; returns what was sent.

        A file that is written to meanwhile, as a log is, goes as it is now; one that is gone does not go.
        """
        read: dict[str, bytes] = {}
        while tree.digest not in self._trees:
            missing = await self._offer(line, tree)
            for digest in missing:
                path = tree.files[digest]
                data = read.get(digest)
                if data is None:
                    data = await asyncio.to_thread(_content, path)
                    if data is None or _sha256(data) != digest:
                        break
                with line.exchange() as exchange:
                    await exchange.say(Kind.FILE, {"digest": digest}, data)
                self._known.add(digest)
            else:
                self._trees.add(tree.digest)
                self._known.update(tree.files)
                self._on_known(set(tree.files))
                break
            if data is not None:
                read[_sha256(data)] = data
            tree = tree.replaced(path.relative_to(tree.root).as_posix(), data)
        return tree

    async def _offer(self, line: Line, tree: Tree) -> list[str]:
        """Say what there is; returns what has to be sent. Where we know what the worker has, without its answer."""
        with line.exchange() as exchange:
            await exchange.say(Kind.TREE, {"digest": tree.digest}, zlib.compress(_packed(tree), 1))
            if self._known:
                return [one for one in tree.files if one not in self._known]
            return await _needed(exchange, tree)


async def _needed(exchange: Exchange, tree: Tree) -> list[str]:
    """The digests of files that the worker asks for; many come in several frames. Raises UntrustedResult for what
    nobody has offered."""
    found: list[str] = []
    while True:
        record = (await exchange.next()).record()
        files = record.get("files")
        if not isinstance(files, list) or not all(isinstance(one, str) and one in tree.files for one in files):
            raise UntrustedResult("The worker asks for files that nobody has offered.")
        found += files
        if len(found) > len(tree.files):
            raise UntrustedResult("The worker asks for the same files again and again.")
        if not record.get("more"):
            return found


def _packed(tree: Tree) -> bytes:
    return json.dumps(tree.manifest, sort_keys=True, separators=(",", ":")).encode()


def _content(path: Path) -> bytes | None:
    """Returns the present contents; None where it is gone. Raises CannotSend."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotSend(f"{path} cannot be read: {error}") from error


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _show(asked: Asked, data: bytes) -> None:
    """Pieces of the output that are whole now."""
    asked.rest += data
    while len(asked.rest) >= RECORD.size:
        stream, size = RECORD.unpack_from(asked.rest)
        if size > 4 * FRAME_BYTES_MAX:
            raise UntrustedResult(f"A piece of output of {size:,} bytes comes: no worker sends one.")
        if len(asked.rest) < RECORD.size + size:
            break
        asked.on_output(stream, bytes(asked.rest[RECORD.size : RECORD.size + size]))
        del asked.rest[: RECORD.size + size]
        asked.offset += RECORD.size + size
