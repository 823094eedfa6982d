"""Makes bad inputs of good ones, by seed: flips, cuts, doublings, floods of lengths and counts, splices."""

import random
from collections.abc import Sequence

TELLING = (0, 1, 0x7F, 0x80, 0xFF, 0x08, 0x0A, 0x12, 0x1A, 0x22, 0x2E)
"""Bytes that mean something in protobuf, JSON or text."""
FLOODS = (
    b"\xff" * 9 + b"\x01",
    b"\x80" * 12,
    b"\xff" * 64,
    b"[" * 300,
    b"9" * 400,
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x00" * 64,
)


def mutated(luck: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One input: sometimes noise, mostly a good input with a few things done to it."""
    if luck.random() < 0.05:
        return luck.randbytes(luck.randint(0, 200))
    data = bytearray(luck.choice(seeds))
    for _ in range(luck.choice((1, 1, 2, 3, 6))):
        _once(luck, data, seeds)
    return bytes(data)


def _once(luck: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = luck.randint(0, len(data))
    match luck.randint(0, 7):
        case 0 if at < len(data):
            data[at] ^= 1 << luck.randint(0, 7)
        case 1 if at < len(data):
            data[at] = luck.choice(TELLING)
        case 2:
            del data[at : at + luck.randint(1, 16)]
        case 3:
            data[at:at] = luck.randbytes(luck.randint(1, 8))
        case 4:
            data[at:at] = luck.choice(FLOODS)
        case 5:
            del data[at:]
        case 6:
            data[at:at] = luck.choice(seeds)[: luck.randint(0, 64)]
        case _:
            data[at:at] = data[at : at + luck.randint(1, 32)] * luck.randint(1, 4)
