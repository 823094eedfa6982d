"""Judges whether a card has the memory that its host claims, from the question to the verdict. Pure.

 FILLING ──Filled──▶ PROBED ──Values──▶ PROVED
    │                  └── a block that does not hold what was written, or late ──▶ WRONG, LATE
    └── less space than three quarters of what the host says, or late ──▶ SHORT, LATE

The blocks are drawn once all is written. A card whose prover fails meanwhile stays UNTOLD: that refuses nobody. The
pattern can be made again from the nonce: a patched agent that does so is not caught, a card with less memory is.
"""

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_proto.fill import BLOCK_BYTES, LINE_BLOCKS, LINE_BYTES, LINES_MAX, Fill, Filled, Probe, Values, block
from windrow_proto.units import GIB, MINUTE, SECOND

FILL_PERMILLE: Final = 900
"""Of the memory that a host says a card has: the driver and what shows a screen keep some. Chosen by us."""
SHORT_PERMILLE: Final = 750
"""The least share, in thousandths, of the memory that a card must have filled: with less it is another card, or not
free. Chosen by us."""
PROBES: Final = 64
"""A tenth of wrong blocks is met with 1 - 0.9**64 = 99.88 %."""
FILL_NS: Final = MINUTE + 10 * SECOND
"""The time that the agent gives a prover, and the line."""
VALUES_NS: Final = 15 * SECOND


class Verdict(StrEnum):
    """The verdict on a card's memory."""

    FILLING = "filling"
    PROBED = "probed"
    PROVED = "proved"
    WRONG = "wrong_memory"
    SHORT = "short_memory"
    LATE = "late_memory"
    UNTOLD = "untold"


NO_PROBE: Final = Probe(())
FAILED: Final = frozenset({Verdict.WRONG, Verdict.SHORT, Verdict.LATE})


@dataclass(frozen=True, slots=True)
class Memory:
    """One card's. claimed_bytes: as its host says; asked_ns: when it was asked, by the Master's monotonic clock;
    span_ns: until all was written; wrong: blocks of the probe that held something else; failure: the host's word."""

    challenge_id: bytes
    fill: Fill
    claimed_bytes: int
    asked_ns: int
    verdict: Verdict = Verdict.FILLING
    filled_lines: int | None = None
    span_ns: int | None = None
    probed_ns: int | None = None
    probe: Probe = NO_PROBE
    wrong: int | None = None
    failure: str = ""

    @property
    def due_ns(self) -> int | None:
        """When it lapses if nothing comes; None once it is judged."""
        if self.verdict is Verdict.FILLING:
            return self.asked_ns + FILL_NS
        if self.verdict is Verdict.PROBED and self.probed_ns is not None:
            return self.probed_ns + VALUES_NS
        return None

    @property
    def filled_bytes(self) -> int | None:
        """The bytes that were written."""
        return None if self.filled_lines is None else self.filled_lines * LINE_BYTES

    @property
    def words(self) -> str:
        """For people, the end of a sentence."""
        filled = f"{(self.filled_bytes or 0) / GIB:.2f} of {self.claimed_bytes / GIB:.2f} GiB of its memory"
        match self.verdict:
            case Verdict.PROVED:
                return f"{filled} were filled and {len(self.probe.blocks)} places of it held what was written"
            case Verdict.WRONG:
                count = f"{self.wrong} of {len(self.probe.blocks)} places"
                return f"{count} of its memory did not hold what was written; {filled} were filled"
            case Verdict.SHORT:
                return f"there was room for {filled} only"
            case Verdict.LATE:
                return "its memory was not filled in time, or not read"
            case _:
                return f"its memory was not proved: {self.failure.rstrip('.') or 'it was broken off'}"


def lines_for(claimed_bytes: int) -> int:
    """Return how many lines a card that says to have so much memory is asked to fill; 0: too few to ask for."""
    return min(LINES_MAX, claimed_bytes * FILL_PERMILLE // 1000 // LINE_BYTES)


def filled(memory: Memory, said: Filled, now_ns: int, chance: bytes) -> Memory:
    """Note that all was written that could be: the blocks to say are drawn, from 32 bytes of chance, or there was no
    space."""
    if memory.verdict is not Verdict.FILLING:
        return memory
    if now_ns - memory.asked_ns > FILL_NS:
        return replace(memory, verdict=Verdict.LATE)
    lines = min(said.lines, memory.fill.lines)
    now = replace(memory, filled_lines=lines, span_ns=now_ns - memory.asked_ns)
    if lines * LINE_BYTES * 1000 < min(memory.claimed_bytes * SHORT_PERMILLE, memory.fill.lines * LINE_BYTES * 1000):
        return replace(now, verdict=Verdict.SHORT)
    return replace(now, verdict=Verdict.PROBED, probed_ns=now_ns, probe=draw(memory.challenge_id, lines, chance))


def draw(challenge_id: bytes, lines: int, chance: bytes) -> Probe:
    """PROBES blocks, one of each part of what was written, so that no part is left out."""
    blocks = lines * LINE_BLOCKS
    words = hashlib.shake_256(b"windrow-fill-places-1" + challenge_id + chance).digest(8 * PROBES)
    numbers = (int.from_bytes(words[8 * n : 8 * n + 8], "big") for n in range(PROBES))
    starts = [n * blocks // PROBES for n in range(PROBES + 1)]
    return Probe(tuple(starts[n] + number % (starts[n + 1] - starts[n]) for n, number in enumerate(numbers)))


def valued(memory: Memory, said: Values, now_ns: int) -> Memory:
    """Judge what the blocks hold."""
    if memory.verdict is not Verdict.PROBED or memory.due_ns is None:
        return memory
    if now_ns > memory.due_ns:
        return replace(memory, verdict=Verdict.LATE)
    key, held = memory.fill.key(memory.challenge_id), said.values
    found = [held[at * BLOCK_BYTES : (at + 1) * BLOCK_BYTES] for at in range(len(memory.probe.blocks))]
    wrong = sum(one != block(key, number) for one, number in zip(found, memory.probe.blocks, strict=True))
    return replace(memory, verdict=Verdict.WRONG if wrong else Verdict.PROVED, wrong=wrong)


def ticked(memory: Memory, now_ns: int) -> Memory:
    """Time went by."""
    is_late = memory.due_ns is not None and now_ns > memory.due_ns
    return replace(memory, verdict=Verdict.LATE) if is_late else memory


def broken(memory: Memory, failure: str) -> Memory:
    """Its prover failed, or the conversation ended."""
    return memory if memory.due_ns is None else replace(memory, verdict=Verdict.UNTOLD, failure=failure)


def evidence(memory: Memory) -> dict[str, object]:
    """Return the evidence to keep."""
    return {
        "memory": str(memory.verdict),
        "memory_nonce": memory.fill.nonce.hex(),
        "memory_claimed_bytes": memory.claimed_bytes,
        "memory_filled_bytes": memory.filled_bytes,
        "memory_span_ns": memory.span_ns,
        "memory_probes": len(memory.probe.blocks),
        "memory_wrong": memory.wrong,
    }
