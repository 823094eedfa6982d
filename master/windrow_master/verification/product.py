"""Computes entries of a challenge's products from the seeds alone: a row of A, a column of B, their sum of products.
Pure.

numpy has the same generator in C (`numpy.random.Philox`, four words of 64 bits), which counts its counter up by one
before each block: so it starts one before.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from windrow_proto.challenge import FIRST_ROOT, Challenge, Matrix, Place, generator_key

Entries = NDArray[np.uint32]

_COUNTER_END = 1 << 256


def line(key: tuple[int, int], matrix: Matrix, number: int, size: int) -> Entries:
    """One row of A or one column of B: `size` entries."""
    before = (matrix << 128 | number << 64) - 1
    generator = np.random.Philox(key=key[1] << 64 | key[0], counter=before % _COUNTER_END)
    return generator.random_raw(size // 2).astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)


def round_key(challenge: Challenge, roots: Sequence[bytes], number: int) -> tuple[int, int]:
    """The generator's key of one round; its seed holds the root before it."""
    return generator_key(challenge.seed(number, roots[number - 1] if number else FIRST_ROOT))


def entries(challenge: Challenge, roots: Sequence[bytes], places: Sequence[Place]) -> list[int]:
    """The true entry of each place, in order, with the seeds that these roots (one a round) make."""
    return [int(np.multiply(row, column).sum(dtype=np.uint32)) for row, column in lines(challenge, roots, places)]


def lines(challenge: Challenge, roots: Sequence[bytes], places: Sequence[Place]) -> Iterator[tuple[Entries, Entries]]:
    """The row of A and the column of B that each place is made of; one pair at a time, so that it stays in the
    processor's cache."""
    keys = {place.round: round_key(challenge, roots, place.round) for place in places}
    for place in places:
        key = keys[place.round]
        yield line(key, Matrix.A, place.row, challenge.size), line(key, Matrix.B, place.column, challenge.size)
