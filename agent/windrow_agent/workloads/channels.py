"""Serves the channels that the Master opens into this host's workloads (logs, commands, files, tunnels) and to the host
itself (challenges).

Each side may send as many bytes as the other has given credit for; who takes bytes in gives credit back as it does. A
channel lives no longer than its connection. Chunks are at most 64 KiB.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from windrow_agent.challenge.service import ChallengeService
from windrow_agent.core import workload as work
from windrow_agent.link.tunnels import Tunnel
from windrow_agent.overlay import reachability
from windrow_agent.overlay.manager import LinkTraffic, OverlayManager, Say
from windrow_agent.runtimes.port import FILES_CAP_BYTES, ByteStream, ExecSession
from windrow_agent.storage.cache_wipe import LeaseCaches
from windrow_agent.workloads.manager import WorkloadManager
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooMany, WindrowError
from windrow_proto.keys import TlsIdentity
from windrow_proto.messages import (
    CHANNEL_CHUNK_BYTES,
    Channel,
    ChannelClose,
    ChannelCredit,
    ChannelData,
    ChannelOpen,
)
from windrow_proto.model import ChannelPurpose, WorkloadPhase
from windrow_proto.terminals import SIZE_STREAM, decode_size

log = structlog.get_logger()

CHANNELS_MAX: Final = 64
"""Open at a time on one host, beside tunnels."""
TUNNELS_MAX: Final = 128
"""Of them: a page with its sockets takes some ten connections."""
PEER_LINKS_MAX: Final = 128
"""Beside them: links to the peers of this host's members."""
IDLE_S: Final = 600.0
"""Without a byte taken by the other side a channel is given up."""

Send = Callable[[Channel], Awaitable[None]]


@dataclass(slots=True)
class _Open:
    """One open channel: what may still be sent, and what came and was not taken yet."""

    step: ChannelOpen
    credit: int
    has_credit: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: "deque[ChannelData | ChannelClose]" = field(default_factory=deque)
    arrived_bytes: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None


class _PeerClosed(Exception):
    """The Master closed the channel; nothing has to be answered."""


class _NotAwaited(Exception):
    """The folder that work starts with was sent to work that does not wait for it."""


