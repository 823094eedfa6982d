"""Reaches into a workload through a channel of the link: log, exec, files. Every wait has an end, every size a cap.

route ── open (10 s) ──▶ ChannelBroker ──▶ host: data ..., close; a channel is closed however its reader goes away

Only the account that rents a cluster goes inside it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from windrow_master.clusters.model import Workload, WorkPhase
from windrow_master.clusters.request import FILES_CAP_BYTES, LOG_KEPT_BYTES
from windrow_master.clusters.service import ClusterService
from windrow_master.identity.model import Principal
from windrow_master.network.channels import ChannelBroker, ChannelStream
from windrow_master.network.tar import TarCounter
from windrow_master.shares import ShareLimits, Shares, SharesOfEach
from windrow_proto.errors import (
    Conflict,
    DeadlineExceeded,
    InvalidInput,
    LinkClosed,
    NotFound,
    TooLarge,
    WindrowError,
    from_code,
)
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.units import KIB, MIB

T = TypeVar("T")

OPEN_S: Final = 10.0
"""For a channel to open: a round trip to the host, or none."""
FILES_SILENCE_S: Final = 300
"""Between two pieces of a folder: the host compares what did not change, and passes over what was had before."""
SILENCE_S: Final = 60.0
"""Between two pieces of what does not follow anything: the host reads a disk, it does not think."""
COMMIT_S: Final = 60.0
"""For the host to finish what was sent, after the last piece: it unpacks as it goes, and the trunk waits no longer."""
EXEC_S: Final = 24 * 3600.0
"""For a command that says nothing: as long as a working day of somebody's patience, then it is let go."""
CHUNK_BYTES: Final = 64 * KIB
BLOCK_BYTES: Final = 1 * MIB
"""Written to the temporary file at a time, on a thread."""
CHANNELS: Final = ShareLimits(limit=256, per_account=96, reserve=32)
"""Open channels of this Master; to send a folder to a cluster takes one for each of its hosts."""
HOST_CHANNELS: Final = ShareLimits(limit=64, per_account=24, reserve=8)
"""Of them to one host, which takes no more at once."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The part of a sent folder that arrived at the host."""

    size_bytes: int
    files: int


