"""Intel's cards, read from the files of the drivers xe and i915 in sysfs. Intel's tool xpu-smi takes seconds for an
answer and is not used.

Sources: the kernel's ABI documents of sysfs-driver-intel-xe-hwmon and -i915-hwmon, and the notes in xe_gt_freq.c,
xe_gt_idle.c and xe_gt_throttle.c. Neither driver counts programs, nor memory in use; those stay absent. Proved here on
trees of files made after them, not on a card.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from windrow_agent.core.gpu_port import HEAT_BY_HARDWARE, HEAT_BY_SOFTWARE, POWER_BRAKE, POWER_CAP, GpuHealth
from windrow_agent.core.scaling import deciwatts, joules, mebibytes, whole
from windrow_agent.gpu import sysfs_files as files
from windrow_agent.gpu.sysfs_card import Place, SysfsCard
from windrow_proto.model import GpuFacts
from windrow_proto.units import MILLISECOND

DRIVERS: Final = frozenset({"xe", "i915"})
ON_THE_PROCESSOR: Final = "00"
"""The bus on which Intel's processors have their own graphics; cards are behind a bridge."""

THROTTLE: Final = {
    "pl1": POWER_CAP,
    "pl2": POWER_CAP,
    "pl4": POWER_CAP,
    "thermal": HEAT_BY_SOFTWARE,
    "ratl": HEAT_BY_SOFTWARE,
    "prochot": HEAT_BY_HARDWARE,
    "vr_thermalert": HEAT_BY_HARDWARE,
    "vr_tdc": POWER_BRAKE,
}
"""The drivers' reasons for lower clocks as NVML's bits, which is how the wire has them."""


def is_card(device: Path, address: str) -> bool:
    """True if this is a card of its own, not the graphics of a processor."""
    return files.driver_of(device) in DRIVERS and address.split(":")[1] != ON_THE_PROCESSOR


class IntelCard(SysfsCard):
    """One card that xe or i915 serves. now_ns: a monotonic clock, for what is read as a difference."""

    vendor = "intel"
    is_served = True

    def __init__(self, place: Place, index: int, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._before: tuple[int, int | None, int | None] | None = None
        super().__init__(place, index)

    @property
    def _engine(self) -> Path:
        """The folder of the first graphics unit of the first tile."""
        xe = self.device / "tile0/gt0"
        minor = next(iter(files.entries(self.device / "drm", "card*")), self.device / "drm/card")
        return xe if xe.is_dir() else minor / "gt/gt0"

    def _clock(self, xe: str, i915: str) -> int | None:
        engine = self._engine
        found = files.number(engine / f"freq0/{xe}_freq")
        return found if found is not None else files.number(engine / f"rps_{i915}_freq_mhz")

    def _more_facts(self, facts: GpuFacts) -> GpuFacts:
        hwmon, more = files.hwmon_of(self.device), dict(facts.more)
        rated = files.milli(files.number(hwmon / "power1_rated_max")) if hwmon else None
        limit = files.milli(files.number(hwmon / "power1_max")) if hwmon else None
        stem = self._heat().get("pkg")
        slowdown = files.degrees(files.beside(stem, "crit")) if stem else None
        if rated is not None:
            more["power_limit_default_mw"] = rated
        if slowdown:
            more["temperature_slowdown"] = slowdown
        return replace(
            facts,
            memory_bytes=self._memory("total", "physical_vram_size_bytes"),
            power_limit_mw=limit,
            clock_sm_max_mhz=self._clock("rp0", "RP0") or None,
            more=more,
        )

    def _memory(self, what: str, tile: str = "") -> int | None:
        """Memory of the card, of all its tiles; xe tells the whole of it, i915 only where Intel built it."""
        tiles = [files.number(one / tile) for one in files.entries(self.device, "tile[0-9]*")] if tile else []
        known = [one for one in tiles if one]
        minors = [self.device, *files.entries(self.device / "drm", "card*")]
        return sum(known) or next((n for at in minors if (n := files.number(at / f"lmem_{what}_bytes"))), None)

    def _heat(self) -> dict[str, Path]:
        """Sensors of heat by `pkg` and `vram`; before the drivers labelled them they were numbered."""
        found = files.sensors(files.hwmon_of(self.device), "temp")
        numbered = {"pkg": found.get("temp2") or found.get("temp1"), "vram": found.get("temp3")}
        return {name: stem for name, stem in {**numbered, **found}.items() if stem is not None}

    def _read(self) -> tuple[dict[int, int | None], GpuHealth]:
        hwmon, heat = files.hwmon_of(self.device), self._heat()
        energy = next((e for n in (1, 2) if hwmon and (e := files.number(hwmon / f"energy{n}_input"))), None)
        power, busy = self._differences(energy)
        total, free = self.facts.memory_bytes, self._memory("avail")
        used = whole(total - free) if total is not None and free is not None else None
        stem, memory = heat.get("pkg"), heat.get("vram")
        temperature = files.degrees(files.beside(stem, "input")) if stem else None
        slowed = self._slowed_by()
        health = GpuHealth(
            uuid=self.uuid,
            temperature_celsius=temperature,
            slowdown_celsius=files.degrees(files.beside(stem, "crit")) if stem else None,
            memory_used_bytes=used,
            slowed_by=slowed,
        )
        return {
            1: busy,
            3: mebibytes(used),
            4: temperature,
            5: files.degrees(files.beside(memory, "input")) if memory else None,
            6: deciwatts(power),
            7: None if energy is None else joules(energy // 1000),
            8: self._clock("act", "act"),
            10: slowed,
        }, health

    def _differences(self, energy_uj: int | None) -> tuple[int | None, int | None]:
        """Milliwatts and percent of time at work since the sweep before; None at the first, and where nobody counts."""
        engine, now = self._engine, self._now_ns()
        idle_ms = files.number(engine / "gtidle/idle_residency_ms")
        idle_ms = files.number(engine / "rc6_residency_ms") if idle_ms is None else idle_ms
        before, self._before = self._before, (now, energy_uj, idle_ms)
        if before is None or now <= before[0]:
            return None, None
        power = busy = None
        if energy_uj is not None and before[1] is not None:
            power = whole((energy_uj - before[1]) * MILLISECOND // (now - before[0]))
        if idle_ms is not None and before[2] is not None and idle_ms >= before[2]:
            busy = 100 - min(100, 100 * (idle_ms - before[2]) * MILLISECOND // (now - before[0]))
        return power, busy

    def _slowed_by(self) -> int | None:
        engine = self._engine
        xe, i915 = engine / "freq0/throttle", engine
        found = [(bit, files.number(xe / f"reason_{name}")) for name, bit in THROTTLE.items()]
        found += [(bit, files.number(i915 / f"throttle_reason_{name}")) for name, bit in THROTTLE.items()]
        known = [(bit, said) for bit, said in found if said is not None]
        return sum({bit for bit, said in known if said}) if known else None
