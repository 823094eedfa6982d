"""Master and host agree on the generator's published answers, entries, seeds, trees, and sizes on the wire."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.challenge.reference import CHALLENGE
from windrow_master.verification.product import line
from windrow_proto import merkle, wire_challenge
from windrow_proto.challenge import (
    FIRST_ROOT,
    LEAF_BYTES,
    LEAF_COLUMNS,
    OPENINGS_MAX,
    ROUNDS_MAX,
    SIZE_MAX,
    Answer,
    Challenge,
    Commitment,
    Matrix,
    Opening,
    Place,
    Selection,
    entry,
    generator_key,
)
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.ids import GpuUuid
from windrow_proto.philox import MASK, philox

WORDS = st.integers(0, MASK)
SEEDS = st.binary(min_size=32, max_size=32)

# The three lines `philox4x64 10` of the file kat_vectors of Random123 (D. E. Shaw Research): counter, key, answer.
KNOWN = [
    "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
    "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b",
    "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff "
    "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0",
    "243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89 452821e638d01377 be5466cf34e90c6c "
    "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
]


@pytest.mark.parametrize("known", KNOWN)
def test_the_generator_gives_its_published_answers(known):
    c0, c1, c2, c3, k0, k1, *answer = (int(word, 16) for word in known.split())

    assert philox((c0, c1, c2, c3), (k0, k1)) == tuple(answer)


@given(WORDS, WORDS, WORDS, WORDS, WORDS, WORDS)
def test_the_masters_generator_in_c_gives_the_same(c0, c1, c2, c3, k0, k1):
    before = ((c3 << 192 | c2 << 128 | c1 << 64 | c0) - 1) % (1 << 256)
    generator = np.random.Philox(key=k1 << 64 | k0, counter=before)

    assert tuple(int(word) for word in generator.random_raw(4)) == philox((c0, c1, c2, c3), (k0, k1))


@given(SEEDS, st.sampled_from(Matrix), st.integers(0, SIZE_MAX - 1), st.integers(0, 255))
def test_the_masters_lines_hold_the_entries_that_are_defined(seed, matrix, number, position):
    assert int(line(generator_key(seed), matrix, number, 256)[position]) == entry(seed, matrix, number, position)


def test_an_entry_is_no_function_of_the_sum_of_its_line_and_position():
    seed = bytes(range(32))

    along_one_sum = {entry(seed, Matrix.A, number, 100 - number) for number in range(100)}
    assert len(along_one_sum) == 100


@pytest.mark.parametrize(
    "change", [{"nonce": b"m" * 32}, {"host_key": b"l" * 32}, {"gpu_uuid": "GPU-2"}, {"size": 128}, {"rounds": 3}]
)
def test_a_seed_depends_on_every_part_of_its_challenge(change):
    assert replace(CHALLENGE, **change).seed(0, FIRST_ROOT) != CHALLENGE.seed(0, FIRST_ROOT)


def test_a_seed_depends_on_its_round_and_on_the_root_before():
    seeds = {CHALLENGE.seed(0, FIRST_ROOT), CHALLENGE.seed(1, FIRST_ROOT), CHALLENGE.seed(1, b"r" * 32)}

    assert len(seeds) == 3


@pytest.mark.parametrize(
    "change",
    [
        *({"size": size} for size in (0, 32, 65, 96, 2 * SIZE_MAX)),
        *({"rounds": rounds} for rounds in (0, ROUNDS_MAX + 1)),
        *({"nonce": b"short"}, {"host_key": b""}, {"gpu_uuid": ""}),
    ],
)
def test_a_challenge_that_cannot_be_is_refused(change):
    with pytest.raises(InvalidInput):
        replace(CHALLENGE, **change)


@given(st.data())
def test_every_leaf_climbs_to_the_root_and_no_other_does(data):
    leaves = data.draw(st.sampled_from([1, 2, 8, 32]).flatmap(lambda n: st.lists(st.binary(), min_size=n, max_size=n)))
    hashes = [merkle.leaf_hash(leaf) for leaf in leaves]
    tree = merkle.levels(hashes)
    index = data.draw(st.integers(0, len(leaves) - 1))
    beside = merkle.path(tree, index)

    assert merkle.climb(hashes[index], index, beside) == tree[-1][0]
    assert merkle.climb(merkle.leaf_hash(leaves[index] + b"x"), index, beside) != tree[-1][0]


def test_a_node_never_passes_for_a_leaf():
    left, right = merkle.leaf_hash(b"a"), merkle.leaf_hash(b"b")

    assert merkle.leaf_hash(left + right) != merkle.node_hash(left, right)


def test_an_opening_reads_its_entries_from_the_left_and_little_endian():
    opening = Opening(b"".join(number.to_bytes(4, "little") for number in range(LEAF_COLUMNS)), ())

    assert [opening.entry(column) for column in (0, 63, 64 + 7)] == [0, 63, 7]
    assert Place(0, 3, 65).leaf(replace(CHALLENGE, size=128)) == 7


def test_the_largest_of_each_fits_the_wire_and_more_does_not():
    largest = Challenge(b"n" * 32, b"k" * 32, GpuUuid("\U0001f600" * 128), SIZE_MAX, ROUNDS_MAX)
    commitment = Commitment(largest.id, largest.gpu_uuid, (b"r" * 32,) * ROUNDS_MAX)
    selection = Selection(largest.id, (Place(ROUNDS_MAX - 1, SIZE_MAX - 1, SIZE_MAX - 1),) * OPENINGS_MAX)
    answer = Answer(largest.id, (Opening(bytes(LEAF_BYTES), (b"h" * 32,) * largest.depth),) * OPENINGS_MAX)

    assert wire_challenge.decode_challenge(wire_challenge.encode_challenge(largest)) == largest
    assert wire_challenge.decode_commitment(wire_challenge.encode_commitment(commitment)) == commitment
    assert wire_challenge.decode_selection(wire_challenge.encode_selection(selection)) == selection
    assert wire_challenge.decode_answer(wire_challenge.encode_answer(answer)) == answer
    with pytest.raises(TooLarge):
        wire_challenge.decode_answer(bytes(wire_challenge.ANSWER_BYTES_MAX + 1))
    for refused in (
        lambda: wire_challenge.decode_commitment(
            wire_challenge.encode_commitment(replace(commitment, roots=(b"r" * 32,) * (ROUNDS_MAX + 1)))
        ),
        lambda: wire_challenge.decode_selection(
            wire_challenge.encode_selection(replace(selection, places=(Place(0, 0, 0),) * (OPENINGS_MAX + 1)))
        ),
    ):
        with pytest.raises(InvalidInput):
            refused()


@pytest.mark.parametrize(
    "opening",
    [
        *(Opening(bytes(size), ()) for size in (0, LEAF_BYTES - 4, LEAF_BYTES + 1)),
        *(Opening(bytes(LEAF_BYTES), path) for path in ((b"h" * 31,), (b"h" * 32,) * 25)),
    ],
)
def test_a_leaf_or_path_of_a_wrong_size_is_refused(opening):
    with pytest.raises(InvalidInput):
        wire_challenge.decode_answer(wire_challenge.encode_answer(Answer(CHALLENGE.id, (opening,))))


@pytest.mark.parametrize("place", [Place(ROUNDS_MAX, 0, 0), Place(0, SIZE_MAX, 0), Place(0, 0, SIZE_MAX)])
def test_a_place_in_no_matrix_is_refused(place):
    with pytest.raises(InvalidInput):
        wire_challenge.decode_selection(wire_challenge.encode_selection(Selection(CHALLENGE.id, (place,))))
