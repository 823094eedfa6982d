"""Limits uploads to this Master's disk while they are on their way: by account against its quota, and by the disk.
Pure.

begin ──▶ what is announced is reserved ──▶ pieces: more than that is reserved as it comes ──▶ all of it given back
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import TooLarge
from windrow_proto.ids import AccountId
from windrow_proto.units import GIB, MIB

QUOTA_BYTES: Final = 100 * GIB
"""Of one account's artefacts, volumes and jobs together, those on their way included."""
STEP_BYTES: Final = 16 * MIB
"""Reserved at a time where no size was announced, or more comes."""
LOOK_BYTES: Final = MIB
"""Between two looks at the disk: all uploads together come to no more than a floor in that time."""


class Uploads:
    """All that is on its way."""

    def __init__(self, admit: Callable[[int], None]) -> None:
        """admit: raises DiskFull where so many more bytes do not fit on the disk that they go to."""
        self.admit = admit
        self._coming: Counter[AccountId] = Counter()

    def coming_bytes(self, account_id: AccountId) -> int:
        """Return the bytes that an account has reserved."""
        return self._coming[account_id]

    @contextmanager
    def begin(self, account_id: AccountId, used_bytes: int, size_bytes: int | None) -> Iterator["Upload"]:
        """One upload. used_bytes: what the account keeps already; size_bytes: what is announced, None: nothing is.

        Raises TooLarge where the quota has no space for it, DiskFull where the disk has none.
        """
        upload = Upload(self, account_id, QUOTA_BYTES - used_bytes)
        self.admit(size_bytes or 0)
        try:
            upload.reserve(1 if size_bytes is None else size_bytes, is_announced=size_bytes is not None)
            yield upload
        finally:
            upload.give_back()

    def reserve(self, account_id: AccountId, wanted_bytes: int, least_bytes: int, left_bytes: int) -> int:
        """Hold so much more, or as much of it as the quota leaves, but `least_bytes`; returns how much.

        left_bytes: what the quota leaves for all that is on its way. Raises TooLarge.
        """
        coming = self._coming[account_id]
        got = max(least_bytes, min(wanted_bytes, left_bytes - coming))
        if coming + got > left_bytes:
            under_way = f", of which {coming // MIB:,} MiB are on their way" if coming else ""
            raise TooLarge(
                f"Your artefacts, volumes and jobs may take {QUOTA_BYTES // GIB} GiB; "
                f"{max(0, left_bytes) // MIB:,} MiB are left{under_way}. Delete some: windrow artefact rm"
            )
        self._coming[account_id] += got
        return got

    def give_back(self, account_id: AccountId, reserved_bytes: int) -> None:
        """An upload has ended, however."""
        self._coming[account_id] -= reserved_bytes
        if self._coming[account_id] <= 0:
            del self._coming[account_id]


@dataclass(slots=True)
class Upload:
    """One upload. It holds what it has reserved until it ends."""

    _uploads: Uploads
    _account_id: AccountId
    _left_bytes: int
    _reserved: int = 0
    _came: int = 0
    _looked_at: int = 0

    async def pieces(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The body as it comes. Raises TooLarge, DiskFull."""
        async for piece in body:
            self._came += len(piece)
            if self._came > self._reserved:
                self.reserve(self._came - self._reserved)
            if self._came - self._looked_at >= LOOK_BYTES:
                self._looked_at = self._came
                self._uploads.admit(0)
            yield piece

    def reserve(self, least_bytes: int, *, is_announced: bool = False) -> None:
        """Hold so much more, and some ahead where nobody knows how much comes."""
        wanted = least_bytes if is_announced else STEP_BYTES
        self._reserved += self._uploads.reserve(self._account_id, wanted, least_bytes, self._left_bytes)

    def give_back(self) -> None:
        """It has ended."""
        self._uploads.give_back(self._account_id, self._reserved)
        self._reserved = 0
