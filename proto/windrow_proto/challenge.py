"""The compute challenge, as far as Master and host must agree on it: values, seeds, matrices, leaves. Pure.

 Master ─ Plan(GPUs, size) ─▶ host ─ Ready or Failure for each ─▶ and only then, all at once:
 Master ─ Challenge(nonce, host key, GPU, size, rounds) ─▶ host    seed(0) = H(challenge, 0, zeros)
        ◀─ Commitment(one root a round) ────────────────           C = A·B mod 2**32, root(r) over all leaves of C,
        ── Selection(places, drawn after the commitment) ─▶        seed(r+1) = H(challenge, r+1, root(r))
        ◀─ Answer(leaf and path of each place) ─────────

A and B are drawn from the round's seed, each word from a counter of its own (matrix, line, block), never of a sum of
them: the matrices have no structure that would shorten the product. A line of A is a row, a line of B is a column. A
round's seed holds the root before it, so that rounds cannot be done side by side on several cards.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from windrow_proto import merkle
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import GpuUuid, WorkloadId
from windrow_proto.philox import philox

LEAF_COLUMNS: Final = 64
"""Entries of one leaf: 256 bytes to open, where a whole row of 16,384 would be 64 KiB."""
ENTRY_BYTES: Final = 4
LEAF_BYTES: Final = LEAF_COLUMNS * ENTRY_BYTES
BLOCK_ENTRIES: Final = 8
"""Entries from one block of the generator: four words of 64 bits, the low half of each first."""
SIZE_MIN: Final = LEAF_COLUMNS
SIZE_MAX: Final = 32_768
"""Rows of the largest matrices: one takes 4 GiB."""
ROUNDS_MAX: Final = 64
OPENINGS: Final = 64
"""A tenth of wrong entries is caught with 1 - 0.9**64 = 99.88 %."""
OPENINGS_MAX: Final = 512
"""A hundredth is caught with 1 - 0.99**512 = 99.4 %."""
NO_WORKLOAD: Final = WorkloadId("-")
"""In the opening of a challenge's channel: it reaches into no workload."""
CARDS_MAX: Final = 64
"""Of one host, challenged at once: as many as an agent lists."""
KEY_BYTES: Final = 32
FIRST_ROOT: Final = bytes(merkle.HASH_BYTES)
"""In place of the root before it, in the first round's seed."""

_ID_TAG: Final = b"windrow-challenge-1"
_SEED_TAG: Final = b"windrow-challenge-seed-1"


class Matrix(IntEnum):
    """Which factor an entry is of; a word of the generator's counter."""

    A = 0
    B = 1


@dataclass(frozen=True, slots=True)
class Challenge:
    """The questions that one GPU is asked. size: rows and columns, a power of two in [SIZE_MIN, SIZE_MAX]; rounds: 1 to
    ROUNDS_MAX. Raises InvalidInput for anything else."""

    nonce: bytes
    host_key: bytes
    gpu_uuid: GpuUuid
    size: int
    rounds: int

    def __post_init__(self) -> None:
        if len(self.nonce) != KEY_BYTES or len(self.host_key) != KEY_BYTES:
            raise InvalidInput(f"A challenge's nonce and host key have {KEY_BYTES} bytes each.")
        if not self.gpu_uuid:
            raise InvalidInput("A challenge names no GPU.")
        if not SIZE_MIN <= self.size <= SIZE_MAX or self.size & (self.size - 1):
            raise InvalidInput(f"A size of {self.size}: a power of two from {SIZE_MIN} to {SIZE_MAX} is wanted.")
        if not 1 <= self.rounds <= ROUNDS_MAX:
            raise InvalidInput(f"{self.rounds} rounds: 1 to {ROUNDS_MAX} are possible.")

    @property
    def id(self) -> bytes:
        """32 bytes that stand for all of it."""
        uuid = self.gpu_uuid.encode()
        sizes = b"".join(number.to_bytes(4, "big") for number in (len(uuid), self.size, self.rounds))
        return hashlib.sha256(_ID_TAG + self.nonce + self.host_key + sizes + uuid).digest()

    @property
    def leaves_per_row(self) -> int:
        """How many leaves a row of the product has."""
        return self.size // LEAF_COLUMNS

    @property
    def depth(self) -> int:
        """Levels of the tree above its leaves: hashes in a path."""
        return (self.size * self.leaves_per_row).bit_length() - 1

    def seed(self, number: int, root_before: bytes) -> bytes:
        """32 bytes of one round. number: from 0; root_before: of the round before, FIRST_ROOT in the first."""
        return hashlib.sha256(_SEED_TAG + self.id + number.to_bytes(4, "big") + root_before).digest()