class WorkAccess:
    """The inside of workloads, for the routes."""

    def __init__(self, clusters: ClusterService, broker: ChannelBroker) -> None:
        self._clusters = clusters
        self._broker = broker
        ways = "End a command, or a log that is followed, or try again in a moment."
        self.channels = Shares("channels into workloads", ways, CHANNELS)
        self.host_channels = SharesOfEach[HostId]("channels to this host", ways, HOST_CHANNELS)

    async def log(self, principal: Principal, cluster_id: ClusterId, offset: int, rank: int = 0) -> tuple[bytes, bool]:
        """The log from byte `offset` as it is now, at most some LOG_KEPT_BYTES of it, and whether there is more."""
        workload = await self._inside(principal, cluster_id, rank)
        opening = ChannelOpen(workload.workload_id, ChannelPurpose.LOGS, offset=offset)
        found = bytearray()
        async with self._channel(principal, workload, opening) as channel:
            async for part in _parts(channel, SILENCE_S):
                if isinstance(part, ChannelClose):
                    _raise_if_failed(part, cluster_id)
                    return bytes(found), part.truncated
                found += part.data
                if len(found) > LOG_KEPT_BYTES:
                    return bytes(found), True
        raise LinkClosed(subject=cluster_id)

    async def follow(
        self, principal: Principal, cluster_id: ClusterId, offset: int, rank: int = 0
    ) -> AsyncGenerator[bytes]:
        """The log from byte `offset` on, as it is written, until the work ends. Opened when this returns. What ends
        without an error is whole: raises LinkClosed, and NotFound where its host clears it away meanwhile."""
        workload = await self._inside(principal, cluster_id, rank)
        opening = ChannelOpen(workload.workload_id, ChannelPurpose.LOGS, offset=offset, follow=True)

        async def pieces() -> AsyncGenerator[bytes]:
            async with self._channel(principal, workload, opening) as channel:
                yield b""
                async for part in _parts(channel, None):
                    if isinstance(part, ChannelClose):
                        _raise_if_failed(part, cluster_id)
                        return
                    yield part.data

        return await _opened(pieces())

    async def execute(
        self, principal: Principal, cluster_id: ClusterId, argv: tuple[str, ...], rank: int = 0
    ) -> AsyncGenerator[ChannelData | ChannelClose]:
        """Run one more command inside: its output in pieces, and last its end. Opened when this returns."""
        if not argv:
            raise InvalidInput("argv names no command.", subject="argv")
        workload = await self._inside(principal, cluster_id, rank)
        if workload.phase is not WorkPhase.RUNNING:
            raise Conflict(f"A command needs a running machine, and this one is {workload.phase}.", subject=cluster_id)
        opening = ChannelOpen(workload.workload_id, ChannelPurpose.EXEC, argv=argv)

        async def pieces() -> AsyncGenerator[ChannelData | ChannelClose]:
            async with self._channel(principal, workload, opening) as channel:
                yield ChannelData(b"")
                try:
                    async for part in _parts(channel, EXEC_S):
                        yield part
                except WindrowError as error:
                    yield ChannelClose(error.code, error.detail)

        return await _opened(pieces())

    async def send_files(
        self, principal: Principal, cluster_id: ClusterId, body: AsyncIterator[bytes], *, commit: bool
    ) -> Sent:
        """Send a tar stream into the working folder of every member; `commit` says that all of it came and lets waiting
        work start. Raises Conflict where none of it waits: then nothing is changed there."""
        workloads = await self._members(principal, cluster_id)
        counter = TarCounter()
        async with AsyncExitStack() as open_ones:
            channels = []
            for workload in workloads:
                opening = ChannelOpen(workload.workload_id, ChannelPurpose.FILES_IN)
                channels.append(await open_ones.enter_async_context(self._channel(principal, workload, opening)))
            async for piece in body:
                counter.feed(piece)
                if counter.bytes > FILES_CAP_BYTES:
                    for channel in channels:
                        await channel.close(ChannelClose("too_large", "more than the cap of a folder"))
                    limit = FILES_CAP_BYTES // MIB
                    raise TooLarge(
                        f"A folder may have {limit} MiB. Nothing of it was kept; send less.", subject=cluster_id
                    )
                for channel in channels:
                    await self._send(channel, piece, cluster_id)
            # Without commit the host keeps what came and goes on waiting.
            for channel in channels:
                await channel.close(ChannelClose(commit=commit))
            taken = [await _taken(channel, cluster_id) for channel in channels]
        if commit and not any(taken):
            raise Conflict(
                "This machine does not wait for files; to add some, send them without commit.", subject=cluster_id
            )
        return Sent(counter.bytes, counter.files)

    async def _send(self, channel: ChannelStream, piece: bytes, cluster_id: ClusterId) -> None:
        try:
            for start in range(0, len(piece), CHUNK_BYTES):
                await _within(SILENCE_S, channel.send(piece[start : start + CHUNK_BYTES]))
        except (DeadlineExceeded, LinkClosed):
            # A host that takes no more has often said why: its disk is full, the work is gone.
            said = await _within(OPEN_S, channel.receive())
            if isinstance(said, ChannelClose):
                _raise_if_failed(said, cluster_id)
            raise

    async def fetch_files(
        self, principal: Principal, cluster_id: ClusterId, *, changed_only: bool, rank: int = 0, offset: int = 0
    ) -> AsyncGenerator[bytes]:
        """The working folder as a tar stream, from byte `offset` on: while nothing changes there, the same bytes.
        Opened when this returns.

        A stream that breaks raises, so that nobody takes a part of it for the whole.
        """
        workload = await self._inside(principal, cluster_id, rank)
        opening = ChannelOpen(workload.workload_id, ChannelPurpose.FILES_OUT, changed_only=changed_only, offset=offset)

        async def pieces() -> AsyncGenerator[bytes]:
            is_open = False
            async with self._channel(principal, workload, opening) as channel:
                async for part in _parts(channel, FILES_SILENCE_S):
                    if isinstance(part, ChannelClose):
                        _raise_if_failed(part, cluster_id)
                    if not is_open:
                        is_open = True
                        yield b""
                    if isinstance(part, ChannelClose):
                        return
                    yield part.data
            raise LinkClosed(subject=cluster_id)

        return await _opened(pieces())

    async def _inside(self, principal: Principal, cluster_id: ClusterId, rank: int = 0) -> Workload:
        for workload in await self._members(principal, cluster_id):
            if workload.rank == rank:
                return workload
        raise NotFound(f"This cluster has no member of rank {rank} now.", subject=cluster_id)

    async def _members(self, principal: Principal, cluster_id: ClusterId) -> list[Workload]:
        """All that is there of it, one of each rank."""
        view = await self._clusters.get_own(principal, cluster_id)
        ended = (WorkPhase.GONE, WorkPhase.STOPPING)
        found = [one for one in view.workloads if one.phase not in ended and one.delete_command is None]
        if not found:
            raise Conflict("The work was deleted from its host, with its log and files.", subject=cluster_id)
        return found

    def channel(
        self, principal: Principal, workload: Workload, purpose: ChannelPurpose
    ) -> AbstractAsyncContextManager[ChannelStream]:
        """A channel into this workload of the caller's, for another service; it is closed with the context."""
        return self._channel(principal, workload, ChannelOpen(workload.workload_id, purpose))

    @asynccontextmanager
    async def _channel(
        self, principal: Principal, workload: Workload, opening: ChannelOpen
    ) -> AsyncIterator[ChannelStream]:
        is_reader = opening.purpose is ChannelPurpose.LOGS
        inside = nullcontext() if is_reader else self._clusters.lifecycle.uses.inside(workload.cluster_id)
        who, is_trusted = principal.holder, principal.is_trusted
        with (
            self.channels.take(who, is_trusted=is_trusted),
            self.host_channels.of(workload.host_id).take(who, is_trusted=is_trusted),
        ):
            channel = await _within(OPEN_S, self._broker.open(workload.host_id, opening))
            try:
                with inside:
                    yield channel
            finally:
                # Shielded: also a reader that was cancelled tells the host that nobody reads any more.
                with suppress(WindrowError):
                    await asyncio.shield(_within(OPEN_S, channel.close(ChannelClose())))


