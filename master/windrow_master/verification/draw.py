"""Draws the places of a commitment that a host has to open, after it came, from the Master's own randomness. Pure.

Each round gets its share, so that a round left out whole is always met; within a round all places are equally likely.
"""

import hashlib
from typing import Final

from windrow_proto.challenge import OPENINGS, OPENINGS_MAX, Challenge, Place, Selection

CHANCE_BYTES: Final = 32
"""Of fresh randomness for each selection."""


def draw(challenge: Challenge, chance: bytes, count: int = OPENINGS) -> Selection:
    """`count` places, at least one a round, at most OPENINGS_MAX; ordered by round, the same one perhaps twice.

    chance: CHANCE_BYTES that nobody could know before the commitment was in.
    """
    assert len(chance) == CHANCE_BYTES, "a selection is drawn from 32 fresh bytes"
    count = min(OPENINGS_MAX, max(count, challenge.rounds))
    words = hashlib.shake_256(b"windrow-challenge-places-1" + challenge.id + chance).digest(8 * count)
    mask = challenge.size - 1  # a power of two less one: no place is likelier than another
    places = (
        Place(
            number * challenge.rounds // count,
            int.from_bytes(words[8 * number : 8 * number + 4], "big") & mask,
            int.from_bytes(words[8 * number + 4 : 8 * number + 8], "big") & mask,
        )
        for number in range(count)
    )
    return Selection(challenge.id, tuple(places))