@dataclass(frozen=True, slots=True)
class Commitment:
    """One root a round, for good. gpu_uuid: of the device that did the work."""

    challenge_id: bytes
    gpu_uuid: GpuUuid
    roots: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One entry of one round's product, each number from 0."""

    round: int
    row: int
    column: int

    def leaf(self, challenge: Challenge) -> int:
        """The number of the leaf that it is in."""
        return self.row * challenge.leaves_per_row + self.column // LEAF_COLUMNS

    def is_of(self, challenge: Challenge) -> bool:
        """True if there is such an entry."""
        return (
            0 <= self.round < challenge.rounds and 0 <= self.row < challenge.size and 0 <= self.column < challenge.size
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """The places to open, in the order of the answer."""

    challenge_id: bytes
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Opening:
    """One leaf and the hashes beside its way to the root."""

    leaf: bytes
    path: tuple[bytes, ...]

    def root(self, index: int) -> bytes:
        """The root that this leaf has at this index."""
        return merkle.climb(merkle.leaf_hash(self.leaf), index, self.path)

    def entry(self, column: int) -> int:
        """The entry in this column of the product."""
        start = column % LEAF_COLUMNS * ENTRY_BYTES
        return int.from_bytes(self.leaf[start : start + ENTRY_BYTES], "little")


@dataclass(frozen=True, slots=True)
class Answer:
    """One opening for each place, in the order of the selection."""

    challenge_id: bytes
    openings: tuple[Opening, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The cards to be challenged together, each with a prover of its own. Raises InvalidInput for none, too many or
    one twice."""

    gpu_uuids: tuple[GpuUuid, ...]
    size: int

    def __post_init__(self) -> None:
        if not 1 <= len(set(self.gpu_uuids)) == len(self.gpu_uuids) <= CARDS_MAX or "" in self.gpu_uuids:
            raise InvalidInput(f"From one to {CARDS_MAX} different cards can be challenged at once.")


@dataclass(frozen=True, slots=True)
class Ready:
    """A prover has compiled and has its memory. device: the name that its driver gives; memory_bytes: that can be
    filled there, by the driver's word; 0 where none can."""

    device: str
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A card takes no further part, and why. In place of Ready: nothing can be proved with it on this host."""

    detail: str


def generator_key(seed: bytes) -> tuple[int, int]:
    """The generator's key of a round: the first half of its seed."""
    return int.from_bytes(seed[:8], "little"), int.from_bytes(seed[8:16], "little")


def entry(seed: bytes, matrix: Matrix, line: int, position: int) -> int:
    """One entry of a factor, in [0, 2**32). line: the row of A or the column of B; position: along it, the one that is
    summed over. This is the definition; the prover's kernel and the Master's numpy are held to it."""
    block, place = divmod(position, BLOCK_ENTRIES)
    words = philox((block, line, matrix, 0), generator_key(seed))
    return words[place // 2] >> (32 * (place % 2)) & 0xFFFFFFFF


def row_tree(leaves: Sequence[bytes]) -> list[Sequence[bytes]]:
    """All levels over the leaves of one row; its last level is what the tree over all rows is made of."""
    return merkle.levels([merkle.leaf_hash(leaf) for leaf in leaves])
