"""The compute challenge as bytes and back; every size is known before and held to. In its channel each message comes
after its length: `framed` and `StepReader`. Pure."""

import struct
from typing import Final

from windrow_proto import wire_fields as fields
from windrow_proto.challenge import (
    CARDS_MAX,
    LEAF_BYTES,
    OPENINGS_MAX,
    ROUNDS_MAX,
    SIZE_MAX,
    Answer,
    Challenge,
    Commitment,
    Failure,
    Opening,
    Place,
    Plan,
    Ready,
    Selection,
)
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.fill import BLOCK_BYTES, PROBES_MAX, Fill, Filled, Probe, Values
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
STEP_BYTES_MAX: Final = ANSWER_BYTES_MAX + 1_024
"""The largest message with its card's name; a plan of 64 names is far below it."""
FAILURE_MAX: Final = 2_000
"""Characters of a failure."""
FILL_BYTES_MAX: Final = 24_576
"""512 blocks of 32 bytes each, or 512 numbers of at most 10, with their lengths."""
HEAD: Final = struct.Struct(">I")
"""Bytes of the message that follows."""

Step = Plan | Ready | Failure | Challenge | Commitment | Selection | Answer | Fill | Filled | Probe | Values


def encode_challenge(challenge: Challenge) -> bytes:
    """Encodes the challenge of a GPU."""
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


def encode_fill(fill: Fill) -> bytes:
    """Encodes the fill that is to be written."""
    return challenge_pb2.ChallengeFill(nonce=fill.nonce, lines=fill.lines).SerializeToString()


def decode_fill(data: bytes) -> Fill:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeFill, data, FILL_BYTES_MAX)
    return Fill(message.nonce, message.lines)


def encode_filled(filled: Filled) -> bytes:
    """How much was written."""
    return challenge_pb2.ChallengeFilled(lines=filled.lines).SerializeToString()


def decode_filled(data: bytes) -> Filled:
    """Raises InvalidInput or TooLarge."""
    return Filled(fields.parse(challenge_pb2.ChallengeFilled, data, FILL_BYTES_MAX).lines)


def encode_probe(probe: Probe) -> bytes:
    """Which blocks are asked for."""
    return challenge_pb2.ChallengeProbe(blocks=probe.blocks).SerializeToString()


def decode_probe(data: bytes) -> Probe:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeProbe, data, FILL_BYTES_MAX)
    return Probe(tuple(fields.listed(message.blocks, PROBES_MAX)))


def encode_values(values: Values) -> bytes:
    """Encodes the values of the blocks."""
    return challenge_pb2.ChallengeValues(values=values.values).SerializeToString()


def decode_values(data: bytes) -> Values:
    """Raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeValues, data, FILL_BYTES_MAX)
    if len(message.values) > PROBES_MAX * BLOCK_BYTES:
        raise TooLarge(f"{len(message.values)} bytes of values; {PROBES_MAX * BLOCK_BYTES} at most can be asked for.")
    return Values(message.values)


def _opening(message: challenge_pb2.ChallengeOpening) -> Opening:
    if len(message.leaf) != LEAF_BYTES:
        raise InvalidInput(f"A leaf has {LEAF_BYTES} bytes, this one {len(message.leaf)}.")
    if len(message.path) % HASH_BYTES or len(message.path) > DEPTH_MAX * HASH_BYTES:
        raise InvalidInput(f"A path is at most {DEPTH_MAX} whole hashes, this one has {len(message.path)} bytes.")
    starts = range(0, len(message.path), HASH_BYTES)
    return Opening(message.leaf, tuple(message.path[at : at + HASH_BYTES] for at in starts))


def _id(value: bytes) -> bytes:
    return fields.digest(value, "A challenge's id")


def encode_step(gpu_uuid: str, step: Step) -> bytes:
    """One message of a challenge's channel, about this card; about all (empty) where it is the plan."""
    message = challenge_pb2.ChallengeStep(gpu_uuid=gpu_uuid)
    match step:
        case Plan(gpu_uuids, size):
            message.plan.CopyFrom(challenge_pb2.ChallengePlan(gpu_uuids=gpu_uuids, size=size))
        case Ready(device, memory_bytes):
            message.ready.CopyFrom(challenge_pb2.ChallengeReady(device=device, memory_bytes=memory_bytes))
        case Failure(detail):
            message.failure.CopyFrom(challenge_pb2.ChallengeFailure(detail=detail[:FAILURE_MAX]))
        case Challenge():
            message.challenge.MergeFromString(encode_challenge(step))
        case Commitment():
            message.commitment.MergeFromString(encode_commitment(step))
        case Selection():
            message.selection.MergeFromString(encode_selection(step))
        case Answer():
            message.answer.MergeFromString(encode_answer(step))
        case Fill():
            message.fill.MergeFromString(encode_fill(step))
        case Filled():
            message.filled.MergeFromString(encode_filled(step))
            message.filled.SetInParent()
        case Probe():
            message.probe.MergeFromString(encode_probe(step))
            message.probe.SetInParent()
        case Values():
            message.values.MergeFromString(encode_values(step))
            message.values.SetInParent()
    return message.SerializeToString()


def decode_step(data: bytes) -> tuple[GpuUuid, Step]:
    """A message and the card it is about; raises InvalidInput or TooLarge."""
    message = fields.parse(challenge_pb2.ChallengeStep, data, STEP_BYTES_MAX)
    return GpuUuid(fields.text(message.gpu_uuid)), _step(message)


def _step(message: challenge_pb2.ChallengeStep) -> Step:
    match message.WhichOneof("step"):
        case "plan":
            uuids = fields.listed(message.plan.gpu_uuids, CARDS_MAX)
            return Plan(tuple(GpuUuid(fields.text(uuid)) for uuid in uuids), message.plan.size)
        case "ready":
            return Ready(fields.text(message.ready.device), message.ready.memory_bytes)
        case "failure":
            return Failure(fields.text(message.failure.detail, FAILURE_MAX))
        case "challenge":
            return decode_challenge(message.challenge.SerializeToString())
        case "commitment":
            return decode_commitment(message.commitment.SerializeToString())
        case "selection":
            return decode_selection(message.selection.SerializeToString())
        case "answer":
            return decode_answer(message.answer.SerializeToString())
        case "fill":
            return decode_fill(message.fill.SerializeToString())
        case "filled":
            return decode_filled(message.filled.SerializeToString())
        case "probe":
            return decode_probe(message.probe.SerializeToString())
        case "values":
            return decode_values(message.values.SerializeToString())
        case _:
            raise InvalidInput("A step of a challenge that we do not know.")


def framed(gpu_uuid: str, step: Step) -> bytes:
    """The message as it goes through a channel."""
    body = encode_step(gpu_uuid, step)
    return HEAD.pack(len(body)) + body


class StepReader:
    """Puts the messages of a channel together again from the pieces that come."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[tuple[GpuUuid, Step]]:
        """The messages that are whole now. Raises InvalidInput or TooLarge: the channel is of no more use then."""
        self._held += data
        found: list[tuple[GpuUuid, Step]] = []
        while len(self._held) >= HEAD.size:
            (size,) = HEAD.unpack(self._held[: HEAD.size])
            if size > STEP_BYTES_MAX:
                raise TooLarge(f"A step of {size} bytes; the limit is {STEP_BYTES_MAX}.")
            end = HEAD.size + size
            if len(self._held) < end:
                break
            found.append(decode_step(bytes(self._held[HEAD.size : end])))
            del self._held[:end]
        return found
