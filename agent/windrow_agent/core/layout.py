"""Layouts of cards: the slices that an owner lets a card be partitioned into, and whether the Master may have it done
now. Pure.

The owner writes a layout for a card (`0=3g.40gb,2g.20gb,2g.20gb`); without one a card stays whole. The Master can ask
for just this layout, or for the whole card again, and only while nobody uses the card.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from windrow_proto.errors import Conflict, InvalidInput, WindrowError
from windrow_proto.model import GpuFacts, Isolation, PartitionSpec, SlotGrant

SLICES_MAX: Final = 7
"""Parts of one card (NVIDIA, MIG User Guide: at most seven)."""
ALL: Final = "all"
_PROFILE: Final = re.compile(r"[1-9]g\.[1-9][0-9]{0,3}gb([+-][a-z.+-]{1,12})?")

Layouts = Mapping[str, tuple[str, ...]]
"""Profiles by the UUID or the index of a card, or ALL."""


def parse_layouts(texts: Iterable[str]) -> Layouts:
    """Parses the owner's layouts, one text a card: CARD=PROFILE,PROFILE. Raises InvalidInput with the reason."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        card, mark, rest = text.partition("=")
        profiles = tuple(rest.split(","))
        if not card or not mark or not 1 <= len(profiles) <= SLICES_MAX:
            raise InvalidInput(f"{text!r} is not a layout: write CARD=PROFILE,... with 1 to {SLICES_MAX} profiles.")
        wrong = [profile for profile in profiles if _PROFILE.fullmatch(profile) is None]
        if wrong or card in found:
            why = f"{wrong[0]!r} is no profile like 1g.10gb" if wrong else f"{card} is named twice"
            raise InvalidInput(f"{text!r} is not a layout: {why}.")
        found[card] = profiles
    return found


def layout_of(gpu: GpuFacts, layouts: Layouts) -> tuple[str, ...]:
    """The profiles that this card may be cut into, by its UUID, else its index, else ALL; none: it stays whole."""
    if gpu.mig_enabled is None:
        return ()
    keys = (gpu.uuid, str(gpu.index), ALL)
    return next((layouts[key] for key in keys if key in layouts), ())


def with_layouts(gpus: Iterable[GpuFacts], layouts: Layouts) -> tuple[GpuFacts, ...]:
    """The cards with what their owner allows."""
    return tuple(replace(gpu, layout=layout_of(gpu, layouts)) for gpu in gpus) if layouts else tuple(gpus)


def cut_refusal(
    spec: PartitionSpec, gpus: Collection[GpuFacts], layouts: Layouts, held: Collection[str]
) -> WindrowError | None:
    """Why a card may not be cut now as the Master asks; held: cards and slices that somebody uses."""
    gpu = next((one for one in gpus if one.uuid == spec.gpu_uuid), None)
    if gpu is None:
        return InvalidInput(f"This host has no GPU {spec.gpu_uuid}.")
    allowed = layout_of(gpu, layouts)
    if not allowed:
        return Conflict("The owner of this host has allowed no layout for this GPU (windrow-agent run --mig).")
    if spec.profiles and spec.profiles != allowed:
        return Conflict(f"The owner of this host allows the layout {', '.join(allowed)} for this GPU and no other.")
    used = sorted({gpu.uuid, *(part.uuid for part in gpu.slices)} & set(held))
    if used:
        return Conflict(f"GPU {spec.gpu_uuid} is in use: {', '.join(used)}.")
    return None


def grant_refusal(slots: Iterable[SlotGrant], gpus: Collection[GpuFacts], cutting: str) -> WindrowError | None:
    """Why these grants cannot be served by the cards as they are now; cutting: the card that is being
    partitioned, or empty."""
    cards = {gpu.uuid: gpu for gpu in gpus}
    parts = {part.uuid: (gpu, part) for gpu in gpus for part in gpu.slices}
    for slot in slots:
        gpu = cards.get(slot.gpu_uuid) or (parts[slot.gpu_uuid][0] if slot.gpu_uuid in parts else None)
        if gpu is not None and gpu.uuid == cutting:
            return Conflict(f"GPU {gpu.uuid} is being cut into other slices.", subject=slot.slot_id)
        if slot.gpu_uuid in cards and cards[slot.gpu_uuid].mig_enabled:
            return Conflict(
                f"GPU {slot.gpu_uuid} is cut into slices; it cannot be had as a whole.", subject=slot.slot_id
            )
        if slot.isolation is Isolation.MIG and slot.gpu_uuid not in parts:
            return Conflict(f"There is no such slice on this host any more: {slot.gpu_uuid}.", subject=slot.slot_id)
        if slot.gpu_uuid in parts and slot.isolation is not parts[slot.gpu_uuid][1].isolation:
            return Conflict("The slice is of another isolation than it was granted with.", subject=slot.slot_id)
    return None
