"""Partitions idle cards into slices when the Master asks and their owner allows it, one card at a time."""

from collections.abc import Callable, Mapping

import structlog

from windrow_agent.core.gpu_port import CutRefusedError
from windrow_agent.core.layout import Layouts, cut_refusal, grant_refusal
from windrow_agent.core.sharing import share_refusal
from windrow_agent.report.sampler import Sampler
from windrow_proto.errors import Conflict, WindrowError
from windrow_proto.ids import GpuUuid
from windrow_proto.model import NO_GPU, PartitionSpec, WorkloadSpec

log = structlog.get_logger()


class Partitioner:
    """The cards of one host. held: what of them somebody uses now, by UUID."""

    def __init__(self, sampler: Sampler, layouts: Layouts, held: Callable[[], Mapping[str, str]]) -> None:
        self._sampler, self._layouts, self._held = sampler, layouts, held
        self._cutting = NO_GPU

    def refusal(self, spec: PartitionSpec) -> WindrowError | None:
        """Why this cannot be done now, or None."""
        if self._cutting:
            return Conflict("Another GPU of this host is being cut.", subject=spec.gpu_uuid)
        return cut_refusal(spec, self._sampler.gpus.gpus, self._layouts, self._held().keys())

    def create_refusal(self, spec: WorkloadSpec) -> WindrowError | None:
        """Why a workload cannot have what it was granted, as the cards are now; None: it can."""
        gpus = self._sampler.gpus.gpus
        return grant_refusal(spec.slots, gpus, self._cutting) or share_refusal(spec, gpus)

    async def cut(self, spec: PartitionSpec) -> Mapping[str, str]:
        """Do it; the next inventory says what became of the card. Raises Conflict with the driver's reason."""
        refused = self.refusal(spec)
        if refused is not None:
            raise refused
        self._cutting = GpuUuid(spec.gpu_uuid)  # before anything is awaited: a workload may come meanwhile
        try:
            await self._sampler.cut(spec.gpu_uuid, spec.profiles)
        except CutRefusedError as error:
            raise Conflict(f"The GPU was not cut: {error}.", subject=spec.gpu_uuid) from error
        finally:
            self._cutting = NO_GPU
        log.info("gpu_cut", gpu_uuid=spec.gpu_uuid, profiles=",".join(spec.profiles))
        return {"profiles": ",".join(spec.profiles) or "whole"}
