"""The runtime `process` with cards that are shared by MPS: a workload is a client of its card's control daemon."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from windrow_agent.core.sharing import Share, environment
from windrow_agent.runtimes import sandbox, shim
from windrow_agent.runtimes.mps import Daemons, MpsControl, meeting_folder
from windrow_agent.runtimes.port import Progress, Run, RunState
from windrow_agent.runtimes.process import ProcessRuntime, read_record
from windrow_proto.errors import Conflict
from windrow_proto.ids import MPS_PREFIX, GpuUuid, HostId, WorkloadId
from windrow_proto.model import GpuFacts, WorkloadSpec

NOTE: Final = "share.json"
"""In a workload's folder: the part that it was granted. While the file is there the card's daemon is needed."""


class MpsProcessRuntime(ProcessRuntime):
    """ProcessRuntime whose workloads may hold a part of a card. share_of: the part of a name as the cards are now."""

    def __init__(
        self,
        folder: Path,
        hidden: Path,
        host_id: HostId,
        is_bubblewrap_wanted: bool,
        shown: tuple[Path, ...],
        cards: Callable[[], tuple[GpuFacts, ...]],
        share_of: Callable[[str], Share | None],
        control: MpsControl,
    ) -> None:
        super().__init__(folder, hidden, host_id, is_bubblewrap_wanted, shown, cards)
        self._share_of = share_of
        self.daemons = Daemons(meeting_folder(folder), control, self._used)

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """As ever; and note the part, which what is in force later does not change."""
        await super().prepare(spec, progress)
        name = next((slot.gpu_uuid for slot in spec.slots if slot.gpu_uuid.startswith(MPS_PREFIX)), None)
        folder = self._path(spec.workload_id)
        if name is None or (folder / NOTE).exists():
            return
        share = self._share_of(name)
        if share is None:
            raise Conflict("There is no such part by MPS on this host any more.", subject=name)
        await asyncio.to_thread(shim.write_whole, str(folder), NOTE, asdict(share))

    async def start(self, workload_id: WorkloadId) -> Run:
        """As ever, once the card's daemon answers."""
        share = _noted(self._path(workload_id))
        if share is not None:
            await self.daemons.up(share.card)
        return await super().start(workload_id)

    async def observe(self, workload_id: WorkloadId) -> Run | None:
        """As ever; whoever looks at what runs sees to its daemon as well."""
        run = await super().observe(workload_id)
        is_running = run is not None and run.state is RunState.RUNNING
        if run is not None and is_running and any(slot.gpu_uuid.startswith(MPS_PREFIX) for slot in run.slots):
            share = _noted(self._path(workload_id))
            if share is not None:
                await self.daemons.keep(share.card)
        return run

    async def list(self) -> tuple[Run, ...]:
        """As ever; a daemon that nothing needs any more, as an agent that died may leave, ends."""
        if self.daemons.is_any:
            await self.daemons.end_unused()
        return await super().list()

    async def remove(self, workload_id: WorkloadId) -> None:
        """As ever; with the last lease of its parts a card's daemon ends."""
        share = _noted(self._path(workload_id))
        await super().remove(workload_id)
        if share is not None:
            await self.daemons.end_unused()

    def _told(self, folder: Path) -> sandbox.SandboxExtras:
        share = _noted(folder)
        if share is None:
            return sandbox.NOTHING_MORE
        met = self.daemons.folders(share.card)
        env = dict(environment(share, str(met.pipe), str(met.log)))
        return sandbox.SandboxExtras(env, (met.pipe, met.log), shares_memory=True)  # the daemon meets its clients there

    def _used(self) -> frozenset[str]:
        notes = [path.parent for path in self._folder.glob(f"*/{NOTE}") if (path.parent / "spec.json").exists()]
        return frozenset(share.card for share in map(_noted, notes) if share is not None)


def _noted(folder: Path) -> Share | None:
    found = read_record(folder / NOTE)
    return Share(GpuUuid(found["card"]), int(found["percent"]), int(found["memory_bytes"])) if found else None
