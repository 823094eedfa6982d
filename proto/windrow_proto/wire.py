"""Sealing and unsealing: an Envelope becomes a Frame whose proof covers exactly the bytes that travel, and back. Pure.

Nothing of an envelope is believed, or even parsed, before its proof holds. What bodies mean: wire_link.py (the link's
own messages), wire_command.py and wire_host.py.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, cast

from google.protobuf.message import DecodeError

from windrow_proto import wire_fields as fields
from windrow_proto.bodies import ENCRYPTED_BESIDE_BYTES
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Record
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.v1 import link_pb2

_KINDS: Final = {int(kind): kind for kind in Kind if kind is not Kind.UNSPECIFIED}
_CLASSES: Final = {int(frame_class): frame_class for frame_class in FrameClass}
"""Looked up once for each message: asking the enumeration costs five times as much."""
TOGETHER_MAX: Final = 64
TOGETHER_BYTES_MAX: Final = 65_536
"""Frames of one message and about how large it may grow: what is more urgent waits behind it."""
FIELDS_MAX: Final = 1024
"""Of one message and its frames: 64 frames have five each, and later versions may have more."""
MORE_FIELD: Final = link_pb2.Frame.DESCRIPTOR.fields_by_name["more"].number


class Prover(Protocol):
    """Makes the proof of an envelope: keys.LinkProver, SignProver or MacProver."""

    def prove(self, kind: Kind, signed: bytes) -> tuple[int, bytes]:
        """The proof's kind (link.proto ProofKind) and the proof."""

    def encrypt(self, kind: Kind, sequence: int, body: bytes) -> bytes:
        """The body as only the other end reads it; nothing where it goes as it is."""


class Verifier(Protocol):
    """Checks the proof of an envelope: keys.LinkVerifier."""

    def verify(self, proof_kind: int, signed: bytes, proof: bytes) -> None:
        """Raise BadProof unless the proof holds."""

    def suffices(self, proof_kind: int, kind: Kind) -> bool:
        """True if this kind of proof is the one this kind of message must carry."""

    def decrypt(self, kind: Kind, sequence: int, encrypted: bytes) -> bytes:
        """A body that the other end has encrypted; raises BadProof."""


class Envelope(NamedTuple):
    """One message of the link under its proof; not_after_ns is 0 where nothing expires (see link.proto)."""

    host_id: HostId
    boot_id: BootId
    epoch: int
    frame_class: FrameClass
    lane: Lane
    sequence: int
    kind: Kind
    body: bytes
    not_after_ns: int = 0


def seal(envelope: Envelope, prover: Prover) -> link_pb2.Frame:
    """Put an envelope under its proof; the frame repeats class, lane and sequence for Access."""
    frame_class = cast("link_pb2.FrameClass", int(envelope.frame_class))
    lane = cast("link_pb2.Lane", int(envelope.lane))
    encrypted = prover.encrypt(envelope.kind, envelope.sequence, envelope.body)
    signed = link_pb2.Envelope(
        host_id=envelope.host_id,
        boot_id=envelope.boot_id,
        epoch=envelope.epoch,
        frame_class=frame_class,
        lane=lane,
        sequence=envelope.sequence,
        kind=cast("link_pb2.Kind", int(envelope.kind)),
        not_after_ns=envelope.not_after_ns,
        body=b"" if encrypted else envelope.body,
        encrypted_body=encrypted,
    ).SerializeToString()
    proof_kind, proof = prover.prove(envelope.kind, signed)
    sealed = link_pb2.Sealed(signed=signed, proof=proof, proof_kind=cast("link_pb2.ProofKind", proof_kind))
    return link_pb2.Frame(
        frame_class=frame_class, lane=lane, sequence=envelope.sequence, sealed=sealed.SerializeToString()
    )


def put_together(frames: Sequence[link_pb2.Frame]) -> link_pb2.Frame:
    """Frames, one to TOGETHER_MAX of them, as one message of an agent's stream; an Access takes them apart."""
    first, *more = frames
    first.more.extend(more)
    return first


def gathered(frames: Iterable[link_pb2.Frame]) -> Iterator[link_pb2.Frame]:
    """Frames in as few messages as may be, none of which grows much beyond TOGETHER_BYTES_MAX."""
    some: list[link_pb2.Frame] = []
    size = 0
    for frame in frames:
        some.append(frame)
        size += len(frame.sealed)
        if len(some) == TOGETHER_MAX or size >= TOGETHER_BYTES_MAX:
            yield put_together(some)
            some, size = [], 0
    if some:
        yield put_together(some)


def frame_from(message: bytes) -> link_pb2.Frame:
    """Parse one message of an agent's stream; raises DecodeError. A large one is looked at before: a megabyte of frames
    without anything in them becomes a hundred when it is parsed, and of frames in frames no less."""
    if len(message) > TOGETHER_BYTES_MAX and not _is_plain(message):
        raise DecodeError(f"more than {FIELDS_MAX} fields, or none that can be read")
    return link_pb2.Frame.FromString(message)


