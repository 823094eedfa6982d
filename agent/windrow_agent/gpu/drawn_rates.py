"""Draws what a test rental is told of a simulated card: its memory bandwidth and its matrix rate. Pure.

Nothing is measured. A sound card reaches of its sheet what sound cards are seen to reach; the rest of a fleet is slower
by what slows real ones: a power limit, a hot rack, memory clocked down, a neighbour. Most causes are the host's, so its
cards are alike, and now and then one card is slow alone.
"""

from dataclasses import dataclass
from typing import Final

from windrow_agent.gpu.personas import GpuPersona
from windrow_agent.gpu.simulated import unit

SOUND: Final = (0.78, 0.93)
"""A copy by a sound card reaches this share of the sheet's bandwidth. BabelStream's copy reached 0.75 on a GH200 (its
issue 194); vendors' own copies reach 0.9. Grade A asks for 0.72."""
SLOWER: Final = (0.59, 0.69)
"""The same for a card that is held back: grade B."""
SLOW: Final = (0.30, 0.52)
"""The same for one with a fault that nobody has looked at: grade C."""
SOUND_SHARE: Final = {True: 0.78, False: 0.55}
"""How many hosts are sound, in data centres and under desks: chosen, so that fifty hosts show every grade."""
SLOWER_SHARE: Final = 0.7
"""How many of the others are slower and not slow: chosen."""
ALONE: Final = 0.02
"""The chance of a card to be slower than its neighbours: chosen."""
CARD_SPREAD: Final = 0.01
"""Between the cards of one host, each way: as between repeated runs of one machine."""
MATRIX_PER_CORE_CLOCK: Final = 0.46
"""Integer operations of the challenge's product for each core and cycle: our own measurement of an H100 (15.38e12 with
16,896 cores at 1,980 MHz)."""


@dataclass(frozen=True, slots=True)
class DrawnRates:
    """memory: bytes read and written per second; matrix: integer operations per second."""

    name: str
    memory: int
    matrix: int


def draw(persona: GpuPersona, host_key: str, uuid: str) -> DrawnRates:
    """The rates of one card, the same each time. host_key: what its host's figures are drawn from."""
    share = _share(persona.is_datacentre, host_key)
    if unit(uuid, "alone") < ALONE:
        share = _within(SLOWER, uuid)
    share *= 1 + CARD_SPREAD * (2 * unit(uuid, "spread") - 1)
    sheet = 2 * persona.clock_memory_mhz * 1_000_000 * persona.bus_bits // 8
    peak = MATRIX_PER_CORE_CLOCK * persona.cores * persona.clock_sm_mhz * 1_000_000
    throttled = min(1.0, share / SOUND[0])
    return DrawnRates(persona.name, round(sheet * share), round(peak * throttled))


def _share(is_datacentre: bool, host_key: str) -> float:
    place = unit(host_key, "soundness")
    sound = SOUND_SHARE[is_datacentre]
    if place < sound:
        return _within(SOUND, host_key)
    return _within(SLOWER if place < sound + (1 - sound) * SLOWER_SHARE else SLOW, host_key)


def _within(bounds: tuple[float, float], *parts: object) -> float:
    low, high = bounds
    return low + (high - low) * unit(*parts, "share")
