"""Does the work of a challenge on one device, and opens the rows that are asked for. Blocking; for a child process.

Nothing of a product is kept but one hash a row: a row that is opened is multiplied again, which takes a thousandth of
the work. So it needs the memory of one factor and two slabs of rows, however many rounds there are.
"""

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

from windrow_agent.challenge.kernels import GROUP, SOURCE, TILE
from windrow_agent.challenge.opencl import Buffer, ComputeFailed, Device, OpenCl, Session
from windrow_agent.gpu.sysfs import address_of
from windrow_proto import merkle
from windrow_proto.challenge import (
    BLOCK_ENTRIES,
    ENTRY_BYTES,
    FIRST_ROOT,
    LEAF_BYTES,
    LEAF_COLUMNS,
    Answer,
    Challenge,
    Commitment,
    Matrix,
    Opening,
    Place,
    Selection,
    generator_key,
    row_tree,
)
from windrow_proto.ids import GpuUuid
from windrow_proto.merkle import HASH_BYTES

SLAB_ROWS: Final = 1_024
"""Rows multiplied by one launch: at a size of 16,384 well under the seconds after which a driver that also shows a
screen ends a kernel, and enough groups for every card."""

NO_DRIVER: Final = "none of its drivers is installed (Debian: nvidia-opencl-icd, mesa-opencl-icd or intel-opencl-icd)"
"""Debian and Ubuntu pack OpenCL's part of a card's driver apart from the rest."""


def choose(opencl: OpenCl, gpu_uuid: str, root: Path = Path("/")) -> Device:
    """The device of this UUID, by the first driver that has it; raises ComputeFailed where none does. Cards that the
    agent knows from the kernel's files are found by their place on the bus: drivers name them in ways of their own.

    root: of the file system.
    """
    devices = opencl.devices()
    for device in devices:
        if device.uuid == gpu_uuid:
            return device
    address = address_of(gpu_uuid, root)
    for device in devices:
        if device.address and device.address == address:
            return replace(device, uuid=gpu_uuid)
    raise ComputeFailed(f"No OpenCL device here is {gpu_uuid}{'' if devices else f': {NO_DRIVER}'}.")