def _is_plain(message: bytes) -> bool:
    """True if a frame and those in it have no more than FIELDS_MAX fields together."""
    fields_left = FIELDS_MAX
    parts = [(0, len(message))]
    while parts:
        at, end = parts.pop()
        while at < end:
            fields_left -= 1
            if fields_left < 0:
                return False
            key, at = _varint(message, at)
            match key & 7:
                case 0:
                    _, at = _varint(message, at)
                case 1:
                    at += 8
                case 2:
                    length, at = _varint(message, at)
                    if key >> 3 == MORE_FIELD:
                        parts.append((at, min(end, at + length)))
                    at += length
                case 5:
                    at += 4
                case _:
                    return False  # groups, which nothing here has
    return True


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """The number that begins here, and where it ends; a torn one is the parser's to refuse."""
    value = shift = 0
    for at in range(at, min(at + 10, len(message))):  # noqa: B020  # ten bytes are the longest
        value |= (message[at] & 0x7F) << shift
        shift += 7
        if message[at] < 0x80:
            break
    return value, at + 1


def take_apart(frame: link_pb2.Frame) -> Sequence[link_pb2.Frame]:
    """The frames of one message in their order; raises InvalidInput for too many or nested ones."""
    if not frame.more:
        return (frame,)
    more = tuple(frame.more[:TOGETHER_MAX])  # looking at a hundred thousand costs half a gigabyte
    if len(more) >= TOGETHER_MAX or any(one.more for one in more):
        raise InvalidInput(f"One message carries at most {TOGETHER_MAX} frames, and they carry none.")
    frame.ClearField("more")
    return frame, *more


def unseal(frame: link_pb2.Frame, verifier: Verifier) -> Envelope:
    """Check and open a frame; raises BadProof (also when Access changed class, lane or sequence) or InvalidInput."""
    envelope = unseal_bytes(frame.sealed, verifier)
    outside: tuple[int, int, int] = (frame.frame_class, frame.lane, frame.sequence)
    if outside != (envelope.frame_class, envelope.lane, envelope.sequence):
        raise BadProof("The frame says other things than the envelope in it.", subject=envelope.host_id)
    return envelope


def unseal_bytes(sealed: bytes, verifier: Verifier) -> Envelope:
    """Check and open sealed bytes as they were kept; raises BadProof or InvalidInput."""
    outer = fields.parse(link_pb2.Sealed, sealed, fields.SEALED_BYTES_MAX)
    signed, proof_kind = outer.signed, outer.proof_kind  # each look at a field of bytes copies it
    verifier.verify(proof_kind, signed, outer.proof)
    inner = fields.parse(link_pb2.Envelope, signed, fields.SEALED_BYTES_MAX)
    kind, body, encrypted = to_kind(inner.kind), inner.body, inner.encrypted_body
    if not verifier.suffices(proof_kind, kind):
        raise BadProof(f"{kind.name} does not carry the kind of proof it must.", subject=inner.host_id[:64])
    if (size := len(body) or len(encrypted) - ENCRYPTED_BESIDE_BYTES) > body_bytes_max(kind):
        raise InvalidInput(f"A body of {size} bytes is too large for {kind.name}.")
    if encrypted:
        body = verifier.decrypt(kind, inner.sequence, encrypted)
    frame_class = _CLASSES.get(inner.frame_class)
    if frame_class is None:
        raise InvalidInput(f"There is no frame class {inner.frame_class}.")
    return Envelope(
        fields.host_id(inner.host_id),
        fields.boot_id(inner.boot_id),
        inner.epoch,
        frame_class,
        fields.lane(inner.lane),
        inner.sequence,
        kind,
        body,
        inner.not_after_ns,
    )


def sealed_bytes(frame: link_pb2.Frame) -> bytes:
    """Returns the bytes that are kept as evidence: the sealed bytes, which `unseal_bytes` can check again at any
    time."""
    return frame.sealed


def signed_digest(frame: link_pb2.Frame) -> bytes:
    """SHA-256 of the bytes under the proof; a welcome names its hello by it."""
    return hashlib.sha256(fields.parse(link_pb2.Sealed, frame.sealed, fields.SEALED_BYTES_MAX).signed).digest()


def to_kind(number: int) -> Kind:
    """A received kind; raises InvalidInput for one we do not know."""
    kind = _KINDS.get(number)
    if kind is None:
        raise InvalidInput(
            f"There is no kind of message {number}; the peer may be newer." if number else "A message without a kind."
        )
    return kind


def body_bytes_max(kind: Kind) -> int:
    """The largest body of a kind, its Record's wrapping included."""
    return fields.TELEMETRY_BYTES_MAX + 64 if kind is Kind.TELEMETRY else fields.CONTROL_BYTES_MAX


def encode_record(record: Record) -> bytes:
    """A record as the body of an envelope, and as the spool keeps it."""
    return link_pb2.Record(
        origin_boot=record.origin_boot,
        origin_sequence=record.origin_sequence,
        kind=cast("link_pb2.Kind", int(record.kind)),
        body=record.body,
    ).SerializeToString()


def decode_record(data: bytes) -> Record:
    """Read a record; raises InvalidInput on garbage, sequence 0 or a kind we do not know."""
    message = fields.parse(link_pb2.Record, data)
    sequence = message.origin_sequence
    if sequence < 1:
        raise InvalidInput("Sequences count from 1.")
    return Record(fields.boot_id(message.origin_boot), sequence, to_kind(message.kind), message.body)
