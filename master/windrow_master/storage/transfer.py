"""Moves checkpoints and volumes between workloads and the store of objects, through the agents of their hosts.

save     order ──▶ found ──▶ each piece: sealed by the host, to the store by a presigned call or through here; manifest
restore  newest manifest ──▶ each piece to the host, which checks hash and seal ──▶ renamed into place; what does not
         match is passed over for the checkpoint before

A host gets the data key of the one checkpoint it moves, and calls for its objects; never a key of a store.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

import structlog

from windrow_master.clusters.model import Workload, WorkPhase
from windrow_master.clusters.service import ClusterService
from windrow_master.identity.model import Principal
from windrow_master.network.channels import ChannelBroker, ChannelStream
from windrow_master.shares import ShareLimits, Shares
from windrow_master.storage import checkpoints
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.model import Manifest, ObjectKey, Part, Presigned
from windrow_master.storage.object_store import BLOCK_BYTES
from windrow_proto.checkpoints import (
    BYTES_STREAM,
    CHECKPOINT_BYTES_MAX,
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
from windrow_proto.errors import (
    BadProof,
    Conflict,
    DeadlineExceeded,
    InvalidInput,
    LinkClosed,
    NotFound,
    TooLarge,
    WindrowError,
    from_code,
)
from windrow_proto.frames import sealed_size
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.messages import CHANNEL_CHUNK_BYTES, ChannelClose, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.ports import Clock, Rng

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=Message)

OPEN_S: Final = 10.0
SILENCE_S: Final = 600.0
"""Between two words of a host: it may be sending 256 MiB to a store meanwhile, at 0.5 MiB/s."""
WHOLE_S: Final = 2 * 3600.0
"""For one checkpoint, as the agent has it."""
CALL_S: Final = 3600
"""How long a presigned call is good for: it is used at once, and may take as long as the piece does."""
MOVES: Final = ShareLimits(limit=32, per_account=6, reserve=0)
"""Checkpoints and volumes on their way at once through this Master; a host may take hours for one."""
ATTEMPT_BYTES: Final = 8
WAITING_MAX: Final = 16
"""Messages of a host that nobody has read yet: it says one at a time, when it is asked."""
FLAWS: Final = (BadProof, NotFound, Conflict, InvalidInput)
"""Errors that say that a checkpoint itself is not whole; any other error says nothing of it, and is raised."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The step that is in place now, None: none was whole; and the newer ones that were passed over, with reasons.

    seen: how a volume's folder looks now."""

    step: int | None
    passed: tuple[checkpoints.Passed, ...] = ()
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Saving:
    """A save: a checkpoint after this step, or a volume that does not look as `seen` as the step after this one.

    begin: called once all parts are stored and before the manifest makes the version exist; what it raises ends it.
    takes_torn: files that are written to meanwhile go as they were read.
    """

    after_step: int
    volume: str = ""
    seen: str = ""
    room_bytes: int = CHECKPOINT_BYTES_MAX
    keep: int = checkpoints.KEEP
    begin: Callable[[int], Awaitable[None]] | None = None
    takes_torn: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """A version that exists now. seen: how its folder looked; left, left_count: what its host could not save, the first
    of how many, and why; torn: the files that were written to while they were read."""

    manifest: Manifest
    seen: str
    left: tuple[str, ...] = ()
    left_count: int = 0
    torn: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restoring:
    """Into which volume, and whom to tell how many bytes of how many have come."""

    volume: str
    progress: Callable[[int, int], Awaitable[None]]


