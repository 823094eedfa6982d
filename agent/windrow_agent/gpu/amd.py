"""AMD's cards, read from the files of the driver amdgpu and the compute driver KFD in sysfs; `amd_smi` adds the rest.

Sources: the kernel's documentation of amdgpu (gpu/amdgpu/thermal, driver-misc, ras) and of hwmon. Proved here on trees
of files made after them, not on a card.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from windrow_agent.core.gpu_port import GpuHealth
from windrow_agent.core.scaling import deciwatts, joules, mebibytes, whole
from windrow_agent.gpu import sysfs_files as files
from windrow_agent.gpu.amd_metrics import TABLE_BYTES_MAX, ClockReading, held_by
from windrow_agent.gpu.amd_smi import AmdSmi
from windrow_agent.gpu.sysfs_card import More, Place, SysfsCard, plain
from windrow_proto.model import GpuFacts
from windrow_proto.units import GIB

DRIVER: Final = "amdgpu"
VIDEO_MEMORY_LEAST: Final = 2 * GIB
"""A processor's own graphics have no power limit of a card and set aside less than any card that is rented."""
PWM_FULL: Final = 255
MICRO: Final = 1_000_000
_CLOCK: Final = re.compile(r"^\d+:\s*(\d+)\s*mhz", re.IGNORECASE)
_COUNT: Final = re.compile(r"^(ue|ce):\s*(\d+)$")
_PAGE: Final = re.compile(r"^0x[0-9a-f]+\s*:\s*0x[0-9a-f]+\s*:\s*([RPF])$", re.IGNORECASE)


def is_card(device: Path) -> bool:
    """True if this is a card of its own, not the graphics of a processor."""
    memory = files.number(device / "mem_info_vram_total")
    hwmon = files.hwmon_of(device)
    is_limited = hwmon is not None and (hwmon / "power1_cap").exists()
    return memory is not None and (memory >= VIDEO_MEMORY_LEAST and (is_limited or (device / "unique_id").exists()))


