"""Gives a workload the cards of its lease: NVIDIA's by id, those of other makers by their files in /dev. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.model import GpuFacts, WorkloadSpec

COMPUTE_DRIVER: Final = "/dev/kfd"
"""The file that programs for AMD's cards open for all of them; it lets them use those whose render node they can
open."""
_OF_AMD: Final = re.compile(r"GPU-[0-9a-f]{8,16}")
MADE_UP: Final = "PCI-"
"""Ids that NVIDIA's driver makes have several parts, one of AMD's has one, and what begins so is our own."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The cards that a workload is given. nvidia: ids for NVIDIA's own tools; amd: ids for ROCm; nodes: files in
    /dev."""

    nvidia: tuple[str, ...] = ()
    amd: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def granted(spec: WorkloadSpec) -> tuple[str, ...]:
    """The ids of all cards and slices of a workload."""
    return tuple(slot.gpu_uuid for slot in spec.slots if slot.gpu_uuid)


def by_id(spec: WorkloadSpec) -> Devices:
    """The devices that are known from the ids alone: all that NVIDIA's and AMD's own tools need."""
    ids = granted(spec)
    amd = tuple(one for one in ids if _OF_AMD.fullmatch(one))
    return Devices(tuple(one for one in ids if one not in amd and not one.startswith(MADE_UP)), amd)


def of(spec: WorkloadSpec, cards: Iterable[GpuFacts]) -> Devices:
    """The same with the files that a container needs. cards: of this host, as they are now. Raises RuntimeUnavailable
    where a card has none that is known: a container without its card would be paid for in vain."""
    told = by_id(spec)
    others = [one for one in granted(spec) if one not in told.nvidia]
    by_uuid = {str(card.uuid): card for card in cards} if others else {}
    nodes: list[str] = []
    for uuid in others:
        card = by_uuid.get(uuid)
        node = str(card.more.get("render_node", "")) if card is not None else ""
        if card is None or not node:
            raise RuntimeUnavailable(f"No device file in /dev is known for GPU {uuid}. Try again in a minute.")
        nodes += [node, *([COMPUTE_DRIVER] if card.vendor == "amd" else [])]
    return Devices(told.nvidia, told.amd, tuple(sorted(set(nodes))))
