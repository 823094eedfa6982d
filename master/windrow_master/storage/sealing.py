"""Seals incoming bytes and opens sealed ones, block by block on a thread, while the next block is on its way."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field

from windrow_proto.data_keys import DataKey
from windrow_proto.frames import Opener, Sealer


@dataclass(slots=True)
class Tally:
    """Counts the bytes that have passed by."""

    size_bytes: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)


def sealed(sealer: Sealer, body: AsyncIterator[bytes], tally: Tally) -> AsyncGenerator[bytes]:
    """The blocks of an artefact as they are stored; what they were is told to `tally`."""

    def step(block: bytes) -> bytes:
        tally.size_bytes += len(block)
        tally.digest.update(block)
        return sealer.feed(block)

    return _beside(body, step, sealer.finish)


def opened(key: DataKey, object_id: str, blocks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the plain bytes. Raises BadProof at the first frame that is not as it was stored."""
    opener = Opener(key, object_id)
    return _beside(blocks, opener.feed, opener.finish)


async def _beside(
    blocks: AsyncIterator[bytes], step: Callable[[bytes], bytes], finish: Callable[[], bytes]
) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    ready.set_result(b"")
    try:
        async for block in blocks:
            made = await ready
            ready = loop.run_in_executor(None, step, block)
            if made:
                yield made
        for last in (await ready, await asyncio.to_thread(finish)):
            if last:
                yield last
    finally:
        # Whoever wanted it may have gone: then nobody asks how it ended.
        ready.add_done_callback(lambda done: done.cancelled() or done.exception())
