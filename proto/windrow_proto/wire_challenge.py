"""The compute challenge as bytes and back; every size is known before and held to."""

from typing import Final

from windrow_proto import wire_fields as fields
from windrow_proto.challenge import (
    LEAF_BYTES,
    OPENINGS_MAX,
    ROUNDS_MAX,
    SIZE_MAX,
    Answer,
    Challenge,
    Commitment,
    Opening,
    Place,
    Selection,
)
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import GpuUuid
from windrow_proto.merkle import HASH_BYTES
from windrow_proto.v1 import challenge_pb2

DEPTH_MAX: Final = (SIZE_MAX * SIZE_MAX * 4 // LEAF_BYTES).bit_length() - 1
CHALLENGE_BYTES_MAX: Final = 1_024
COMMITMENT_BYTES_MAX: Final = 4_096
"""64 roots with their lengths take 2,176 bytes, the rest some 600."""
SELECTION_BYTES_MAX: Final = 16_384
"""512 places of at most 14 bytes each take 7 KiB."""
ANSWER_BYTES_MAX: Final = OPENINGS_MAX * (LEAF_BYTES + DEPTH_MAX * HASH_BYTES + 16) + 64
"""Each leaf and path with their tags and lengths, and the challenge's id."""


def encode_challenge(challenge: Challenge) -> bytes:
    """What a GPU is asked."""
    return challenge_pb2.Challenge(
        nonce=challenge.nonce,
        host_key=challenge.host_key,
        gpu_uuid=challenge.gpu_uuid,
        size=challenge.size,
        rounds=challenge.rounds,
    ).SerializeToString()


def decode_challenge(data: bytes) -> Challenge:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.Challenge, data, CHALLENGE_BYTES_MAX)
    gpu_uuid = GpuUuid(fields.text(message.gpu_uuid))
    return Challenge(message.nonce, message.host_key, gpu_uuid, message.size, message.rounds)


def encode_commitment(commitment: Commitment) -> bytes:
    """The roots."""
    return challenge_pb2.ChallengeCommitment(
        challenge_id=commitment.challenge_id, gpu_uuid=commitment.gpu_uuid, roots=commitment.roots
    ).SerializeToString()


def decode_commitment(data: bytes) -> Commitment:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeCommitment, data, COMMITMENT_BYTES_MAX)
    roots = tuple(fields.digest(root, "A root") for root in fields.listed(message.roots, ROUNDS_MAX))
    return Commitment(_id(message.challenge_id), GpuUuid(fields.text(message.gpu_uuid)), roots)


def encode_selection(selection: Selection) -> bytes:
    """The places to open."""
    places = [challenge_pb2.ChallengePlace(round=p.round, row=p.row, column=p.column) for p in selection.places]
    return challenge_pb2.ChallengeSelection(challenge_id=selection.challenge_id, places=places).SerializeToString()


def decode_selection(data: bytes) -> Selection:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeSelection, data, SELECTION_BYTES_MAX)
    places = tuple(Place(p.round, p.row, p.column) for p in fields.listed(message.places, OPENINGS_MAX))
    if any(p.round >= ROUNDS_MAX or p.row >= SIZE_MAX or p.column >= SIZE_MAX for p in places):
        raise InvalidInput("A place to open lies in no matrix that a challenge can have.")
    return Selection(_id(message.challenge_id), places)


def encode_answer(answer: Answer) -> bytes:
    """The openings."""
    openings = [challenge_pb2.ChallengeOpening(leaf=o.leaf, path=b"".join(o.path)) for o in answer.openings]
    return challenge_pb2.ChallengeAnswer(challenge_id=answer.challenge_id, openings=openings).SerializeToString()


def decode_answer(data: bytes) -> Answer:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeAnswer, data, ANSWER_BYTES_MAX)
    openings = tuple(_opening(one) for one in fields.listed(message.openings, OPENINGS_MAX))
    return Answer(_id(message.challenge_id), openings)


def _opening(message: challenge_pb2.ChallengeOpening) -> Opening:
    if len(message.leaf) != LEAF_BYTES:
        raise InvalidInput(f"A leaf has {LEAF_BYTES} bytes, this one {len(message.leaf)}.")
    if len(message.path) % HASH_BYTES or len(message.path) > DEPTH_MAX * HASH_BYTES:
        raise InvalidInput(f"A path is at most {DEPTH_MAX} whole hashes, this one has {len(message.path)} bytes.")
    starts = range(0, len(message.path), HASH_BYTES)
    return Opening(message.leaf, tuple(message.path[at : at + HASH_BYTES] for at in starts))


def _id(value: bytes) -> bytes:
    return fields.digest(value, "A challenge's id")
