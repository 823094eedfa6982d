"""Simulated cards behind the GpuBackend port: the same seed, clock and script give the same figures, to the integer.

Nothing here is real and everything says so. Idle cards drift a little; leased ones work. Faults come by script.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from windrow_agent.core.gpu_port import (
    PROCESSES,
    Condition,
    CutRefusedError,
    GpuEvent,
    GpuEventKind,
    GpuHealth,
    GpuInventory,
    GpuLook,
    Readings,
)
from windrow_agent.core.scaling import deciwatts, joules, mebibytes
from windrow_agent.gpu.personas import GpuPersona
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts
from windrow_proto.ports import Clock
from windrow_proto.units import MIB, SECOND

DRIVER: Final = "580.95.05"
CUDA: Final = "13.0"
SLOWDOWN: Final = 87
METRICS: Final = 15
IDLE_LOAD: Final = 0.0
BUSY_LOAD: Final = 0.86
RAMP_NS: Final = 20 * SECOND
"""How long power and temperature take to follow a change of load."""

HOT_CELSIUS: Final = 92
THERMAL_SLOWDOWN: Final = 0x20
"""Bit of the throttle reasons: software thermal slowdown."""


@lru_cache(maxsize=1 << 16)
def unit(*parts: object) -> float:
    """A number in [0, 1) that is a pure function of its parts."""
    digest = hashlib.blake2b("|".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def wave(seconds: float, *parts: object) -> float:
    """A slow drift in [-1, 1]: three sines of periods between 40 s and 11 min with phases of their own."""
    first, second, third = _phases(*parts)
    return (
        math.sin(2 * math.pi * (seconds / 41.0 + first))
        + math.sin(2 * math.pi * (seconds / 173.0 + second))
        + math.sin(2 * math.pi * (seconds / 661.0 + third))
    ) / 3


@lru_cache(maxsize=1 << 16)
def _phases(*parts: object) -> tuple[float, float, float]:
    return unit(0, *parts), unit(1, *parts), unit(2, *parts)


@dataclass(slots=True)
class _Card:
    """The changing state of one card. energy_mj: up to `since_ns`, when `busy` last changed or energy was last read."""

    facts: GpuFacts
    busy: bool = False
    changed_ns: int = -RAMP_NS
    energy_mj: float = 0.0
    energy_at_ns: int = 0
    lost: bool = False
    hot: bool = False
    ecc: int = 0


class SimulatedGpus:
    """`count` cards of one persona. `key` is what their figures and UUIDs are drawn from: seed and host."""

    simulated = True
    waits = False

    def __init__(self, persona: GpuPersona | None, count: int, key: str, clock: Clock) -> None:
        self._persona = persona
        self._key = key
        self._clock = clock
        self._began_ns = clock.monotonic_ns()
        self._cards = [_Card(self._facts(index, persona)) for index in range(count)] if persona else []
        for card in self._cards:
            card.energy_at_ns = self._began_ns
        self._events: list[GpuEvent] = []
        self._hung = False
        self._refused: Condition | None = None
        self._temperatures: dict[str, int] = {}

    # --- the script --------------------------------------------------------------------------------

    def xid(self, index: int, number: int) -> None:
        """The driver reports an XID of one card."""
        self._events.append(GpuEvent(GpuEventKind.XID, self._cards[index].facts.uuid, number))

    def lose(self, index: int) -> None:
        """One card falls off its bus."""
        self._cards[index].lost = True
        self._events.append(GpuEvent(GpuEventKind.LOST, self._cards[index].facts.uuid))

    def recover(self, index: int) -> None:
        """A lost card is back."""
        self._cards[index].lost = False
        self._events.append(GpuEvent(GpuEventKind.RECOVERED, self._cards[index].facts.uuid))

    def heat(self, index: int, is_hot: bool = True) -> None:
        """One card's cooling fails, or works again."""
        self._cards[index].hot = is_hot

    def corrupt(self, index: int) -> None:
        """One card has an uncorrectable memory error."""
        self._cards[index].ecc += 1
        self._events.append(GpuEvent(GpuEventKind.ECC_UNCORRECTED, self._cards[index].facts.uuid))

    def hang(self, is_hung: bool = True) -> None:
        """The driver stops answering, or answers again."""
        self._hung = is_hung

    def refuse(self, code: ConditionCode | None) -> None:
        """The next opening is refused with this condition; None lets it succeed."""
        self._refused = None if code is None else Condition(code, detail="simulated")

    # --- the port ----------------------------------------------------------------------------------

    def _gate(self) -> None:
        if self._hung:
            raise BlockingIOError("the simulated driver does not answer")

    def open(self) -> Condition | None:
        """Ready at once, unless the script says otherwise."""
        self._gate()
        if self._refused is not None:
            return self._refused
        return None if self._cards else Condition(ConditionCode.GPU_NONE)

    def close(self) -> None:
        """Nothing to let go of."""

    def inventory(self) -> GpuInventory:
        """The persona's facts."""
        self._gate()
        if not self._cards:
            return GpuInventory()
        return GpuInventory(tuple(card.facts for card in self._cards), DRIVER, CUDA)

    def _facts(self, index: int, persona: GpuPersona) -> GpuFacts:
        name = hashlib.blake2b(f"{self._key}|uuid|{index}".encode(), digest_size=16).hexdigest()
        uuid = f"GPU-{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}"
        return GpuFacts(
            uuid=GpuUuid(uuid),
            index=index,
            vendor="nvidia",
            name=persona.name,
            pci_bus_id=f"00000000:{0x10 + 8 * index:02X}:00.0",
            pci_device_id=persona.pci_device_id,
            pci_subsystem_id=persona.pci_device_id & 0xFFFF,
            memory_bytes=persona.memory_bytes,
            compute_capability_major=persona.capability[0],
            compute_capability_minor=persona.capability[1],
            serial=f"SIM{int(name[:10], 16) % 10**10:010d}" if persona.is_datacentre else None,
            vbios="00.00.00.00.00",
            power_limit_mw=persona.power_limit_mw,
            power_limit_max_mw=persona.power_limit_mw,
            clock_sm_max_mhz=persona.clock_sm_mhz,
            clock_memory_max_mhz=persona.clock_memory_mhz,
            pcie_generation_max=persona.pcie_generation,
            pcie_width_max=16,
            core_count=persona.cores,
            memory_bus_bits=persona.bus_bits,
            ecc_enabled=persona.is_datacentre,
            mig_enabled=False if persona.is_datacentre else None,
            numa_node=index // 4,
            device_minor=index,
        )

    def leased(self, uuids: frozenset[str]) -> None:
        """These cards work from now on, the others rest."""
        now_ns = self._clock.monotonic_ns()
        for card in self._cards:
            if card.busy is not (card.facts.uuid in uuids):
                self._count_energy(card, now_ns)
                card.busy, card.changed_ns = not card.busy, now_ns

    def sample(self, with_processes: bool) -> Readings:
        """One sweep at this instant of the clock."""
        self._gate()
        now_ns = self._clock.monotonic_ns()
        values: dict[tuple[str, int], int | None] = {}
        for card in self._cards:
            figures = dict.fromkeys(range(1, METRICS + 1)) if card.lost else self._read(card, now_ns)
            values.update({(card.facts.uuid, metric): value for metric, value in figures.items()})
        return values

    def _read(self, card: _Card, now_ns: int) -> Mapping[int, int | None]:
        persona = self._persona
        assert persona is not None  # there are no cards without one
        uuid, at = card.facts.uuid, (now_ns - self._began_ns) / SECOND
        power_mw = self._count_energy(card, now_ns)
        load, ramp = self._load(card, at), self._ramp(card, now_ns)
        temperature = self._temperature(card, at, ramp)
        self._temperatures[uuid] = temperature
        clock = (
            persona.clock_sm_mhz - 15 * round(2 * (1 + wave(at, uuid, "clock")))
            if card.busy
            else persona.clock_idle_mhz
        )
        return {
            1: round(100 * load),
            2: round(100 * load * 0.6),
            3: mebibytes(self._memory_used(card, at)),
            4: temperature,
            5: temperature + 6 if persona.is_datacentre else None,
            6: deciwatts(round(power_mw)),
            7: joules(int(card.energy_mj)),
            8: clock if not card.hot else clock // 2,
            9: persona.clock_memory_mhz,
            10: (0 if card.busy else 1) | (THERMAL_SLOWDOWN if card.hot else 0),
            11: 0 if card.busy else 8,
            12: None if persona.is_datacentre else round(30 + 50 * ramp),
            13: card.ecc if persona.is_datacentre else None,
            14: 0,
            PROCESSES: 1 if card.busy else 0,
        }

    def _load(self, card: _Card, at: float) -> float:
        return min(1.0, BUSY_LOAD + 0.13 * wave(at, card.facts.uuid, "load")) if card.busy else IDLE_LOAD

    def _ramp(self, card: _Card, now_ns: int) -> float:
        """0 at rest, 1 at work, and between them for a while after each change."""
        share = min(1.0, (now_ns - card.changed_ns) / RAMP_NS)
        return share if card.busy else 1.0 - share

    def _temperature(self, card: _Card, at: float, ramp: float) -> int:
        if card.hot:
            return HOT_CELSIUS
        base = 29 + 6 * unit(card.facts.uuid, "cooling")
        return round(base + 36 * ramp + 2 * wave(at, card.facts.uuid, "temperature"))

    def _power_mw(self, card: _Card, at: float, ramp: float) -> float:
        persona = self._persona
        assert persona is not None
        span = persona.power_limit_mw * 0.9 - persona.power_idle_mw
        drift = 0.04 + 0.05 * ramp
        return (persona.power_idle_mw + span * ramp) * (1 + drift * wave(at, card.facts.uuid, "power"))

    def _count_energy(self, card: _Card, now_ns: int) -> float:
        """Power now in milliwatts, held since the last count: what it took only grows, as a counter must."""
        at = (now_ns - self._began_ns) / SECOND
        span_s = max(0, now_ns - card.energy_at_ns) / SECOND
        power_mw = self._power_mw(card, at, self._ramp(card, now_ns))
        card.energy_mj += power_mw * span_s
        card.energy_at_ns = now_ns
        return power_mw

    def _memory_used(self, card: _Card, at: float) -> int:
        share = 0.55 + 0.3 * unit(card.facts.uuid, "memory") + 0.05 * wave(at, card.facts.uuid, "memory")
        return int((card.facts.memory_bytes or 0) * share) if card.busy else MIB * round(4 + 3 * unit(card.facts.uuid))

    def health(self) -> tuple[GpuHealth, ...]:
        """The health of the cards as of the last sweep."""
        return tuple(
            GpuHealth(
                uuid=card.facts.uuid,
                is_lost=card.lost,
                remap_pending=False,
                remap_failed=False,
                temperature_celsius=None if card.lost else self._temperatures.get(card.facts.uuid),
                slowdown_celsius=SLOWDOWN,
                memory_used_bytes=None,
                memory_bytes=card.facts.memory_bytes,
                compute_processes=1 if card.busy else 0,
            )
            for card in self._cards
        )

    def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """Each card that is not lost, at rest: what held it has ended."""
        return {c.facts.uuid: GpuLook(c.facts, 0, 0) for c in self._cards if c.facts.uuid in uuids and not c.lost}

    def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """Simulated cards stay whole."""
        raise CutRefusedError("simulated cards cannot be cut")

    def conditions(self) -> tuple[Condition, ...]:
        """Lost cards."""
        return tuple(Condition(ConditionCode.GPU_LOST, card.facts.uuid) for card in self._cards if card.lost)

    def events(self, timeout_s: float) -> list[GpuEvent]:
        """Events that the script made happen since the last call."""
        self._gate()
        events, self._events = self._events, []
        return events
