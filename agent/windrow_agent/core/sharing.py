"""Cards that their owner shares among own programs by MPS: the parts of each card, and the environment of a program in
a part. Pure.

The owner writes the parts of a card in hundredths (`0=50,25,25`): of its threads and, by the same share, of its memory.
What keeps such parts apart is software, and the fault of one program ends its neighbours: the Master gives them to the
host's owner only. A card that is cut by MIG is not shared by MPS.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from windrow_agent.core.layout import ALL
from windrow_proto.errors import Conflict, InvalidInput, WindrowError
from windrow_proto.ids import MPS_PREFIX, GpuUuid
from windrow_proto.model import GpuFacts, GpuSlice, Isolation, WorkloadSpec
from windrow_proto.units import MIB

PARTS_MAX: Final = 16
"""Parts of one card; the wire carries no more. MPS itself takes 48 programs and more (NVIDIA, MPS documentation)."""
WHOLE_PERCENT: Final = 100
CAPABILITY_MIN: Final = 7
"""Compute capability from which each program under MPS has an address space and limits of its own (Volta)."""
RUNTIME: Final = "process"
"""The only one that can have such a part: MPS serves one user at a time, and in a container another one works."""

Shares = Mapping[str, tuple[int, ...]]
"""Hundredths by the UUID or the index of a card, or ALL."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a card. percent: of its threads."""

    card: GpuUuid
    percent: int
    memory_bytes: int


def parse_shares(texts: Iterable[str]) -> Shares:
    """Parses the owner's shares, one text a card: CARD=PERCENT,PERCENT. Raises InvalidInput with the reason."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        card, mark, rest = text.partition("=")
        words = rest.split(",")
        if not card or not mark or not 1 <= len(words) <= PARTS_MAX:
            raise InvalidInput(f"{text!r} does not share a card: write CARD=PERCENT,... with 1 to {PARTS_MAX} parts.")
        wrong = [word for word in words if not (word.isascii() and word.isdecimal() and 1 <= int(word[:4]) <= 100)]
        if wrong:
            raise InvalidInput(f"{text!r} shares no card: {wrong[0]!r} is no percentage from 1 to 100.")
        parts = tuple(int(word) for word in words)
        if sum(parts) > WHOLE_PERCENT:
            raise InvalidInput(f"{text!r} shares no card: its parts are {sum(parts)} % of it.")
        if card in found:
            raise InvalidInput(f"{text!r} shares no card: {card} is named twice.")
        found[card] = parts
    return found


def with_shares(gpus: Iterable[GpuFacts], shares: Shares) -> tuple[GpuFacts, ...]:
    """The cards with the parts that their owner shares them in, named after card and place."""
    return tuple(replace(gpu, slices=(*gpu.slices, *_parts(gpu, shares))) for gpu in gpus) if shares else tuple(gpus)


def _parts(gpu: GpuFacts, shares: Shares) -> Iterable[GpuSlice]:
    keys = (gpu.uuid, str(gpu.index), ALL)
    percents = next((shares[key] for key in keys if key in shares), ())
    is_able = gpu.vendor == "nvidia" and (gpu.compute_capability_major or 0) >= CAPABILITY_MIN and not gpu.mig_enabled
    for number, percent in enumerate(percents if is_able and gpu.memory_bytes else (), 1):
        memory = (gpu.memory_bytes or 0) * percent // WHOLE_PERCENT // MIB * MIB  # rounded down: all fit together
        uuid = GpuUuid(f"{MPS_PREFIX}{gpu.uuid.removeprefix('GPU-')}-{number}")
        yield GpuSlice(uuid, f"mps.{percent}", Isolation.MPS, memory, percent)


def share_of(uuid: str, gpus: Iterable[GpuFacts]) -> Share | None:
    """The part of this name; None: there is none."""
    found = ((gpu, part) for gpu in gpus for part in gpu.slices if part.uuid == uuid)
    return next((Share(gpu.uuid, part.compute_slices, part.memory_bytes) for gpu, part in found), None)


def share_refusal(spec: WorkloadSpec, gpus: Collection[GpuFacts]) -> WindrowError | None:
    """Why a workload cannot have these slots as far as shared cards go; None: it can."""
    shared = {gpu.uuid for gpu in gpus if any(part.isolation is Isolation.MPS for part in gpu.slices)}
    parts = [slot for slot in spec.slots if slot.gpu_uuid.startswith(MPS_PREFIX)]
    for slot in spec.slots:
        if slot.gpu_uuid in shared:
            return Conflict(
                f"GPU {slot.gpu_uuid} is shared in parts by MPS; it cannot be had as a whole.", subject=slot.slot_id
            )
    for slot in parts:
        if slot.isolation is not Isolation.MPS:
            return Conflict("A part by MPS was granted as something better than it is.", subject=slot.slot_id)
        if share_of(slot.gpu_uuid, gpus) is None:
            return Conflict("There is no such part by MPS on this host any more.", subject=slot.slot_id)
        if spec.runtime != RUNTIME:
            return Conflict("A part by MPS takes programs of this host, not containers.", subject=slot.slot_id)
    if len(parts) > 1:
        return Conflict("A program has one part by MPS: each card has a daemon of its own.", subject=parts[1].slot_id)
    return None


def environment(share: Share, pipe: str, log: str) -> Mapping[str, str]:
    """The environment that makes a program a client of the daemon there, within its part.

    The memory limit is by the index of a visible card, of which there is one. Both limits are read from the environment
    when a program starts CUDA: one that changes its own environment before escapes them.
    """
    return {
        "CUDA_VISIBLE_DEVICES": share.card,
        "CUDA_MPS_PIPE_DIRECTORY": pipe,
        "CUDA_MPS_LOG_DIRECTORY": log,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(share.percent),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={share.memory_bytes // MIB}M",
    }
