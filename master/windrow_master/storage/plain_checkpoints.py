"""Checkpoints of places without an agent, which seals nothing: their pieces cross the store as plain objects, and are
sealed and opened here.

take_in   plain objects ─▶ sealed parts ─▶ manifest ─▶ the plain ones are deleted
lay_out   newest whole checkpoint ─▶ plain objects, for whoever has a call for each
"""

import hashlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence

import structlog

from windrow_master.storage import checkpoints
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.model import ObjectKey, Part, object_key
from windrow_master.storage.sealing import Tally, opened, sealed
from windrow_master.storage.transfer import ATTEMPT_BYTES, FLAWS, context_of
from windrow_proto.checkpoints import Piece, check_pieces
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import BadProof
from windrow_proto.frames import SALT_BYTES, Sealer, sealed_size
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock

log = structlog.get_logger(__name__)


class PlainCheckpoints:
    """Raises what the store of objects raises."""

    def __init__(self, artefacts: ArtefactService, clock: Clock) -> None:
        self._artefacts, self._clock = artefacts, clock

    async def take_in(
        self, account_id: AccountId, owner: str, step: int, pieces: Sequence[Piece], plain: Sequence[ObjectKey]
    ) -> bool:
        """Make these plain objects the checkpoint of this step; False: there is one of it, or a newer one. Raises
        BadProof where one is not as large as its piece, InvalidInput for pieces of no files."""
        check_pieces(tuple(pieces))
        objects = self._artefacts.objects
        known = await checkpoints.steps(objects, owner)
        if known and known[0] >= step:
            return False
        data_key, attempt = DataKey.generate(), os.urandom(ATTEMPT_BYTES).hex()
        parts = list[Part]()
        for number, (piece, source) in enumerate(zip(pieces, plain, strict=True)):
            key, tally, digest = checkpoints.part_key(owner, step, attempt, number), Tally(), hashlib.sha256()
            blocks = sealed(Sealer(data_key, key, os.urandom(SALT_BYTES)), await objects.get(source), tally)
            size = sealed_size(piece.size_bytes)
            await objects.put(key, _digested(blocks, digest), size)
            if tally.size_bytes != piece.size_bytes:
                raise BadProof("A piece of a checkpoint is not as large as it was said to be.", subject=piece.name[:64])
            parts.append(Part(piece.name, piece.offset, piece.size_bytes, key, size, digest.hexdigest()))
        wrapped = self._artefacts.account_key(account_id).wrap(data_key, context_of(owner, attempt)).hex()
        manifest = checkpoints.manifest_of(owner, step, attempt, self._clock.wall_ns(), wrapped, parts)
        is_ours = await checkpoints.commit(objects, manifest)
        await checkpoints.tidy(objects, owner, self._clock.wall_ns())
        return is_ours

    async def lay_out(
        self, account_id: AccountId, owner: str, prefix: str
    ) -> tuple[int, Mapping[ObjectKey, str]] | None:
        """Open the newest whole checkpoint into plain objects below a prefix: its step, and the file that each is a
        piece of, in order. None: there is none."""
        objects = self._artefacts.objects
        for step in await checkpoints.steps(objects, owner):
            try:
                manifest = await checkpoints.read(objects, owner, step)
                wrapped = bytes.fromhex(manifest.wrapped_key)
                key = self._artefacts.account_key(account_id).unwrap(wrapped, context_of(owner, manifest.attempt))
                laid = dict[ObjectKey, str]()
                for number, part in enumerate(manifest.parts):
                    plain = object_key(f"{prefix}/{number:05d}")
                    await objects.put(plain, opened(key, part.key, await objects.get(part.key)), part.size_bytes)
                    laid[plain] = part.name
                return step, laid
            except (*FLAWS, ValueError) as error:
                log.warning("checkpoint_passed_over", owner=owner, step=step, reason=str(error)[:200])
        return None


async def _digested(blocks: AsyncIterator[bytes], digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    async for block in blocks:
        digest.update(block)
        yield block
