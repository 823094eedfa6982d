"""Filling a card's memory, as far as Master and host must agree on it: what is written where. Pure.

 Master ─ Fill(nonce, lines) ─▶ host    every block of every line is written, each from its own counter
        ◀─ Filled(lines) ──────         how many there was space and time for, from the first
        ── Probe(blocks) ─▶             drawn after that
        ◀─ Values(bytes) ──             what these blocks hold

A card that has less memory than it says has no space for it, or holds one block in place of another. The pattern can be
made again without any memory: who answers from the nonce alone, with a patched agent, is not caught by this.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from windrow_proto.challenge import KEY_BYTES, generator_key
from windrow_proto.errors import InvalidInput
from windrow_proto.philox import philox

FILL: Final = 2
"""The word of the generator's counter where a product's factors have 0 and 1."""
BLOCK_BYTES: Final = 32
"""Of one counter: four words of 64 bits, little-endian."""
LINE_BLOCKS: Final = 32_768
LINE_BYTES: Final = LINE_BLOCKS * BLOCK_BYTES
"""1 MiB: what is filled is counted in these."""
LINES_MAX: Final = 1 << 20
"""1 TiB, more than any card has."""
PROBES_MAX: Final = 512

_TAG: Final = b"windrow-fill-1"


@dataclass(frozen=True, slots=True)
class Fill:
    """Write so many lines. nonce: of the Master, fresh. Raises InvalidInput for no lines or too many."""

    nonce: bytes
    lines: int

    def __post_init__(self) -> None:
        if len(self.nonce) != KEY_BYTES or not 1 <= self.lines <= LINES_MAX:
            raise InvalidInput(f"From 1 to {LINES_MAX} lines can be filled, from a nonce of {KEY_BYTES} bytes.")

    def key(self, challenge_id: bytes) -> tuple[int, int]:
        """The generator's. challenge_id: of the challenge that the card just answered."""
        return generator_key(hashlib.sha256(_TAG + challenge_id + self.nonce).digest())


@dataclass(frozen=True, slots=True)
class Filled:
    """So many lines are written, from the first."""

    lines: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Say what these blocks hold; numbered from 0 through all lines."""

    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """BLOCK_BYTES for each block, in the order of the probe."""

    values: bytes


def block(key: tuple[int, int], number: int) -> bytes:
    """The contents of one block. This is the definition; the prover's kernel is held to it."""
    line, at = divmod(number, LINE_BLOCKS)
    return b"".join(word.to_bytes(8, "little") for word in philox((at, line, FILL, 0), key))
