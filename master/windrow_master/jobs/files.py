"""Keeps the files of jobs in the object store: their folder, and of each attempt its log and changed files.

jobs/<group>/folder                      a tar, as the renter sent it
jobs/<job>/<attempt>/log/<offset>        pieces of the log in their order; the next one begins where the last one ends
jobs/<job>/<attempt>/files               a tar of what the work changed

Everything may be done twice: a piece of a log lies under its offset, a tar replaces itself.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final

from windrow_master.clusters.request import FILES_CAP_BYTES, LOG_CUT, LOG_KEPT_BYTES
from windrow_master.identity.model import Principal
from windrow_master.jobs.model import JobId
from windrow_master.network.tar import TarCheck
from windrow_master.network.workload_io import WorkAccess
from windrow_master.storage.model import ARTEFACT_BYTES_MAX, ObjectKey, ObjectStat, object_key
from windrow_master.storage.object_store import ObjectStore
from windrow_proto.ids import ClusterId
from windrow_proto.units import MIB

ROOT: Final = "jobs"
LOG_KEPT_MAX: Final = LOG_KEPT_BYTES + MIB
"""Of one attempt: what is read at once, and the last piece."""
FILES_KEPT_MAX: Final = ARTEFACT_BYTES_MAX
"""Of what one attempt changed: as much as any artefact; the rest is cut off."""


class JobFiles:
    """The folders, logs and files of jobs. Raises StorageFailed, Unavailable, DiskFull as the store does."""

    def __init__(self, objects: ObjectStore, inside: WorkAccess) -> None:
        """inside: the way into workloads."""
        self._objects, self.inside = objects, inside

    # --- the folder ------------------------------------------------------------------------------------------------

    async def put_folder(self, group: str, body: AsyncIterator[bytes]) -> int:
        """Keep the folder of a submission; returns its bytes. Raises TooLarge, and InvalidInput for what is no tar."""
        return (await self._objects.put(folder_key(group), _tar(body), FILES_CAP_BYTES)).size_bytes

    async def send_folder(self, principal: Principal, cluster_id: ClusterId, group: str) -> None:
        """Send it to work that waits for it, and let that start."""
        body = await self._objects.get(folder_key(group))
        await self.inside.send_files(principal, cluster_id, body, commit=True)

    # --- the log ---------------------------------------------------------------------------------------------------

    async def take_log(
        self, principal: Principal, cluster_id: ClusterId, job_id: JobId, attempt: int
    ) -> tuple[int, bool]:
        """Keep what its log has grown by; returns the bytes that are kept then, and whether a cap has cut it."""
        end = await self.log_bytes(job_id, attempt)
        if end >= LOG_KEPT_MAX:
            return end, True
        data, is_cut = await self.inside.log(principal, cluster_id, end)
        return await self.keep_log(job_id, attempt, end, data), is_cut

    async def keep_log(self, job_id: JobId, attempt: int, end: int, data: bytes) -> int:
        """Keep what a log has grown by, of which `end` bytes are kept; returns the bytes that are kept then."""
        if len(data) > LOG_KEPT_MAX - end:
            data = data[: LOG_KEPT_MAX - end] + LOG_CUT
        if data:
            await self._objects.put(object_key(f"{_attempt(job_id, attempt)}/log/{end:012d}"), _once(data), len(data))
        return end + len(data)

    async def log_bytes(self, job_id: JobId, attempt: int) -> int:
        """Return how much of its log is kept."""
        parts = await self._log_parts(job_id, attempt)
        return sum(part.size_bytes for part in parts)

    async def log(self, job_id: JobId, attempt: int, offset: int = 0) -> AsyncIterator[bytes]:
        """Return the kept log from byte `offset`."""
        at = 0
        for part in await self._log_parts(job_id, attempt):
            skip = max(0, offset - at)
            at += part.size_bytes
            if skip < part.size_bytes:
                async for piece in await self._objects.get(part.key, skip):
                    yield piece

    async def _log_parts(self, job_id: JobId, attempt: int) -> list[ObjectStat]:
        found: list[ObjectStat] = []
        after: ObjectKey | None = None
        while True:
            page = await self._objects.list(f"{_attempt(job_id, attempt)}/log/", after)
            found += page.objects
            if (after := page.after) is None:
                return found

    # --- the files -------------------------------------------------------------------------------------------------

    async def take_files(
        self, principal: Principal, cluster_id: ClusterId, job_id: JobId, attempt: int, room_bytes: int
    ) -> tuple[int, bool]:
        """Keep the files that its work changed, as a tar of at most room_bytes; returns its bytes, and whether it
        was cut."""
        cap_bytes = min(FILES_KEPT_MAX, room_bytes)
        pieces = await self.inside.fetch_files(principal, cluster_id, changed_only=True)
        async with aclosing(pieces):
            first = _First(pieces, cap_bytes)
            kept = await self._objects.put(files_key(job_id, attempt), first.read(), cap_bytes)
        return kept.size_bytes, first.is_cut

    async def files(self, job_id: JobId, attempt: int, offset: int = 0) -> AsyncIterator[bytes]:
        """That tar from byte `offset` on. Raises NotFound."""
        return await self._objects.get(files_key(job_id, attempt), offset)


def folder_key(group: str) -> ObjectKey:
    """The object of a submission's folder."""
    return object_key(f"{ROOT}/{group}/folder")


def _attempt(job_id: JobId, attempt: int) -> str:
    return f"{ROOT}/{job_id}/{attempt:04d}"


def files_key(job_id: JobId, attempt: int) -> ObjectKey:
    """The object of the files that an attempt changed."""
    return object_key(f"{_attempt(job_id, attempt)}/files")


class _First:
    """The first bytes of a stream. is_cut: whether it had more."""

    def __init__(self, pieces: AsyncGenerator[bytes], count: int) -> None:
        self._pieces, self._left, self.is_cut = pieces, count, False

    async def read(self) -> AsyncIterator[bytes]:
        """Until it ends, or the first byte too many."""
        async for piece in self._pieces:
            if self._left:
                yield piece[: self._left]
            self.is_cut = len(piece) > self._left
            if self.is_cut:
                return
            self._left -= len(piece)


async def _tar(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same as long as it is a tar archive. Raises InvalidInput."""
    check = TarCheck()
    async for piece in body:
        check.feed(piece)
        yield piece
    check.end()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
