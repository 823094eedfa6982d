"""Checks the cards of a lease: remembers their modes when it starts, and compares when it ends.

A driver lists a program's last memory for a moment after it ended, so the look is repeated before a card is called
unclean. Where no card was ever read (an agent that only ends its workloads) there is nothing to judge by, and of a part
by MPS nobody can: its neighbours' memory is the same card's. What stays there is foreign use of the card.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from windrow_agent.core import lease_exit
from windrow_agent.core.gpu_port import GpuInventory, GpuLook
from windrow_agent.core.workload import WorkloadState
from windrow_proto.ids import SlotId
from windrow_proto.model import GpuFacts, Isolation, SlotGrant
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

log = structlog.get_logger()

FREE_WITHIN_NS: Final = 30 * SECOND
"""For a card's memory to be given back after the last program on it has ended; a process of 80 GB takes seconds."""
LOOK_AGAIN_NS: Final = SECOND


async def wipe_nothing(_state: WorkloadState) -> None:
    """Does nothing: nothing is cached."""


class LeaseExitCheck:
    """The cards of this host, as leases come and go. inventory: as last read; look: at cards and slices, now."""

    def __init__(
        self,
        inventory: Callable[[], GpuInventory],
        look: Callable[[frozenset[str]], Awaitable[Mapping[str, GpuLook]]],
        clock: Clock,
        wipe: Callable[[WorkloadState], Awaitable[None]] = wipe_nothing,
    ) -> None:
        """wipe: what else of a lease this host holds, its cache."""
        self._inventory, self._look, self._clock, self._wipe = inventory, look, clock, wipe

    def modes(self, slots: tuple[SlotGrant, ...]) -> dict[str, dict[str, str]]:
        """The modes of the cards behind these slots, by the UUID that was granted; asks no driver."""
        cards = self._cards()
        granted = [slot.gpu_uuid for slot in slots if slot.gpu_uuid in cards]
        return {uuid: dict(lease_exit.modes(cards[uuid])) for uuid in granted}

    async def faults(self, state: WorkloadState) -> dict[SlotId, str]:
        """Which slots of a workload whose last process has ended are not as they were, and why."""
        await self._wipe(state)
        slots = {slot.gpu_uuid: slot.slot_id for slot in state.slots if slot.gpu_uuid in self._cards()}
        until_ns = self._clock.monotonic_ns() + FREE_WITHIN_NS
        while slots and state.started_wall_ns is not None:
            seen = await self._look(frozenset(slots))
            words = {uuid: lease_exit.left_behind(state.modes.get(uuid, {}), seen.get(uuid)) for uuid in slots}
            found = {slot_id: words[uuid] for uuid, slot_id in slots.items() if words[uuid]}
            if not found or self._clock.monotonic_ns() >= until_ns:
                for slot_id, why in found.items():
                    log.warning("slot_not_clean", slot_id=slot_id, workload_id=state.workload_id, why=why)
                return found
            await self._clock.sleep_ns(LOOK_AGAIN_NS)
        return {}

    def _cards(self) -> Mapping[str, GpuFacts]:
        gpus = self._inventory().gpus
        known: dict[str, GpuFacts] = {gpu.uuid: gpu for gpu in gpus}
        parts: dict[str, GpuFacts] = {
            part.uuid: gpu for gpu in gpus for part in gpu.slices if part.isolation is not Isolation.MPS
        }
        return known | parts