class Prover:
    """One device, compiled for and with memory for matrices of one size."""

    def __init__(self, session: Session, device: Device, size: int) -> None:
        self._session = session
        self._device = device
        self._size = size
        self._slab = min(size, SLAB_ROWS)
        line_bytes = size * ENTRY_BYTES
        hashes = self._slab * (size // LEAF_COLUMNS) * HASH_BYTES
        needed = line_bytes * (size + 2 * self._slab + 1) + 2 * hashes
        if needed > device.memory_bytes:
            raise ComputeFailed(f"{device.name} has {device.memory_bytes} bytes; a size of {size} takes {needed}.")
        self._columns = session.buffer(line_bytes * size)
        self._rows = session.buffer(line_bytes * self._slab)
        self._product = session.buffer(line_bytes * self._slab)
        self._numbers = session.buffer(line_bytes)
        self._hashes = (session.buffer(hashes), session.buffer(hashes))
        names = ("generate", "multiply", "leaves", "nodes")
        self._generate, self._multiply, self._leaves, self._nodes = (session.kernel(name) for name in names)
        self._seeds: list[bytes] = []
        self._row_hashes: list[list[bytes]] = []

    def commit(self, challenge: Challenge) -> Commitment:
        """Do all rounds, each seeded by the root before; raises ComputeFailed if it is for another size or device."""
        if challenge.size != self._size or challenge.gpu_uuid != self._device.uuid:
            raise ComputeFailed("This challenge is for another device, or for another size than was prepared.")
        self._seeds, self._row_hashes, roots = [], [], []
        root = FIRST_ROOT
        for number in range(challenge.rounds):
            seed = challenge.seed(number, root)
            rows = self._round(seed)
            root = merkle.levels(rows)[-1][0]
            roots.append(root)
            self._seeds.append(seed)
            self._row_hashes.append(rows)
        return Commitment(challenge.id, GpuUuid(self._device.uuid), tuple(roots))

    def answer(self, challenge: Challenge, selection: Selection) -> Answer:
        """Open every place, in order; raises ComputeFailed for a place that this challenge has not."""
        if selection.challenge_id != challenge.id or not all(place.is_of(challenge) for place in selection.places):
            raise ComputeFailed("The rows to be opened are not of the challenge that was answered.")
        if len(self._seeds) != challenge.rounds:
            raise ComputeFailed("There is nothing to open before the commitment.")
        opened: dict[Place, Opening] = {}
        for number, places in groupby(sorted(set(selection.places)), key=lambda place: place.round):
            opened |= self._open(challenge, number, list(places))
        return Answer(selection.challenge_id, tuple(opened[place] for place in selection.places))

    def _round(self, seed: bytes) -> list[bytes]:
        """The hash of every row of one product."""
        self._draw(seed, Matrix.B, range(self._size), self._columns)
        found: list[bytes] = []
        for first in range(0, self._size, self._slab):
            self._product_of(seed, range(first, first + self._slab))
            data = self._session.read(self._hash_rows(), self._slab * HASH_BYTES)
            words = struct.unpack(f"<{len(data) // 4}I", data)
            packed = struct.pack(f">{len(words)}I", *words)
            found += [packed[at : at + HASH_BYTES] for at in range(0, len(packed), HASH_BYTES)]
        return found

    def _open(self, challenge: Challenge, number: int, places: Sequence[Place]) -> dict[Place, Opening]:
        """These places of one round, which all lie in it."""
        seed = self._seeds[number]
        above = merkle.levels(self._row_hashes[number])
        self._draw(seed, Matrix.B, range(self._size), self._columns)
        rows = sorted({place.row for place in places})
        row_bytes = self._size * ENTRY_BYTES
        found: dict[Place, Opening] = {}
        for first in range(0, len(rows), self._slab):
            part = rows[first : first + self._slab]
            padded = [*part, *[part[-1]] * (-len(part) % TILE)]
            self._product_of(seed, padded)
            data = self._session.read(self._product, len(part) * row_bytes)
            for at, row in enumerate(part):
                line = data[at * row_bytes : (at + 1) * row_bytes]
                leaves = [line[start : start + LEAF_BYTES] for start in range(0, row_bytes, LEAF_BYTES)]
                beside = row_tree(leaves)
                for place in (place for place in places if place.row == row):
                    leaf = place.column // LEAF_COLUMNS
                    path = (*merkle.path(beside, leaf), *merkle.path(above, row))
                    found[place] = Opening(leaves[leaf], path)
        return found

    def _product_of(self, seed: bytes, rows: Sequence[int]) -> None:
        """Multiply these rows of A, a multiple of TILE of them, with all columns of B."""
        self._draw(seed, Matrix.A, rows, self._rows)
        each = TILE // GROUP
        shape = (self._size // each, len(rows) // each)
        arguments = (ctypes.c_uint32(self._size), self._rows, self._columns, self._product)
        self._session.run(self._multiply, shape, arguments, (GROUP, GROUP))

    def _draw(self, seed: bytes, matrix: Matrix, lines: Sequence[int], out: Buffer) -> None:
        self._session.write(self._numbers, struct.pack(f"<{len(lines)}I", *lines))
        first, second = generator_key(seed)
        key = (ctypes.c_uint64(first), ctypes.c_uint64(second), ctypes.c_uint64(matrix))
        self._session.run(self._generate, (self._size // BLOCK_ENTRIES, len(lines)), (*key, self._numbers, out), None)

    def _hash_rows(self) -> Buffer:
        """Hash the slab's leaves, then pairs of them up to one hash a row; the buffer that holds these."""
        source, target = self._hashes
        count = self._slab * (self._size // LEAF_COLUMNS)
        self._session.run(self._leaves, (count,), (self._product, source), None)
        while count > self._slab:
            count //= 2
            self._session.run(self._nodes, (count,), (source, target), None)
            source, target = target, source
        return source


def open_session(opencl: OpenCl, device: Device) -> Session:
    """The device with the challenge's kernels compiled for it."""
    return Session(opencl, device, SOURCE)
