"""A Merkle tree of SHA-256 over a power of two of leaves. Pure.

Leaves and nodes are hashed under different tags, so that no node can pass for a leaf, and the depth is known to whoever
checks, so that no path can be longer or shorter. The tags are four bytes: a kernel hashes whole words.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

HASH_BYTES: Final = 32
LEAF_TAG: Final = b"leaf"
NODE_TAG: Final = b"node"


def leaf_hash(data: bytes) -> bytes:
    """Of one leaf's bytes."""
    return hashlib.sha256(LEAF_TAG + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Of two hashes, in this order."""
    return hashlib.sha256(NODE_TAG + left + right).digest()


def levels(hashes: Sequence[bytes]) -> list[Sequence[bytes]]:
    """All levels above and with these hashes, from below; the last one holds the root alone. Their number must be a
    power of two: anything else is our own mistake."""
    assert hashes and len(hashes) & (len(hashes) - 1) == 0, f"{len(hashes)} is no power of two"
    found = [hashes]
    while len(found[-1]) > 1:
        below = found[-1]
        found.append([node_hash(below[i], below[i + 1]) for i in range(0, len(below), 2)])
    return found


def path(tree: Sequence[Sequence[bytes]], index: int) -> tuple[bytes, ...]:
    """The hashes beside the way from one hash of the lowest level to the root."""
    return tuple(level[(index >> depth) ^ 1] for depth, level in enumerate(tree[:-1]))


def climb(found: bytes, index: int, beside: Sequence[bytes]) -> bytes:
    """The root that a hash at this index has with this path; the index must lie under a tree of that depth."""
    assert 0 <= index < 1 << len(beside), f"{index} is not under a tree of depth {len(beside)}"
    for depth, other in enumerate(beside):
        found = node_hash(other, found) if index >> depth & 1 else node_hash(found, other)
    return found