class ChannelServer:
    """All channels of one connection."""

    def __init__(
        self,
        workloads: WorkloadManager,
        send: Send,
        credit_bytes: int,
        group: asyncio.TaskGroup,
        identity: Callable[[], TlsIdentity] | None = None,
        challenges: ChallengeService | None = None,
        caches: LeaseCaches | None = None,
        overlays: OverlayManager | None = None,
    ) -> None:
        """credit_bytes: what each side may send at first, per channel and direction. identity: whom this host trusts
        at the other end of a tunnel; None: it serves none. challenges, caches (for checkpoints), overlays (for links of
        peers): likewise."""
        self._workloads, self._send, self._credit_bytes, self._group = workloads, send, credit_bytes, group
        self._identity, self._challenges, self._caches = identity, challenges, caches
        self._overlays = overlays
        self._channels: dict[int, _Open] = {}

    async def on_frame(self, channel: Channel) -> None:
        """One step of the Master's; returns at once."""
        number, step = channel.channel_id, channel.step
        held = self._channels.get(number)
        if isinstance(step, ChannelOpen):
            if held is not None or self._is_full(step.purpose):
                error = TooMany(f"This host has {len(self._channels)} open channels.")
                await self._send(Channel(number, ChannelClose(error.code, error.detail)))
                return
            held = self._channels[number] = _Open(step, self._credit_bytes)
            held.task = self._group.create_task(self._serve(number, held), name=f"channel {number}")
        elif held is None:
            return  # it ended here while this was on its way
        elif isinstance(step, ChannelCredit):
            held.credit += step.credit_bytes
            held.has_credit.set()
        elif isinstance(step, ChannelData) and held.arrived_bytes + len(step.data) > self._credit_bytes:
            await self._fail(number, held, InvalidInput("More was sent than there was credit for."))
        else:
            held.arrived.append(step)
            held.arrived_bytes += len(step.data) if isinstance(step, ChannelData) else 0
            held.came.set()

    def _is_full(self, purpose: ChannelPurpose) -> bool:
        counts = Counter(held.step.purpose for held in self._channels.values())
        tunnels, peer_links = counts[ChannelPurpose.TUNNEL], counts[ChannelPurpose.CORD]
        if purpose is ChannelPurpose.TUNNEL:
            return tunnels >= TUNNELS_MAX
        if purpose is ChannelPurpose.CORD:
            return peer_links >= PEER_LINKS_MAX
        return len(self._channels) - tunnels - peer_links >= CHANNELS_MAX

    async def _fail(self, number: int, held: _Open, error: WindrowError) -> None:
        self._channels.pop(number, None)
        if held.task is not None:
            held.task.cancel()
        await self._send(Channel(number, ChannelClose(error.code, error.detail)))

    async def _serve(self, number: int, held: _Open) -> None:
        try:
            close = await self._purpose(number, held)
            await self._send(Channel(number, close))
        except WindrowError as error:
            await self._send(Channel(number, ChannelClose(error.code, error.detail[:2000])))
        except TimeoutError:
            await self._send(Channel(number, ChannelClose("unavailable", "Nobody took what was sent; closed.")))
        except _PeerClosed:
            log.debug("channel_closed_by_master", channel=number)
        except Exception:  # the task's top level: the other channels, and the line that they share, go on
            log.exception("channel_crashed", channel=number, purpose=held.step.purpose.name.lower())
            await self._send(Channel(number, ChannelClose("internal", "The agent failed.")))
        finally:
            self._channels.pop(number, None)

    async def _purpose(self, number: int, held: _Open) -> ChannelClose:
        match held.step.purpose:
            case ChannelPurpose.LOGS:
                return await self._logs(number, held)
            case ChannelPurpose.EXEC:
                return await self._exec(number, held)
            case ChannelPurpose.TERMINAL:
                return await self._terminal(number, held)
            case ChannelPurpose.FILES_IN:
                return await self._files_in(number, held)
            case ChannelPurpose.FILES_OUT:
                return await self._files_out(number, held)
            case ChannelPurpose.TUNNEL:
                return await self._tunnel(number, held)
            case ChannelPurpose.CHALLENGE if self._challenges is not None:
                return await self._challenge(number, held, self._challenges)
            case ChannelPurpose.CHECKPOINT if self._caches is not None:
                return await self._checkpoint(number, held, self._caches)
            case ChannelPurpose.CORD if self._overlays is not None:
                return await self._peer_link(number, held, self._overlays)
            case ChannelPurpose.SIGHT if self._overlays is not None:
                return await self._sight(number, held, self._overlays)
            case other:
                raise InvalidInput(f"This agent serves no channel for {other.name.lower()}.")

    # --- the purposes ----------------------------------------------------------------------------------------

    async def _logs(self, number: int, held: _Open) -> ChannelClose:
        runtime = self._workloads.runtime_of(held.step.workload_id)
        stream = await runtime.logs(held.step.workload_id, held.step.offset, held.step.follow)
        return await self._stream(number, held, stream)

    async def _files_out(self, number: int, held: _Open) -> ChannelClose:
        runtime = self._workloads.runtime_of(held.step.workload_id)
        stream = await runtime.get_files(held.step.workload_id, held.step.changed_only, held.step.offset)
        return await self._stream(number, held, stream, has_end=True)

    async def _stream(self, number: int, held: _Open, stream: ByteStream, *, has_end: bool = False) -> ChannelClose:
        """Give all of it. has_end: its last piece says that it is whole. Raises NotFound where the workload was removed
        meanwhile: what is missing for that reason is not known here."""

        async def pump() -> None:
            last = b""
            async for piece in stream:
                await self._give(number, held, 0, last if has_end else piece)
                last = piece
            workload_id = held.step.workload_id
            if await self._workloads.runtime_of(workload_id).observe(workload_id) is None:
                raise NotFound(f"{workload_id} was removed while it was read.", subject=workload_id)
            await self._give(number, held, 0, last if has_end else b"")

        try:
            await self._until_closed(held, pump())
        finally:
            await stream.close()
        return ChannelClose(truncated=stream.truncated)

    async def _files_in(self, number: int, held: _Open) -> ChannelClose:
        workload_id = held.step.workload_id
        runtime = self._workloads.runtime_of(workload_id)
        ended: list[ChannelClose] = []

        async def chunks() -> AsyncIterator[bytes]:
            while True:
                step = await self._next(number, held)
                if isinstance(step, ChannelClose):
                    ended.append(step)
                    if step.error_code:
                        raise _PeerClosed
                    if step.commit and not self._workloads.awaits_files(workload_id):
                        raise _NotAwaited  # sent once more: what it has changed since is not to be written over
                    return
                yield step.data

        try:
            taken = await runtime.put_files(workload_id, chunks(), FILES_CAP_BYTES)
        except _NotAwaited:
            return ChannelClose(detail="the workload waits for no files; nothing was changed")
        if ended and ended[0].commit:
            await self._workloads.came(workload_id, work.FilesCame())
        return ChannelClose(detail=f"{taken.files} files, {taken.bytes} bytes", commit=bool(ended and ended[0].commit))

    async def _exec(self, number: int, held: _Open) -> ChannelClose:
        runtime = self._workloads.runtime_of(held.step.workload_id)
        session = await runtime.exec(held.step.workload_id, held.step.argv)

        async def feed() -> None:
            if not held.step.stdin:
                await session.write(b"")
            while True:
                step = await self._next(number, held)
                if isinstance(step, ChannelClose):
                    if step.error_code or not held.step.stdin:
                        raise _PeerClosed
                    await session.write(b"")
                    held.step = ChannelOpen(held.step.workload_id, held.step.purpose, stdin=False)
                    continue
                await session.write(step.data)

        return await self._attended(number, held, session, feed())

    async def _terminal(self, number: int, held: _Open) -> ChannelClose:
        session = await self._workloads.runtime_of(held.step.workload_id).terminal(held.step.workload_id)

        async def feed() -> None:
            await self._send(Channel(number, ChannelData(b"")))
            while not isinstance(step := await self._next(number, held), ChannelClose):
                if step.stream == SIZE_STREAM:
                    await session.resize(decode_size(step.data))
                else:
                    await session.write(step.data)
            raise _PeerClosed

        return await self._attended(number, held, session, feed())

    async def _attended(
        self, number: int, held: _Open, session: ExecSession, feed: Coroutine[Any, Any, None]
    ) -> ChannelClose:
        async def pump() -> None:
            while (piece := await session.read()) is not None:
                await self._give(number, held, *piece)

        try:
            await _first_of(pump(), feed)
        finally:
            await session.close()
        return ChannelClose(exit_code=session.exit_code)

    async def _tunnel(self, number: int, held: _Open) -> ChannelClose:
        if self._identity is None:
            raise InvalidInput("This agent serves no tunnels.")
        runtime = self._workloads.runtime_of(held.step.workload_id)
        tunnel = Tunnel()

        async def ready(certificate_pem: bytes) -> None:
            await self._send(Channel(number, ChannelData(certificate_pem)))

        code = detail = ""
        try:
            await self._until_closed(held, tunnel.serve(runtime, held.step, self._identity(), ready))
        except _PeerClosed:
            pass
        except WindrowError as error:
            code, detail = error.code, error.detail[:2000]
        return ChannelClose(code, detail, bytes_in=tunnel.bytes_in, bytes_out=tunnel.bytes_out)

    async def _peer_link(self, number: int, held: _Open, overlays: OverlayManager) -> ChannelClose:
        if self._identity is None:
            raise InvalidInput("This agent serves no tunnels.")
        words, moved = self._words(number, held), LinkTraffic()
        code = detail = ""
        try:
            await self._until_closed(held, overlays.serve(held.step, self._identity(), *words, moved))
        except _PeerClosed:
            pass
        except WindrowError as error:
            code, detail = error.code, error.detail[:2000]
        return ChannelClose(code, detail, bytes_in=moved.received_bytes, bytes_out=moved.sent_bytes)

    async def _sight(self, number: int, held: _Open, overlays: OverlayManager) -> ChannelClose:
        await reachability.serve(*self._words(number, held), overlays.refusals)
        return ChannelClose()

    def _words(self, number: int, held: _Open) -> tuple[Callable[[], Awaitable[bytes | None]], Say]:
        """The functions by which the Master is heard in a channel of messages, None at their end, and is told."""

        async def hear() -> bytes | None:
            step = await self._next(number, held)
            return None if isinstance(step, ChannelClose) else step.data

        return hear, lambda data: self._give(number, held, 0, data)

    async def _challenge(self, number: int, held: _Open, challenges: ChallengeService) -> ChannelClose:
        await challenges.serve(*self._words(number, held))
        return ChannelClose()

    async def _checkpoint(self, number: int, held: _Open, caches: LeaseCaches) -> ChannelClose:
        from windrow_agent.storage import checkpoint_transfer

        workload_id, workloads = held.step.workload_id, self._workloads
        runtime = workloads.runtime_of(workload_id)

        async def folder_of(volume: str) -> Path:
            found = await (runtime.volume_folder(workload_id, volume) if volume else runtime.work_folder(workload_id))
            if found is None:
                what = f"The volume {volume}" if volume else "The working folder"
                raise Conflict(f"{what} of this workload is not within this agent's reach.", subject=workload_id)
            return found

        async def settled() -> None:
            await workloads.came(workload_id, work.VolumesCame())
            workloads.volume_hold.settle(workload_id)

        def is_waiting() -> bool:
            now = workloads.state(workload_id)
            return now is not None and now.phase is WorkloadPhase.WAITING_VOLUMES

        async def hear() -> tuple[int, bytes] | None:
            step = await self._next(number, held)
            return None if isinstance(step, ChannelClose) else (step.stream, step.data)

        state = workloads.state(workload_id)
        with workloads.volume_hold.moving(workload_id):
            if state is not None and state.phase is WorkloadPhase.STOPPING and state.keeps_volumes:
                await workloads.volume_hold.ended(workload_id)
            cache = await caches.of(workload_id)
            context = checkpoint_transfer.TransferContext(folder_of, settled, is_waiting, cache)
            await checkpoint_transfer.serve(context, hear, lambda stream, data: self._give(number, held, stream, data))
        return ChannelClose()

    # --- flow -----------------------------------------------------------------------------------------------------

    async def _until_closed(self, held: _Open, pump: Awaitable[None]) -> None:
        """Run the pump, unless the Master closes first."""

        async def closed() -> None:
            while not any(isinstance(step, ChannelClose) for step in held.arrived):
                held.came.clear()
                await held.came.wait()
            raise _PeerClosed

        await _first_of(pump, closed())

    async def _give(self, number: int, held: _Open, stream: int, data: bytes) -> None:
        for start in range(0, len(data), CHANNEL_CHUNK_BYTES):
            chunk = data[start : start + CHANNEL_CHUNK_BYTES]
            while chunk:
                while held.credit <= 0:
                    held.has_credit.clear()
                    async with asyncio.timeout(IDLE_S):
                        await held.has_credit.wait()
                piece, chunk = chunk[: held.credit], chunk[held.credit :]
                held.credit -= len(piece)
                await self._send(Channel(number, ChannelData(piece, stream)))

    async def _next(self, number: int, held: _Open) -> ChannelData | ChannelClose:
        while not held.arrived:
            held.came.clear()
            await held.came.wait()
        step = held.arrived.popleft()
        if isinstance(step, ChannelData):
            held.arrived_bytes -= len(step.data)
            await self._send(Channel(number, ChannelCredit(len(step.data))))
        return step


async def _first_of(main: Awaitable[None], other: Awaitable[None]) -> None:
    """Until `main` has ended or `other` raised; the one left is cancelled, and what was raised is raised."""

    async def run(work: Awaitable[None]) -> None:
        await work

    loop = asyncio.get_running_loop()
    first, second = loop.create_task(run(main)), loop.create_task(run(other))
    try:
        await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        if second.done() and not first.done():
            second.result()
            await first
        else:
            first.result()
    finally:
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
