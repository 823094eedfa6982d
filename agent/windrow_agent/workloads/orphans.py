"""Removes containers and processes with this host's mark that nobody asked for; those in the journal are left alone."""

import contextlib
from collections.abc import Mapping
from typing import Final

import structlog

from windrow_agent.runtimes.port import Runtime
from windrow_agent.storage.journal import Journal
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import WorkloadId
from windrow_proto.model import WorkloadPhase
from windrow_proto.units import MINUTE

log = structlog.get_logger()

ORPHAN_GRACE_NS: Final = 5 * MINUTE
"""Before what carries our mark and nobody asked for is removed."""
ORPHANS_EVERY_NS: Final = MINUTE


class Orphans:
    """Workloads that the runtimes have beyond the journal, and since when each was seen."""

    def __init__(self, journal: Journal, runtimes: Mapping[str, Runtime]) -> None:
        self.journal, self.runtimes = journal, runtimes
        self._first_ns: dict[WorkloadId, int] = {}

    async def reap(self, now_ns: int) -> None:
        """Remove what was seen long enough, and at once what was deleted before. now_ns: monotonic."""
        seen: set[WorkloadId] = set()
        for runtime in self.runtimes.values():
            try:
                runs = await runtime.list()
            except RuntimeUnavailable:
                continue
            for run in runs:
                entry = self.journal.workloads.get(run.workload_id)
                if entry is not None and entry.state.phase is not WorkloadPhase.GONE:
                    continue
                seen.add(run.workload_id)
                first_ns = self._first_ns.setdefault(run.workload_id, now_ns)
                if run.workload_id in self.journal.tombstones or now_ns - first_ns >= ORPHAN_GRACE_NS:
                    log.warning("orphan_removed", workload_id=run.workload_id, runtime=runtime.name)
                    with contextlib.suppress(RuntimeUnavailable):
                        await runtime.remove(run.workload_id)
        self._first_ns = {key: first for key, first in self._first_ns.items() if key in seen}
