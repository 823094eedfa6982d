"""The adapter of AMD's library amdsmi, which comes with ROCm and is used only where it can be loaded.

It adds what sysfs does not tell: the energy counter, the width of the memory, the name that a card is sold by. Nothing
raises from here; without it those figures are absent.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from windrow_agent.core.inventory import clean_text
from windrow_agent.core.scaling import whole


@dataclass(frozen=True, slots=True)
class SmiFacts:
    """Facts of one card that do not change; empty and None where amdsmi does not say."""

    name: str = ""
    memory_bus_bits: int | None = None


class AmdSmi:
    """AMD's library, or its absence. load: how it is imported, for the tests."""

    def __init__(self, load: Callable[[], Any] | None = None) -> None:
        self._load = load or _import
        self._library: Any = None
        self._handles: dict[str, Any] = {}
        self._is_tried = False

    def open(self) -> bool:
        """Load it and find its cards; False where that is not possible. The first question does it, too."""
        self.close()
        self._is_tried = True
        try:
            library = self._load()
            library.amdsmi_init()
            self._library = library
            for handle in library.amdsmi_get_processor_handles():
                self._handles[str(library.amdsmi_get_gpu_device_bdf(handle)).lower()] = handle
        except (
            Exception
        ):  # without the driver's own library its import raises KeyError, and each release something else
            self.close()
            return False
        return True

    def facts(self, address: str) -> SmiFacts:
        """Reads the facts of the card at this place on the bus."""
        asic = self._ask("amdsmi_get_gpu_asic_info", address) or {}
        memory = self._ask("amdsmi_get_gpu_vram_info", address) or {}
        name = clean_text(str(asic.get("market_name") or ""))
        return SmiFacts("" if name == "N/A" else name, whole(memory.get("vram_bit_width"), 1))

    def energy_millijoules(self, address: str) -> int | None:
        """The counter of energy, in thousandths of a joule; it counts in units of some microjoules."""
        said = self._ask("amdsmi_get_energy_count", address) or {}
        count, unit = said.get("energy_accumulator"), said.get("counter_resolution")
        if not isinstance(count, int) or not isinstance(unit, float | int) or count <= 0:
            return None
        return whole(int(count * unit) // 1000)

    def close(self) -> None:
        """Let go of it."""
        library, self._library, self._handles = self._library, None, {}
        if library is not None:
            try:
                library.amdsmi_shut_down()
            except Exception:  # whatever it says about that no longer matters
                return

    def _ask(self, call: str, address: str) -> Any:
        if not self._is_tried:
            self.open()
        handle = self._handles.get(address)
        if handle is None:
            return None
        try:
            return getattr(self._library, call)(handle)
        except Exception:  # its errors are of many kinds, and each only makes one figure absent
            return None


def _import() -> Any:
    return importlib.import_module("amdsmi")  # ROCm brings it, matched to its driver; nothing of ours declares it


@cache
def shared() -> AmdSmi:
    """The one of this process."""
    return AmdSmi()
