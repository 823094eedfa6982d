"""A prover in numpy, honest or not, as the one on a GPU is held to; small sizes only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windrow_master.verification.product import line
from windrow_proto import merkle
from windrow_proto.challenge import (
    FIRST_ROOT,
    LEAF_BYTES,
    Answer,
    Challenge,
    Commitment,
    Matrix,
    Opening,
    Selection,
    generator_key,
)
from windrow_proto.ids import GpuUuid

CHALLENGE = Challenge(b"n" * 32, b"k" * 32, GpuUuid("GPU-1"), 64, 2)

Product = NDArray[np.uint32]
Spoil = Callable[[Product], Product]


def product(challenge: Challenge, seed: bytes) -> Product:
    """A times B, mod 2**32."""
    key = generator_key(seed)
    rows = np.stack([line(key, Matrix.A, number, challenge.size) for number in range(challenge.size)])
    columns = np.stack([line(key, Matrix.B, number, challenge.size) for number in range(challenge.size)])
    found: Product = rows @ columns.T
    return found


def honest(found: Product) -> Product:
    """Nothing spoilt."""
    return found


def wrong_share(share: float, seed: int) -> Spoil:
    """Spoils this share of the entries."""

    def spoil(found: Product) -> Product:
        spoilt: Product = found ^ (np.random.default_rng(seed).random(found.shape) < share).astype(np.uint32)
        return spoilt

    return spoil


@dataclass
class Prover:
    """Keeps every round's tree."""

    commitment: Commitment
    trees: list[list[Sequence[bytes]]]
    leaves: list[list[bytes]]

    def answer(self, challenge: Challenge, selection: Selection) -> Answer:
        """Open what is asked."""
        return Answer(selection.challenge_id, tuple(self.openings(challenge, selection)))

    def openings(self, challenge: Challenge, selection: Selection) -> Iterator[Opening]:
        for place in selection.places:
            index = place.leaf(challenge)
            yield Opening(self.leaves[place.round][index], merkle.path(self.trees[place.round], index))


def prove(challenge: Challenge, spoil: Spoil = honest, *, is_chained: bool = True) -> Prover:
    """Do the work and commit to it; not chained, every round is seeded as if it were done beside the others."""
    prover = Prover(Commitment(challenge.id, challenge.gpu_uuid, ()), [], [])
    before = FIRST_ROOT
    for number in range(challenge.rounds):
        data = spoil(product(challenge, challenge.seed(number, before))).astype("<u4").tobytes()
        leaves = [data[at : at + LEAF_BYTES] for at in range(0, len(data), LEAF_BYTES)]
        tree = merkle.levels([merkle.leaf_hash(leaf) for leaf in leaves])
        prover.trees.append(tree)
        prover.leaves.append(leaves)
        before = tree[-1][0] if is_chained else FIRST_ROOT
        prover.commitment = replace(prover.commitment, roots=(*prover.commitment.roots, tree[-1][0]))
    return prover
