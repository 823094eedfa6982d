"""Judges a GPU's health by the conditions of its host, and its PCIe link by its inventory. Pure.

Conditions come and go with the agent's own hysteresis (30 s without it before one ends), so a tier does not flicker
with a temperature.
"""

from collections.abc import Iterable

from windrow_master.fleet.conditions import CLAIM
from windrow_master.fleet.model import Condition
from windrow_master.fleet.tiers import Health, Standing
from windrow_proto.conditions import Effect, Scope, find, split
from windrow_proto.model import GpuFacts


def standing_of(gpu: GpuFacts, conditions: Iterable[Condition], reliability: float | None) -> Standing:
    """Return the observations of this GPU of a host with these conditions and this reliability (see reliability.py)."""
    return Standing(health_of(gpu.uuid, conditions), reliability, link_at_work(gpu))


def health_of(uuid: str, conditions: Iterable[Condition]) -> Health | None:
    """The worst that a condition says of this GPU; None while the driver tells nothing of any."""
    found = [(known, split(one.code)[1]) for one in conditions if (known := find(one.code)) is not None]
    mine = {known.effect for known, subject in found if subject == uuid}
    if Effect.FAULT in mine:
        return Health.FAILED
    if any(known.scope is Scope.GPUS and not known.startswith(CLAIM) for known, _ in found):
        return None
    return Health.DEGRADED if Effect.DEGRADE in mine else Health.OK


def link_at_work(gpu: GpuFacts) -> tuple[int, int] | None:
    """Generation and lanes of its PCIe link as last seen while it was busy; None before that."""
    generation, width = gpu.more.get("pcie_generation_loaded"), gpu.more.get("pcie_width_loaded")
    if not isinstance(generation, int) or not isinstance(width, int) or not 0 < generation <= 16 or not 0 < width <= 32:
        return None
    return generation, width
