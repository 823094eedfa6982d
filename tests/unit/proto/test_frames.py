"""Sealed objects: whatever is done to one, it is opened as what was sealed or refused, and never as something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.data_keys import TAG_BYTES, WRAPPED_BYTES, DataKey
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.frames import FRAME_BYTES, HEADER_BYTES, Opener, Sealer, open_sealed, seal, sealed_size

KEY = DataKey(bytes(range(32)))
SALT = bytes(range(16))
FRAME = 32
"""Small frames, so that many are tried."""
UNIT = FRAME + TAG_BYTES

plains = st.binary(max_size=6 * FRAME)
long_plains = st.binary(min_size=2 * FRAME + 1, max_size=6 * FRAME)


def sealed(plain: bytes, object_id: str = "ckpt/a/1", salt: bytes = SALT) -> bytes:
    return seal(KEY, object_id, salt, plain, FRAME)


def frames_of(whole: bytes) -> list[bytes]:
    body = whole[HEADER_BYTES:]
    return [body[start : start + UNIT] for start in range(0, len(body), UNIT)]


def refused(whole: bytes, key: DataKey = KEY, object_id: str = "ckpt/a/1") -> None:
    with pytest.raises(BadProof):
        open_sealed(key, object_id, whole, FRAME)


@given(plains)
def test_what_was_sealed_is_opened_and_its_size_was_known_before(plain):
    whole = sealed(plain)

    assert len(whole) == sealed_size(len(plain), FRAME)
    assert open_sealed(KEY, "ckpt/a/1", whole, FRAME) == plain


@given(plains, st.lists(st.integers(1, 50), max_size=20), st.lists(st.integers(1, 90), max_size=20))
def test_pieces_of_any_size_make_the_same_object(plain, in_sizes, out_sizes):
    sealer, opener = Sealer(KEY, "x", SALT, FRAME), Opener(KEY, "x", FRAME)
    whole = b"".join(sealer.feed(piece) for piece in cut(plain, in_sizes)) + sealer.finish()

    assert whole == sealed(plain, "x")
    assert b"".join(opener.feed(piece) for piece in cut(whole, out_sizes)) + opener.finish() == plain


def cut(content: bytes, sizes: list[int]) -> list[bytes]:
    found, at = [], 0
    for size in sizes:
        found.append(content[at : at + size])
        at += size
    return [*found, content[at:]]


@given(plains, st.data())
def test_every_flipped_bit_is_refused(plain, data):
    whole = bytearray(sealed(plain))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8

    refused(bytes(whole))


@given(plains, st.data())
def test_every_truncation_is_refused_also_between_frames(plain, data):
    whole = sealed(plain)
    refused(whole[: data.draw(st.integers(0, len(whole) - 1))])
    refused(whole[: HEADER_BYTES + data.draw(st.integers(0, len(frames_of(whole)) - 1)) * UNIT])


@given(plains, st.binary(min_size=1, max_size=2 * UNIT))
def test_whatever_is_added_behind_is_refused(plain, more):
    refused(sealed(plain) + more)


@given(long_plains, st.data())
def test_frames_in_another_order_dropped_or_repeated_are_refused(plain, data):
    whole = sealed(plain)
    frames = frames_of(whole)
    order = data.draw(st.lists(st.integers(0, len(frames) - 1), max_size=len(frames) + 2))

    made = whole[:HEADER_BYTES] + b"".join(frames[number] for number in order)

    if made != whole:
        refused(made)


@given(long_plains, long_plains, st.data())
def test_a_frame_of_another_upload_or_another_object_is_refused(plain, other, data):
    whole = sealed(plain)
    for foreign in (sealed(other, salt=bytes(16)), sealed(plain, object_id="ckpt/a/2")):
        frames, theirs = frames_of(whole), frames_of(foreign)
        at = data.draw(st.integers(0, min(len(frames), len(theirs)) - 1))
        if frames[at] != theirs[at]:
            frames[at] = theirs[at]
            refused(whole[:HEADER_BYTES] + b"".join(frames))


@given(plains)
def test_another_name_or_key_opens_nothing(plain):
    refused(sealed(plain), object_id="ckpt/a/11")
    refused(sealed(plain), key=DataKey(bytes(32)))


def test_a_frame_of_real_size_marks_its_end():
    plain = bytes(FRAME_BYTES)
    whole = seal(KEY, "x", SALT, plain)

    assert len(whole) == sealed_size(FRAME_BYTES) == HEADER_BYTES + FRAME_BYTES + TAG_BYTES
    assert open_sealed(KEY, "x", whole) == plain
    assert sealed_size(FRAME_BYTES + 1) == HEADER_BYTES + FRAME_BYTES + 1 + 2 * TAG_BYTES


def test_two_uploads_of_the_same_bytes_share_none():
    first, second = sealed(bytes(3 * FRAME), salt=bytes(16)), sealed(bytes(3 * FRAME), salt=bytes(15) + b"\1")

    assert not set(frames_of(first)) & set(frames_of(second))


def test_a_wrapped_key_is_opened_for_its_owner_alone():
    above = DataKey.generate().below("account/acct_1")
    key = DataKey.generate()
    wrapped = above.wrap(key, "ckpt/a")

    assert above.unwrap(wrapped, "ckpt/a") == key
    assert len(wrapped) == WRAPPED_BYTES
    for opener, content, context in (
        (above, wrapped, "ckpt/b"),
        (DataKey.generate(), wrapped, "ckpt/a"),
        (above, wrapped[:-1] + bytes([wrapped[-1] ^ 1]), "ckpt/a"),
        (above, b"", "ckpt/a"),
    ):
        with pytest.raises(BadProof):
            opener.unwrap(content, context)


def test_a_key_is_not_shown_and_not_of_another_length():
    assert "raw" not in repr(KEY)
    with pytest.raises(InvalidInput):
        DataKey(b"short")
