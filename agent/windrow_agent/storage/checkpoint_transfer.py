"""Moves checkpoints and volumes of workloads for the Master: sealed before they leave this host, opened when they
arrive.

The Master asks over a channel (windrow_proto.checkpoints) and says for each piece where it goes: by a call to its store
of objects, made for this one object, or over the channel itself. Keys of stores never come here; the data key of a
checkpoint comes with the order and lives as long as the channel. Loaded at the first such channel.
"""

import asyncio
import http.client
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

import structlog

from windrow_agent.storage import checkpoint_files, volume_files
from windrow_agent.storage.object_cache import BLOCK_BYTES, Cache, ObjectWriter, StoredObject
from windrow_proto.checkpoints import (
    BYTES_STREAM,
    CONTROL_STREAM,
    Call,
    Found,
    Lines,
    Message,
    Move,
    Moved,
    Piece,
    Restored,
    RestoreOrder,
    SaveOrder,
    Settled,
    decode,
    encode,
)
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import BadProof, Conflict, DeadlineExceeded, InvalidInput, LinkClosed, Unavailable

log = structlog.get_logger()

T = TypeVar("T", bound=Message)

WHOLE_S: Final = 2 * 3600.0
"""For one checkpoint: 64 GiB within it are 9 MiB/s."""
HEAR_S: Final = 600.0
"""For what the Master says next."""
HTTP_S: Final = 60.0
"""Without a byte from a store."""

Hear = Callable[[], Awaitable[tuple[int, bytes] | None]]
"""The stream and bytes that come next; None at the end."""
Say = Callable[[int, bytes], Awaitable[None]]


class _Talk:
    """Messages and bytes of one channel."""

    def __init__(self, hear: Hear, say: Say) -> None:
        self._hear, self._say = hear, say
        self._lines, self._waiting, self._held = Lines(), list[bytes](), bytearray()

    async def say(self, message: Message) -> None:
        await self._say(CONTROL_STREAM, encode(message))

    async def give(self, data: bytes) -> None:
        await self._say(BYTES_STREAM, data)

    async def next(self) -> Message:
        """The next message; LinkClosed where the Master has hung up instead."""
        while not self._waiting:
            await self._more()
        return decode(self._waiting.pop(0))

    async def expect(self, kind: type[T]) -> T:
        """The next message, which must be of this kind."""
        message = await self.next()
        if not isinstance(message, kind):
            raise InvalidInput(f"The Master said {type(message).__name__} where {kind.__name__} was due.")
        return message

    async def take(self, size: int) -> AsyncIterator[bytes]:
        """So many bytes in blocks."""
        left = size
        while left:
            while len(self._held) < min(left, BLOCK_BYTES):
                await self._more()
            block = bytes(self._held[: min(left, BLOCK_BYTES)])
            del self._held[: len(block)]
            left -= len(block)
            yield block

    async def _more(self) -> None:
        try:
            async with asyncio.timeout(HEAR_S):
                heard = await self._hear()
        except TimeoutError as error:
            raise DeadlineExceeded(f"The Master said nothing for {HEAR_S:g} s.") from error
        if heard is None:
            raise LinkClosed("The Master closed the channel.")
        stream, data = heard
        if stream == CONTROL_STREAM:
            self._waiting += self._lines.feed(data)
        elif len(self._held) <= 2 * BLOCK_BYTES:
            self._held += data
        else:
            raise InvalidInput("The Master sends bytes that nobody asked for.")


class Source(Protocol):
    """The files that are to be sent."""

    def read(self, piece: Piece, block_bytes: int) -> Iterator[bytes]: ...

    def is_torn(self, piece: Piece) -> bool: ...


class Target(Protocol):
    """The folder that files come into, invisible until `finish`, which returns how it looks then."""

    def write(self, name: str, content: Iterator[bytes]) -> None: ...

    def finish(self) -> str: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TransferContext:
    """The resources that a channel works on. folder_of: of a volume by its name, of the workload itself by "". settled:
    what to do once its volumes are. is_waiting: true while the workload waits for its volumes."""

    folder_of: Callable[[str], Awaitable[Path]]
    settled: Callable[[], Awaitable[None]]
    is_waiting: Callable[[], bool]
    cache: Cache


async def serve(context: TransferContext, hear: Hear, say: Say) -> None:
    """Serve one channel: one order, to its end."""
    talk = _Talk(hear, say)
    try:
        async with asyncio.timeout(WHOLE_S):
            order = await talk.next()
            if isinstance(order, SaveOrder):
                await _save(await context.folder_of(order.volume), context.cache, talk, order)
            elif isinstance(order, RestoreOrder):
                if order.volume and not context.is_waiting():
                    raise Unavailable("The volumes of this workload are in place: what it writes there is its own.")
                await _restore(await context.folder_of(order.volume), context.cache, talk, order)
            elif isinstance(order, Settled):
                await context.settled()
                await talk.say(Settled())
            else:
                raise InvalidInput("A checkpoint channel begins with an order.")
    except TimeoutError as error:
        raise DeadlineExceeded(f"The checkpoint did not move within {WHOLE_S:g} s.") from error
    except OSError as error:
        raise Unavailable(f"The checkpoint could not be moved: {error.strerror or error}.") from error