class CheckpointService:
    """Checkpoints of clusters for routes, and of whatever owner for packages such as jobs."""

    def __init__(
        self, artefacts: ArtefactService, clusters: ClusterService, broker: ChannelBroker, clock: Clock, rng: Rng
    ) -> None:
        self._artefacts, self._clusters, self._broker = artefacts, clusters, broker
        self._clock, self._rng = clock, rng
        self.moves = Shares("moves of checkpoints and volumes", "Try again in a moment.", MOVES)

    # --- for routes ---------------------------------------------------------------------------------------------------

    async def save_cluster(self, principal: Principal, cluster_id: ClusterId) -> Manifest | None:
        """Save what the work of a cluster of one's own has made whole since; None: nothing new."""
        account_id, workload = await self._work(principal, cluster_id)
        return await self.save(account_id, cluster_id, workload)

    async def restore_cluster(self, principal: Principal, cluster_id: ClusterId, source: ClusterId) -> Outcome:
        """Put the newest whole checkpoint of `source`, one's own too, into the folder of a cluster's work."""
        await self._clusters.get_own(principal, source)
        account_id, workload = await self._work(principal, cluster_id)
        return await self.restore(account_id, source, workload)

    async def list_cluster(self, principal: Principal, cluster_id: ClusterId) -> list[Manifest]:
        """The checkpoints that exist, the newest first. Raises NotFound for a cluster that is not one's own."""
        await self._clusters.get_own(principal, cluster_id)
        return await self.list(cluster_id)

    # --- for packages ------------------------------------------------------------------------------------------------

    async def list(self, owner: str) -> list[Manifest]:
        """The checkpoints of an owner, the newest first; one whose manifest cannot be read is left out."""
        found = []
        for step in await checkpoints.steps(self._artefacts.objects, owner):
            with suppress(*FLAWS):
                found.append(await checkpoints.read(self._artefacts.objects, owner, step))
        return found

    async def save(self, account_id: AccountId, owner: str, workload: Workload) -> Manifest | None:
        """Save a newer checkpoint of this workload than the owner has; None: there is none, or another was first."""
        known = await checkpoints.steps(self._artefacts.objects, owner)
        found = await self._save(account_id, owner, workload, Saving(known[0] if known else -1))
        return None if found is None else found.manifest

    async def save_volume(
        self, account_id: AccountId, owner: str, workload: Workload, saving: "Saving"
    ) -> Saved | None:
        """Save a volume's folder as its next version; None: it looks as it did."""
        return await self._save(account_id, owner, workload, saving)

    async def _save(self, account_id: AccountId, owner: str, workload: Workload, saving: "Saving") -> Saved | None:
        objects, key, attempt = self._artefacts.objects, DataKey.generate(), self._rng.random_bytes(ATTEMPT_BYTES).hex()
        async with self._talk(account_id, workload) as talk:
            await talk.say(SaveOrder(saving.after_step, key.raw, saving.volume, saving.seen, saving.takes_torn))
            found = await talk.expect(Found)
            if found.step is None:
                return None
            size = sum(piece.size_bytes for piece in found.pieces)
            if size > saving.room_bytes:
                raise TooLarge(f"It has {size} bytes; {saving.room_bytes} are allowed, or left of your quota.")
            parts, torn = list[Part](), dict[str, None]()
            for number, piece in enumerate(found.pieces):
                part_key = checkpoints.part_key(owner, found.step, attempt, number)
                part, is_torn = await self._fetch(talk, part_key, piece)
                parts.append(part)
                torn |= {piece.name: None} if is_torn else {}
        wrapped = self._artefacts.account_key(account_id).wrap(key, context_of(owner, attempt)).hex()
        manifest = checkpoints.manifest_of(owner, found.step, attempt, self._clock.wall_ns(), wrapped, parts)
        if saving.begin is not None:
            await saving.begin(found.step)
        is_ours = await checkpoints.commit(objects, manifest)
        await checkpoints.tidy(objects, owner, self._clock.wall_ns(), saving.keep)
        log.info("checkpoint_saved", owner=owner, step=found.step, parts=len(parts), is_ours=is_ours)
        return Saved(manifest, found.seen, found.left, found.left_count, tuple(torn)) if is_ours else None

    async def settle(self, account_id: AccountId, workload: Workload) -> None:
        """Let a workload go on, which waits for its volumes to be in place or to be saved."""
        async with self._talk(account_id, workload) as talk:
            await talk.say(Settled())
            await talk.expect(Settled)

    async def restore(
        self, account_id: AccountId, owner: str, workload: Workload, into: "Restoring | None" = None
    ) -> Outcome:
        """Put the owner's newest whole checkpoint into the folder of this workload, going back over those that are not.

        into: a volume's folder instead, which is left as it is, but opened to all, where there is no version at all.
        What the host has checked is what counts: hash and seal of every piece, before any of it gets its final name.
        """
        passed: list[checkpoints.Passed] = []
        for step in await checkpoints.steps(self._artefacts.objects, owner):
            try:
                manifest = await checkpoints.read(self._artefacts.objects, owner, step)
                key = self._artefacts.account_key(account_id).unwrap(
                    bytes.fromhex(manifest.wrapped_key), context_of(owner, manifest.attempt)
                )
                await self._present(manifest)
            except (*FLAWS, ValueError) as error:
                passed.append(checkpoints.Passed(step, str(error)))
                continue
            try:
                seen = await self._put(account_id, workload, manifest, key, into)
                return Outcome(step, tuple(passed), seen)
            except BadProof as error:
                passed.append(checkpoints.Passed(step, error.detail))
                log.warning("checkpoint_passed_over", owner=owner, step=step, reason=error.detail)
        if into is not None and not passed:
            empty = Manifest(owner, 0, "", 0, "", ())
            return Outcome(None, (), await self._put(account_id, workload, empty, DataKey.generate(), into))
        return Outcome(None, tuple(passed))

    # --- one piece ----------------------------------------------------------------------------------------------------

    async def _fetch(self, talk: "_Talk", key: ObjectKey, piece: Piece) -> tuple[Part, bool]:
        objects, size = self._artefacts.objects, sealed_size(piece.size_bytes)
        call = objects.presign_put(key, size, CALL_S)
        await talk.say(Move(key, _shown(call)))
        digest = hashlib.sha256()

        async def sealed() -> AsyncIterator[bytes]:
            async for block in talk.take(size):
                digest.update(block)
                yield block

        if call is None:
            await objects.put(key, sealed(), size)
        moved = await talk.expect(Moved)
        if moved.sealed_bytes != size or (call is None and digest.hexdigest() != moved.sealed_sha256):
            raise BadProof("What came of a checkpoint is not what its host sent.", subject=key[-64:])
        return Part(piece.name, piece.offset, piece.size_bytes, key, size, moved.sealed_sha256), moved.is_torn

    async def _present(self, manifest: Manifest) -> None:
        """Check that all objects are there in their sizes, so that bytes are not moved in vain."""
        for part in manifest.parts:
            found = await self._artefacts.objects.stat(part.key)
            if found is None or found.size_bytes != part.sealed_bytes:
                raise NotFound("A part of this checkpoint is missing or of another size.", subject=part.key[-64:])

    async def _put(
        self, account_id: AccountId, workload: Workload, manifest: Manifest, key: DataKey, into: "Restoring | None"
    ) -> str:
        objects, done = self._artefacts.objects, 0
        pieces = tuple(Piece(part.name, part.offset, part.size_bytes) for part in manifest.parts)
        total = sum(piece.size_bytes for piece in pieces)
        async with self._talk(account_id, workload) as talk:
            await talk.say(RestoreOrder(manifest.step, key.raw, pieces, "" if into is None else into.volume))
            for part in manifest.parts:
                call = objects.presign_get(part.key, CALL_S)
                await talk.say(Move(part.key, _shown(call), part.sealed_bytes, part.sealed_sha256))
                if call is None:
                    async for block in await objects.get(part.key):
                        await talk.give(block)
                await talk.expect(Moved)
                done += part.size_bytes
                if into is not None:
                    await into.progress(done, total)
            return (await talk.expect(Restored)).seen

    # --- the line -----------------------------------------------------------------------------------------------------

    async def _work(self, principal: Principal, cluster_id: ClusterId) -> tuple[AccountId, Workload]:
        view = await self._clusters.get_own(principal, cluster_id)
        for workload in view.workloads:
            if workload.phase not in (WorkPhase.GONE, WorkPhase.STOPPING) and workload.delete_command is None:
                return view.cluster.account_id, workload
        raise Conflict("The work was deleted from its host, with its folder.", subject=cluster_id)

    @asynccontextmanager
    async def _talk(self, account_id: AccountId, workload: Workload) -> AsyncGenerator["_Talk"]:
        share = self.moves.take(account_id)
        try:
            async with asyncio.timeout(WHOLE_S):
                async with asyncio.timeout(OPEN_S):
                    opening = ChannelOpen(workload.workload_id, ChannelPurpose.CHECKPOINT)
                    channel = await self._broker.open(workload.host_id, opening)
                try:
                    yield _Talk(channel)
                finally:
                    with suppress(WindrowError, TimeoutError):
                        async with asyncio.timeout(OPEN_S):
                            await asyncio.shield(channel.close(ChannelClose()))
        except TimeoutError as error:
            raise DeadlineExceeded("The host did not move the checkpoint in time.") from error
        finally:
            share.give_back()


