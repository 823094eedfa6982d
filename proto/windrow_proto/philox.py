"""Philox4x64-10: four 64-bit words of full entropy for each counter and key. Pure, in plain integers.

Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC11: the shape of a block cipher, mixing by
multiplication, so that any word can be had without those before it. Held to the known answers of the authors' Random123
in tests. The same function is in the agent's OpenCL source, and numpy has it in C for the Master.
"""

from typing import Final

MASK: Final = (1 << 64) - 1
ROUNDS: Final = 10
"""As published; the last three are margin, since 7 rounds already pass BigCrush."""
MULTIPLIERS: Final = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
WEYL: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
"""Added to the key after each round."""

Block = tuple[int, int, int, int]


def philox(counter: Block, key: tuple[int, int]) -> Block:
    """The four words of one counter; all numbers are in [0, 2**64)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (second >> 64) ^ c1 ^ k0, second & MASK, (first >> 64) ^ c3 ^ k1, first & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3
