"""The orders of a run: one object of our store, which its helper reads again and again by one presigned call.

runs/<run>/orders                 {beat, ttl_s, job?, puts?, files?, end?}, see helper.py
runs/<run>/out/<step>/<number>    pieces of a checkpoint on their way out, plain
runs/<run>/in/<number>            pieces of the checkpoint that it goes on from, plain

All of it is deleted when the run is over.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from windrow_master.hybrid.purchases.model import ORPHAN_TTL_NS, Purchase
from windrow_master.hybrid.runs.port import Start
from windrow_master.jobs import answers
from windrow_master.jobs.model import JobId
from windrow_master.storage.model import ObjectKey, Presigned, object_key
from windrow_master.storage.object_store import ObjectStore
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Unavailable
from windrow_proto.units import SECOND

ROOT: Final = "runs"
CALL_S: Final = 2 * 24 * 3600
"""How long a presigned call that reads is good for: longer than any run."""
PUT_S: Final = 4 * 3600
"""And one that writes: a helper makes it at once, in its turn."""
Call = Sequence[Any]
"""Method, address and headers of a presigned call, as JSON has them."""


class Orders:
    """The orders of all runs. Raises Unavailable where the store of objects has no addresses."""

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects

    @property
    def are_possible(self) -> bool:
        """True where the store has addresses, as S3's protocol has."""
        return self.objects.presign_get(object_key(f"{ROOT}/none"), 1) is not None

    def start(self, uow: UnitOfWork, purchase: Purchase) -> str:
        """The user data of a run's order."""
        job = answers.find(uow, JobId(purchase.for_id))
        image = "" if job is None else job.request.image or ""
        return Start(self.get(orders_key(purchase.purchase_id))[1], image).text

    async def write(self, run_id: str, beat: int, orders: Mapping[str, object]) -> None:
        """Replace the orders. beat: another number each time, by which the helper knows that somebody is there."""
        text = json.dumps({**orders, "beat": beat, "ttl_s": ORPHAN_TTL_NS // SECOND}).encode()
        await self.objects.put(orders_key(run_id), _once(text), len(text))

    def get(self, key: ObjectKey) -> Call:
        """A call that reads an object."""
        return _shown(self.objects.presign_get(key, CALL_S))

    def put(self, key: ObjectKey, size_bytes: int) -> Call:
        """A call that creates an object of this size."""
        return _shown(self.objects.presign_put(key, size_bytes, PUT_S))


def orders_key(run_id: str) -> ObjectKey:
    """The object of a run's orders."""
    return object_key(f"{ROOT}/{run_id}/orders")


def out_key(run_id: str, step: int, number: int) -> ObjectKey:
    """A piece of a checkpoint on its way out."""
    return object_key(f"{ROOT}/{run_id}/out/{step}/{number:05d}")


def _shown(call: Presigned | None) -> Call:
    if call is None:
        raise Unavailable("A run needs a store of artefacts that it can reach: docs/artefacts.md says how to set one.")
    return [call.method, call.url, dict(call.headers)]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
