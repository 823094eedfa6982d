"""The caches of this host's leases, and the signed report when a cache is wiped. Loads the cache at its first use."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from windrow_agent.core.workload import WorkloadState
from windrow_agent.link.outbox import Outbox
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import Clock
from windrow_proto.wire_host import encode_event

if TYPE_CHECKING:
    from windrow_agent.storage.object_cache import Cache, Caches

log = structlog.get_logger()


class LeaseCaches:
    """Caches by workload, in a folder of this agent's."""

    def __init__(self, folder: Path, signing: SigningKey, host_id: HostId, clock: Clock, outbox: Outbox) -> None:
        self._folder, self._signing, self._host_id, self._clock = folder, signing, host_id, clock
        self._outbox = outbox
        self._caches: Caches | None = None

    async def of(self, workload_id: WorkloadId) -> "Cache":
        """The cache of a workload."""
        return await asyncio.to_thread(self._loaded().of, workload_id)

    async def wipe(self, state: WorkloadState) -> None:
        """Destroy the keys of a lease that has ended, take its files away, and tell so under this host's signature.

        Nothing is told of a workload that never had a cache.
        """
        if self._caches is None and not (self._folder / state.workload_id).is_dir():
            return
        wiped = await asyncio.to_thread(self._loaded().wipe, state.workload_id)
        if wiped is None:
            return
        from windrow_proto import wipes

        at_ns = self._clock.wall_ns()
        told = wipes.report(self._signing, self._host_id, state.workload_id, state.cluster_id, at_ns, wiped.fields())
        log.info("cache_wiped", workload_id=state.workload_id, files=wiped.files, left=wiped.left)
        try:
            await self._outbox.put(Lane.EVIDENCE, Kind.EVENT, encode_event(told))
        except StorageFailed as error:
            log.error("wipe_not_told", workload_id=state.workload_id, detail=error.detail)

    def _loaded(self) -> "Caches":
        if self._caches is None:
            from windrow_agent.storage.object_cache import Caches

            self._caches = Caches(self._folder)
        return self._caches
