"""The interface of an object store for artefacts; tests/contract/test_objects.py is the contract of every store. Pure.

A store is written by several at once and trusted with nothing but bytes: who may do what is decided before it is asked.
"""

from collections.abc import AsyncIterator
from typing import Final, Protocol

from windrow_master.storage.model import ObjectKey, ObjectPage, ObjectStat, Presigned
from windrow_proto.errors import TooLarge
from windrow_proto.units import MIB

BLOCK_BYTES: Final = 1 * MIB
"""Pieces in which a store gives objects back, and takes them best."""


class ObjectStore(Protocol):
    """Objects by key. An object is there whole or not at all, and what was put is there after a power cut.

    Every method may raise Unavailable or StorageFailed (the store does not answer, or refuses), and each has a
    deadline of its own. NotFound: there is no such object.
    """

    async def put(self, key: ObjectKey, chunks: AsyncIterator[bytes], cap_bytes: int) -> ObjectStat:
        """Store what comes, in place of what was there. Whatever the iterator raises ends it, with nothing changed.

        Raises TooLarge with nothing changed as soon as there are more than `cap_bytes`.
        """

    async def put_if_absent(self, key: ObjectKey, content: bytes) -> bool:
        """Create the object, at most SMALL_BYTES_MAX; False, with nothing changed, where there is one.

        Of any number of callers at once exactly one is told True.
        """

    async def get(self, key: ObjectKey, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Its bytes in pieces from `offset`, `length` of them or to the end. NotFound is raised by the call itself."""

    async def stat(self, key: ObjectKey) -> ObjectStat | None:
        """Return the known facts; None where there is none."""

    async def list(self, prefix: str, after: ObjectKey | None = None, limit: int = 1000) -> ObjectPage:
        """Objects whose keys begin with `prefix` ("" or ending with a slash), those behind `after`, at most `limit`."""

    async def delete(self, key: ObjectKey) -> None:
        """Remove it; nothing if it is not there."""

    def presign_put(self, key: ObjectKey, size_bytes: int, expires_s: int) -> Presigned | None:
        """A call that creates this object of exactly this size, if it is absent; None where a store has no addresses.

        expires_s: 1 to 604,800, which is the most that S3's signature version 4 allows.
        """

    def presign_get(self, key: ObjectKey, expires_s: int) -> Presigned | None:
        """A call that reads this object; None where a store has no addresses."""

    async def close(self) -> None:
        """Let go of threads and connections; safe to call twice."""


async def capped(chunks: AsyncIterator[bytes], cap_bytes: int) -> AsyncIterator[bytes]:
    """The same bytes in pieces of BLOCK_BYTES; raises TooLarge as soon as more than `cap_bytes` came."""
    held, total = bytearray(), 0
    async for chunk in chunks:
        total += len(chunk)
        if total > cap_bytes:
            raise TooLarge(f"The object is larger than the limit of {cap_bytes} bytes. Nothing of it was kept.")
        held += chunk
        while len(held) >= BLOCK_BYTES:
            block = bytes(held[:BLOCK_BYTES])
            del held[:BLOCK_BYTES]
            yield block
    if held:
        yield bytes(held)