@dataclass(slots=True)
class _Talk:
    """Messages and bytes of one channel. Raises what the host closes it with."""

    channel: ChannelStream
    lines: Lines = field(default_factory=Lines)
    waiting: list[bytes] = field(default_factory=list)
    held: bytearray = field(default_factory=bytearray)

    async def say(self, message: Message) -> None:
        line = encode(message)
        for start in range(0, len(line), CHANNEL_CHUNK_BYTES):
            await self.channel.send(line[start : start + CHANNEL_CHUNK_BYTES])

    async def give(self, data: bytes) -> None:
        for start in range(0, len(data), CHANNEL_CHUNK_BYTES):
            await self.channel.send(data[start : start + CHANNEL_CHUNK_BYTES], BYTES_STREAM)

    async def expect(self, kind: type[T]) -> T:
        """The next message; InvalidInput for one of another kind."""
        while not self.waiting:
            await self._more()
        message = decode(self.waiting.pop(0))
        if not isinstance(message, kind):
            raise InvalidInput(f"The host said {type(message).__name__} where {kind.__name__} was due.")
        return message

    async def take(self, size: int) -> AsyncIterator[bytes]:
        """So many bytes of an object."""
        left = size
        while left:
            while len(self.held) < min(left, BLOCK_BYTES):
                await self._more()
            block = bytes(self.held[: min(left, BLOCK_BYTES)])
            del self.held[: len(block)]
            left -= len(block)
            yield block

    async def _more(self) -> None:
        async with asyncio.timeout(SILENCE_S):
            step = await self.channel.receive()
        if isinstance(step, ChannelClose):
            raise from_code(step.error_code, step.detail) if step.error_code else LinkClosed("The host hung up.")
        if step.stream != BYTES_STREAM:
            self.waiting += self.lines.feed(step.data)
            if len(self.waiting) > WAITING_MAX:
                raise InvalidInput("The host says more than anybody asked for.")
        elif len(self.held) <= 2 * BLOCK_BYTES:
            self.held += step.data
        else:
            raise InvalidInput("The host sends bytes that nobody asked for.")


def _shown(call: Presigned | None) -> Call | None:
    return None if call is None else Call(call.method, call.url, call.headers)


def context_of(owner: str, attempt: str) -> str:
    """What the data key of an owner's checkpoint is bound to."""
    return f"ckpt/{owner}/{attempt}"