async def _opened(pieces: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """The generator once it has opened its channel: a refusal is raised here, before any answer has begun.

    It has started, so its channel is closed however it ends, also if nobody ever reads from it.
    """
    await anext(pieces)
    return pieces


async def _parts(channel: ChannelStream, silence_s: float | None) -> AsyncIterator[ChannelData | ChannelClose]:
    """Yield the messages that come, the close included."""
    while True:
        part = await (channel.receive() if silence_s is None else _within(silence_s, channel.receive()))
        yield part
        if isinstance(part, ChannelClose):
            return


async def _within(seconds: float, awaited: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError:
        raise DeadlineExceeded(f"The host did not answer on this channel for {seconds:g} s.") from None


def _raise_if_failed(closing: ChannelClose, cluster_id: ClusterId) -> None:
    if closing.error_code:
        raise from_code(closing.error_code, closing.detail, cluster_id)


async def _taken(channel: ChannelStream, cluster_id: ClusterId) -> bool:
    """Wait until the host has taken all that was sent; whether its work begins with it. Raises what it says instead,
    and LinkClosed."""
    async for part in _parts(channel, COMMIT_S):
        if isinstance(part, ChannelClose):
            _raise_if_failed(part, cluster_id)
            return part.commit
    raise LinkClosed(subject=cluster_id)
