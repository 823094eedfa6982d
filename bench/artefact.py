"""`artefact`: a file uploaded and downloaded as an artefact, sealed, beside obstore alone on the same server.

Both in turn on the same bytes. The server is Ceph's RGW where Debian's is installed, else moto's stand-in, whose own
Python costs more than either client: the row says which, and with moto no ratio is given as the result.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator

import obstore

from bench._report import last_line, median, scale, table
from tests import services
from tests.support.s3 import bucket, ceph, moto
from windrow_master.storage.model import object_key
from windrow_master.storage.s3_store import PARTS_AT_ONCE, S3Settings, S3Store
from windrow_master.storage.sealing import Tally, opened, sealed
from windrow_proto.data_keys import DataKey
from windrow_proto.frames import SALT_BYTES, Sealer, sealed_size
from windrow_proto.units import MIB

SIZE_BYTES = 128 * MIB
"""Of each of 2 * TURNS uploads: what was overwritten stays in the server's 2 GiB of memory for hours."""
BLOCK_BYTES = 1 * MIB
TURNS = 5
KEY = object_key("bench/artefact")


async def blocks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), BLOCK_BYTES):
        yield content[start : start + BLOCK_BYTES]


async def ours(store: S3Store, content: bytes) -> tuple[float, float]:
    """Seconds up and down with what a Master does: hash, seal, store; read, open."""
    key, tally = DataKey.generate(), Tally()
    began = time.monotonic()
    await store.put(
        KEY, sealed(Sealer(key, KEY, os.urandom(SALT_BYTES)), blocks(content), tally), sealed_size(len(content))
    )
    up = time.monotonic() - began
    began, back = time.monotonic(), bytearray()
    async for block in opened(key, KEY, await store.get(KEY)):
        back += block
    down = time.monotonic() - began
    assert tally.digest.digest() == hashlib.sha256(back).digest(), "what came back is not what went up"
    return up, down


async def bare(store: S3Store, content: bytes) -> tuple[float, float]:
    """The same bytes by obstore alone."""
    began = time.monotonic()
    await obstore.put_async(store._bulk, "bare", content, max_concurrency=PARTS_AT_ONCE)
    up = time.monotonic() - began
    began = time.monotonic()
    size = 0
    async for piece in (await obstore.get_async(store._bulk, "bare")).stream(min_chunk_size=BLOCK_BYTES):
        size += len(piece)
    assert size == len(content)
    return up, time.monotonic() - began


async def measured(settings: S3Settings, content: bytes) -> list[tuple[float, float, float, float]]:
    store = S3Store(settings)
    await bare(store, content[: 8 * MIB])  # the first call of each client makes its connections
    found = []
    for _ in range(TURNS):
        found.append((*await ours(store, content), *await bare(store, content)))
    await store.close()
    return found


def main() -> None:
    content = os.urandom(max(8 * MIB, int(SIZE_BYTES * scale()) // MIB * MIB))
    version = services.found()["ceph"].version
    server = f"Ceph RGW {version}" if version else "moto"
    with ceph() if version else moto() as where:
        rows = asyncio.run(measured(bucket(*where), content))
    mib = len(content) / MIB
    up, down, bare_up, bare_down = (mib / median([row[column] for row in rows]) for column in range(4))
    table(
        [
            ("server", server),
            ("size, MiB", int(mib)),
            ("artefact, sealed: up, MiB/s", up),
            ("obstore alone: up, MiB/s", bare_up),
            ("artefact, sealed: down, MiB/s", down),
            ("obstore alone: down, MiB/s", bare_down),
        ]
    )
    is_real = version is not None
    ratio = min(up / bare_up, down / bare_down)
    detail = {
        "server": server,
        "size_mib": mib,
        "up_mib_s": round(up, 1),
        "down_mib_s": round(down, 1),
        "obstore_up_mib_s": round(bare_up, 1),
        "obstore_down_mib_s": round(bare_down, 1),
        "ratio_of_this_server": round(ratio, 3),
        "missing": "" if is_real else "no Ceph RGW here: PROVISION=1 make test installs it",
    }
    last_line("artefact", round(min(up, down), 1), "MiB/s", "obstore alone", ratio if is_real else None, detail)


if __name__ == "__main__":
    main()
