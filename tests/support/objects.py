"""A store of objects in memory, which can be cut off after any number of calls and whose disk can rot."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from windrow_master.storage.model import (
    LIST_MAX,
    SMALL_BYTES_MAX,
    ObjectKey,
    ObjectPage,
    ObjectStat,
    Presigned,
    key_prefix,
    object_key,
)
from windrow_master.storage.object_store import capped
from windrow_proto.errors import NotFound, TooLarge, Unavailable

BEGAN_NS = 1_700_000_000 * 10**9


@dataclass
class MemoryStore:
    """Whole or not at all, like the others. cut_after: calls that are answered before every call fails."""

    held: dict[ObjectKey, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    now_ns: int = BEGAN_NS
    made_ns: dict[ObjectKey, int] = field(default_factory=dict)

    def _call(self) -> None:
        if self.cut_after is not None:
            if self.cut_after <= 0:
                raise Unavailable("cut")
            self.cut_after -= 1

    def _keep(self, key: ObjectKey, content: bytes) -> ObjectStat:
        self.held[key], self.made_ns[key] = content, self.now_ns
        return ObjectStat(key, len(content), self.now_ns)

    async def put(self, key: ObjectKey, chunks: AsyncIterator[bytes], cap_bytes: int) -> ObjectStat:
        object_key(key)
        self._call()
        content = b"".join([block async for block in capped(chunks, cap_bytes)])
        return self._keep(key, content)

    async def put_if_absent(self, key: ObjectKey, content: bytes) -> bool:
        self._call()
        if len(content) > SMALL_BYTES_MAX:
            raise TooLarge
        await asyncio.sleep(0)
        if object_key(key) in self.held:
            return False
        self._keep(key, content)
        return True

    async def get(self, key: ObjectKey, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        self._call()
        if object_key(key) not in self.held:
            raise NotFound(subject=key)
        content = self.held[key][offset : None if length is None else offset + length]

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(content), 1 << 20):
                yield content[start : start + (1 << 20)]

        return pieces()

    async def stat(self, key: ObjectKey) -> ObjectStat | None:
        self._call()
        content = self.held.get(object_key(key))
        return None if content is None else ObjectStat(key, len(content), self.made_ns[key])

    async def list(self, prefix: str, after: ObjectKey | None = None, limit: int = LIST_MAX) -> ObjectPage:
        self._call()
        prefix = key_prefix(prefix)
        found = sorted(key for key in self.held if key.startswith(prefix) and key > (after or ""))
        objects = tuple(
            ObjectStat(key, len(self.held[key]), self.made_ns.get(key, self.now_ns)) for key in found[:limit]
        )
        return ObjectPage(objects, found[limit - 1] if len(found) > limit else None)

    async def delete(self, key: ObjectKey) -> None:
        self._call()
        self.held.pop(object_key(key), None)

    def presign_put(self, key: ObjectKey, size_bytes: int, expires_s: int) -> Presigned | None:
        return None

    def presign_get(self, key: ObjectKey, expires_s: int) -> Presigned | None:
        return None

    async def close(self) -> None:
        return None