class AmdCard(SysfsCard):
    """One card that amdgpu serves. smi: AMD's library, where it can be loaded."""

    vendor = "amd"
    is_served = True

    def __init__(self, place: Place, index: int, smi: AmdSmi) -> None:
        self._smi = smi
        self._kfd = place.root / "sys/class/kfd/kfd"
        self._held = ClockReading()
        super().__init__(place, index)

    def _unique(self) -> str:
        """As ROCm names it in ROCR_VISIBLE_DEVICES."""
        unique = files.text(self.device / "unique_id").lower().removeprefix("0x")
        return f"GPU-{unique}" if re.fullmatch(r"[0-9a-f]{8,16}", unique) and int(unique, 16) else ""

    def _more_facts(self, facts: GpuFacts) -> GpuFacts:
        device, hwmon, said = self.device, files.hwmon_of(self.device), self._smi.facts(self.place.address)
        limits = {
            name: files.milli(files.number(hwmon / f"power1_{file}")) if hwmon else None
            for name, file in (("now", "cap"), ("max", "cap_max"), ("min", "cap_min"), ("default", "cap_default"))
        }
        pages = self._pages()
        more: dict[str, int | str | None] = {
            "board_part_number": plain(files.text(device / "product_number")),
            "power_limit_min_mw": limits["min"],
            "power_limit_default_mw": limits["default"],
            "bar1_bytes": files.number(device / "mem_info_vis_vram_total"),
            "ecc_corrected": self._errors()["ce"],
            "retired_uncorrected": pages.get("R", 0) if pages is not None else None,
            "retired_pending": int(pages.get("P", 0) > 0) if pages is not None else None,
            **self._temperature_limits(hwmon),
        }
        return replace(
            facts,
            name=plain(files.text(device / "product_name")) or said.name or facts.name,
            serial=plain(files.text(device / "serial_number")),
            vbios=files.words(device / "vbios_version"),
            memory_bytes=files.number(device / "mem_info_vram_total"),
            memory_bus_bits=said.memory_bus_bits,
            power_limit_mw=limits["now"],
            power_limit_max_mw=limits["max"],
            clock_sm_max_mhz=_highest(device / "pp_dpm_sclk"),
            clock_memory_max_mhz=_highest(device / "pp_dpm_mclk"),
            more={**facts.more, **{name: value for name, value in more.items() if value is not None}},
        )

    def _temperature_limits(self, hwmon: Path | None) -> More:
        found: More = {}
        sensors = files.sensors(hwmon, "temp")
        for name, labels in (("temperature_slowdown", ("junction", "edge")), ("temperature_memory_max", ("mem",))):
            stem = next((sensors[label] for label in labels if label in sensors), None)
            limit = files.degrees(files.beside(stem, "crit")) if stem else None
            found |= {name: limit} if limit else {}
        return found

    def _read(self) -> tuple[dict[int, int | None], GpuHealth]:
        device, hwmon = self.device, files.hwmon_of(self.device)
        heat = files.sensors(hwmon, "temp")
        edge, hottest = heat.get("edge") or heat.get("temp1"), heat.get("junction") or heat.get("edge")
        memory = heat.get("mem")
        used, errors, pages = files.number(device / "mem_info_vram_used"), self._errors(), self._pages()
        powers = [files.number(hwmon / f"power1_{one}") for one in ("average", "input")] if hwmon else []
        power = next((one for one in powers if one is not None), None)
        pwm = files.number(hwmon / "pwm1") if hwmon else None
        energy = self._smi.energy_millijoules(self.place.address)
        self._held = held_by(files.raw(device / "gpu_metrics", TABLE_BYTES_MAX), self._held)
        shown = edge or hottest
        temperature = files.degrees(files.beside(shown, "input")) if shown else None
        junction = files.degrees(files.beside(hottest, "input")) if hottest else temperature
        health = GpuHealth(
            uuid=self.uuid,
            remap_pending=None if pages is None else pages.get("P", 0) > 0,
            remap_failed=None if pages is None else pages.get("F", 0) > 0,
            temperature_celsius=junction,
            slowdown_celsius=files.degrees(files.beside(hottest, "crit")) if hottest else None,
            memory_used_bytes=used,
            slowed_by=self._held.reasons,
            ecc_uncorrected=errors["ue"],
        )
        return {
            1: whole(files.number(device / "gpu_busy_percent"), 0, 100),
            2: whole(files.number(device / "mem_busy_percent"), 0, 100),
            3: mebibytes(used),
            4: temperature,
            5: files.degrees(files.beside(memory, "input")) if memory else None,
            6: None if power is None else deciwatts(power // 1000),
            7: joules(energy),
            8: _megahertz(hwmon, "freq1_input"),
            9: _megahertz(hwmon, "freq2_input"),
            10: self._held.reasons,
            12: None if pwm is None else whole((100 * pwm + PWM_FULL // 2) // PWM_FULL, 0, 100),
            13: errors["ue"],
            14: files.number(device / "pcie_replay_count"),
        }, health

    def _errors(self) -> dict[str, int | None]:
        """Memory errors since the driver was loaded, of all blocks that count them."""
        found: dict[str, int | None] = {"ue": None, "ce": None}
        for file in files.entries(self.device / "ras", "*_err_count"):
            for line in files.lines(file):
                if said := _COUNT.match(line):
                    found[said[1]] = (found[said[1]] or 0) + int(said[2])
        return found

    def _pages(self) -> dict[str, int] | None:
        """Counts the bad pages that are retired (R), wait for it (P) or could not be retired (F); None if nobody
        counts."""
        file = self.device / "ras/gpu_vram_bad_pages"
        if not file.exists():
            return None
        marks = [said[1].upper() for line in files.lines(file) if (said := _PAGE.match(line))]
        return {mark: marks.count(mark) for mark in set(marks)}

    def _count_processes(self) -> int | None:
        """Programs that hold memory on this card through the compute driver, which names it by a number of its own."""
        number = self._kfd_number()
        if number is None:
            return None
        held = files.entries(self._kfd / "proc", f"*/vram_{number}")
        return len({file.parent.name for file in held if files.number(file)})

    def _kfd_number(self) -> int | None:
        domain, bus, rest = self.place.address.split(":")
        device, function = rest.split(".")
        location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
        for node in files.entries(self._kfd / "topology/nodes", "*"):
            said = dict(line.split(maxsplit=1) for line in files.lines(node / "properties") if " " in line)
            number = files.number(node / "gpu_id")
            if number and (said.get("location_id"), said.get("domain", "0")) == (str(location), str(int(domain, 16))):
                return number
        return None


def _highest(path: Path) -> int | None:
    """The highest of a list of clocks: `1: 2371Mhz *`."""
    found = [int(said[1]) for line in files.lines(path) if (said := _CLOCK.match(line))]
    return max(found, default=0) or None


def _megahertz(hwmon: Path | None, name: str) -> int | None:
    hertz = files.number(hwmon / name) if hwmon else None
    return None if hertz is None else hertz // MICRO
