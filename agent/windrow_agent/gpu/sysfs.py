"""Cards of other makers than NVIDIA behind the GpuBackend port, read from the kernel's files alone.

The bus says which cards there are; a maker's module is loaded only where one of his cards is. What no driver serves
that we can read (another maker's accelerator, a card that was given to a virtual machine) is shown under
`gpu.not_served` and not offered. Graphics of processors and of management controllers are none.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from windrow_agent.core.gpu_port import (
    GPU_COUNT_MAX,
    GPU_METRICS,
    Condition,
    CutRefusedError,
    GpuEvent,
    GpuEventKind,
    GpuHealth,
    GpuInventory,
    GpuLook,
    Readings,
)
from windrow_agent.gpu import sysfs_files as files
from windrow_agent.gpu.sysfs_card import Place, SysfsCard
from windrow_proto.conditions import ConditionCode

NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
MAKERS: Final = {AMD: "amd", INTEL: "intel"}
SCREENS: Final = ("0x0300", "0x0380")
"""Classes in which a screen's controller is, too: a card of AMD or Intel, or what every server has for its console."""
COMPUTING: Final = ("0x0302", "0x12")
"""3D controllers and processing accelerators, whoever made them."""


class SysfsGpus:
    """Every card on the bus but NVIDIA's. root: of the file system."""

    simulated = False
    waits = False

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self.cards: list[SysfsCard] = []
        self._pending: list[GpuEvent] = []

    def open(self) -> Condition | None:
        """Look at the bus; `gpu.none` where there is no such card."""
        self.close()
        self._find()
        return None if self.cards else Condition(ConditionCode.GPU_NONE)

    def _find(self) -> None:
        known = {card.place.address for card in self.cards}
        for place in self._places():
            if place.address in known or len(self.cards) >= GPU_COUNT_MAX:
                continue
            card = self._made(place, len(self.cards))
            if card is not None and all(other.uuid != card.uuid for other in self.cards):
                self.cards.append(card)

    def _places(self) -> Iterator[Place]:
        for device in files.entries(self._root / "sys/bus/pci/devices", "*"):
            kind = files.text(device / "class")
            vendor = files.number(device / "vendor")
            is_screen = kind.startswith(SCREENS) and vendor in {AMD, INTEL}
            if vendor != NVIDIA and (is_screen or kind.startswith(COMPUTING)) and files.ADDRESS.fullmatch(device.name):
                yield Place(self._root, device, device.name)

    def _made(self, place: Place, index: int) -> SysfsCard | None:
        """The card there by its maker's class; None for what is no card of its own."""
        vendor, driver = files.number(place.device / "vendor"), files.driver_of(place.device)
        if vendor == AMD and driver:
            from windrow_agent.gpu import amd, amd_smi

            if driver == amd.DRIVER:
                if not amd.is_card(place.device):
                    return None
                return amd.AmdCard(place, index, amd_smi.shared())
        if vendor == INTEL:
            from windrow_agent.gpu import intel

            if place.address.split(":")[1] == intel.ON_THE_PROCESSOR:
                return None
            if intel.is_card(place.device, place.address):
                return intel.IntelCard(place, index)
        return SysfsCard(place, index, MAKERS.get(vendor or 0, ""))

    # --- reading ------------------------------------------------------------------------------------

    def inventory(self) -> GpuInventory:
        """Facts of every card, read anew; a card that came meanwhile is found, a lost one keeps the facts it had."""
        self._find()
        for card in self.cards:
            if not card.lost:
                card.refresh()
        drivers = [str(card.facts.more.get("kernel_driver", "")) for card in self.cards]
        release = files.text(self._root / "proc/sys/kernel/osrelease")
        named = next((driver for driver in drivers if driver), "")
        return GpuInventory(tuple(card.facts for card in self.cards), f"{named} {release}".strip() if named else "")

    def sample(self, with_processes: bool) -> Readings:
        """One sweep. A card that has left the bus is there with nothing."""
        values: dict[tuple[str, int], int | None] = {}
        for card in self.cards:
            self._look_for(card)
            values |= {(card.uuid, metric): None for metric in GPU_METRICS}
            if not card.lost:
                values |= {(card.uuid, metric): value for metric, value in card.read(with_processes).items()}
        return values

    def _look_for(self, card: SysfsCard) -> None:
        if files.is_gone(card.device) is card.lost:
            return
        card.lost = not card.lost
        self._pending.append(GpuEvent(GpuEventKind.LOST if card.lost else GpuEventKind.RECOVERED, card.uuid))

    def health(self) -> tuple[GpuHealth, ...]:
        """The health of each card as of the last sweep."""
        return tuple(card.health() for card in self.cards)

    def conditions(self) -> tuple[Condition, ...]:
        """Lost cards, and those that no driver serves that we can read."""
        lost = [Condition(ConditionCode.GPU_LOST, card.uuid) for card in self.cards if card.lost]
        return (*lost, *(Condition(ConditionCode.GPU_NOT_SERVED, one.uuid) for one in self.cards if not one.is_served))

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """Cards that were lost and found; the kernel tells nothing more by files."""
        found, self._pending = self._pending, []
        return found

    def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """These cards as they are now."""
        return {card.uuid: card.look() for card in self.cards if card.uuid in uuids and not files.is_gone(card.device)}

    def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Nothing here can be cut."""
        raise CutRefusedError("cards of this maker are not cut into slices")

    def leased(self, uuids: frozenset[str]) -> None:
        """Real cards show their load by themselves."""

    def close(self) -> None:
        """Forget the cards."""
        self.cards, self._pending = [], []


def address_of(uuid: str, root: Path = Path("/")) -> str:
    """The place on the bus of the card of this id; empty if no card here has it."""
    gpus = SysfsGpus(root)
    gpus.open()
    return next((card.place.address for card in gpus.cards if card.uuid == uuid), "")