def _found(folder: Path, order: SaveOrder) -> tuple[Found, Source | None]:
    """Lists the pieces to be saved; no source: there are none."""
    if order.volume:
        tree = volume_files.look(folder, takes_torn=order.takes_torn)
        if tree.seen == order.seen:
            return Found(None), None
        return Found(order.after_step + 1, tree.pieces, tree.seen, tree.left, tree.left_count), tree
    step = checkpoint_files.newest(folder, order.after_step)
    if step is None:
        return Found(None), None
    return Found(step, checkpoint_files.listed(folder, step)), checkpoint_files.Source(folder, step)


async def _save(folder: Path, cache: Cache, talk: _Talk, order: SaveOrder) -> None:
    key = DataKey(order.data_key)
    found, source = await asyncio.to_thread(_found, folder, order)
    await talk.say(found)
    if source is None:
        return
    for piece in found.pieces:
        move = await talk.expect(Move)
        try:
            kept = await asyncio.to_thread(_seal, cache, move.key, key, source, piece)
            if move.call is None:
                for block in _blocks(kept.path):
                    await talk.give(block)
            else:
                await asyncio.to_thread(_put, move.call, kept)
            await talk.say(Moved(kept.sealed_bytes, kept.sealed_sha256, source.is_torn(piece)))
        finally:
            await asyncio.to_thread(cache.drop, move.key)
    log.info("checkpoint_sent", step=found.step, pieces=len(found.pieces), volume=order.volume)


def _seal(cache: Cache, object_id: str, key: DataKey, source: Source, piece: Piece) -> StoredObject:
    return cache.keep(object_id, key, source.read(piece, BLOCK_BYTES))


def _coming(folder: Path, order: RestoreOrder) -> Target:
    if order.volume:
        return volume_files.Incoming(folder, is_anew=bool(order.pieces))
    return checkpoint_files.Incoming(folder, order.step)


async def _restore(folder: Path, cache: Cache, talk: _Talk, order: RestoreOrder) -> None:
    key = DataKey(order.data_key)
    incoming = await asyncio.to_thread(_coming, folder, order)
    try:
        for piece in order.pieces:
            move = await talk.expect(Move)
            try:
                await _take(cache, key, talk, move)
                await asyncio.to_thread(_open, cache, move.key, incoming, piece)
            finally:
                await asyncio.to_thread(cache.drop, move.key)
            await talk.say(Moved(move.sealed_bytes, move.sealed_sha256))
        seen = await asyncio.to_thread(incoming.finish)
    finally:
        await asyncio.to_thread(incoming.close)
    await talk.say(Restored(order.step, seen))
    log.info("checkpoint_restored", step=order.step, pieces=len(order.pieces), volume=order.volume)


async def _take(cache: Cache, key: DataKey, talk: _Talk, move: Move) -> None:
    taking = await asyncio.to_thread(cache.taking, move.key, key)
    try:
        if move.call is None:
            async for block in talk.take(move.sealed_bytes):
                await asyncio.to_thread(taking.write, block)
        else:
            await asyncio.to_thread(_get, move.call, move.sealed_bytes, taking)
        kept = await asyncio.to_thread(taking.finish)
    finally:
        await asyncio.to_thread(taking.close)
    if (kept.sealed_bytes, kept.sealed_sha256) != (move.sealed_bytes, move.sealed_sha256):
        raise BadProof("An object of the checkpoint is not what its manifest says.", subject=move.key[-64:])


def _open(cache: Cache, object_id: str, incoming: Target, piece: Piece) -> None:
    counted = 0

    def plain() -> Iterator[bytes]:
        nonlocal counted
        for block in cache.open(object_id):
            counted += len(block)
            yield block

    incoming.write(piece.name, plain())
    if counted != piece.size_bytes:
        raise BadProof("An object of the checkpoint does not hold what its manifest says.", subject=object_id[-64:])


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block


# --- calls to a store, on threads -------------------------------------------------------------------------------------


def _put(call: Call, kept: StoredObject) -> None:
    connection, path = _connection(call)
    try:
        with kept.path.open("rb") as file:
            connection.request(call.method, path, body=file, headers=dict(call.headers))
        answer = connection.getresponse()
        answer.read(1024)
        if answer.status != http.HTTPStatus.OK:
            raise Unavailable(f"The store of objects answered {answer.status} to an upload.")
    except (http.client.HTTPException, OSError) as error:
        raise Unavailable(f"The store of objects cannot be reached: {type(error).__name__}.") from error
    finally:
        connection.close()


def _get(call: Call, size: int, taking: ObjectWriter) -> None:
    connection, path = _connection(call)
    try:
        connection.request(call.method, path, headers=dict(call.headers))
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise Conflict(f"The store of objects answered {answer.status} to a download.")
        left = size + 1
        while left and (block := answer.read(min(BLOCK_BYTES, left))):
            taking.write(block)
            left -= len(block)
    except (http.client.HTTPException, OSError) as error:
        raise Unavailable(f"The store of objects cannot be reached: {type(error).__name__}.") from error
    finally:
        connection.close()


def _connection(call: Call) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(call.url)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=HTTP_S, context=context), path
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HTTP_S), path
    raise InvalidInput("The Master named an address that is no http or https.")
