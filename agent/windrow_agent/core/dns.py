"""Encodes questions to a name server and decodes its answers: A, AAAA and SRV, and no more of RFC 1035 than that. Pure.

Whoever answers may lie, so reading is bounded before it begins: at most RECORDS_MAX records are looked at, names only
point backwards, and what is not an answer to our own question is refused whole.
"""

import ipaddress
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from windrow_proto.dns_names import NAME_CHARS_MAX
from windrow_proto.errors import InvalidInput

UDP_BYTES_MAX: Final = 1232
"""The size of a UDP answer that is offered: nothing of this size is fragmented on the way (DNS flag day 2020)."""
TCP_BYTES_MAX: Final = 16_384
"""More than RECORDS_MAX records can need; a longer answer is not read."""
RECORDS_MAX: Final = 64
POINTERS_MAX: Final = 16
"""In one name; honest servers need one or two."""
ALIASES_MAX: Final = 8
"""A name that is the name of a name, and so on, this often at most."""

_HEADER: Final = struct.Struct("!HHHHHH")
_RECORD: Final = struct.Struct("!HHIH")
_SERVICE: Final = struct.Struct("!HHH")
_IN: Final = 1
_RECURSE: Final = 0x0100
_IS_ANSWER: Final = 0x8000
_IS_TRUNCATED: Final = 0x0200
_OPCODE: Final = 0x7800
_ALIAS: Final = 5
_OPTIONS: Final = 41
_NO_SUCH_NAME: Final = 3


class RecordType(IntEnum):
    """Types of records that may be asked for, by their number on the line."""

    A = 1
    AAAA = 28
    SRV = 33


@dataclass(frozen=True, slots=True)
class Question:
    """One name, in lower case and without its last dot, and what is asked of it."""

    name: str
    kind: RecordType


@dataclass(frozen=True, slots=True)
class Service:
    """One SRV record (RFC 2782): the lower priority first, then by weight; both 0 to 65535."""

    priority: int
    weight: int
    target: str
    port: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The records of a server's answer, maybe none. is_truncated: the question has to be asked by TCP."""

    is_truncated: bool = False
    addresses: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()


def encode_question(number: int, question: Question) -> bytes:
    """One question for a recursive server. number: 0 to 65535, unforeseeable, so that nobody answers in its place."""
    labels = b"".join(bytes((len(label),)) + label.encode("ascii") for label in question.name.split("."))
    asked = labels + b"\0" + struct.pack("!HH", question.kind, _IN)
    options = b"\0" + _RECORD.pack(_OPTIONS, UDP_BYTES_MAX, 0, 0)
    return _HEADER.pack(number, _RECURSE, 1, 0, 0, 1) + asked + options


def decode_answer(data: bytes, number: int, question: Question) -> Answer:
    """Read what a server answered to `question` under `number`.

    Raises InvalidInput for everything that is not an answer to it, and for a server's own failure (SERVFAIL, REFUSED).
    """
    try:
        return _decode(data, number, question)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("The answer of the name server ends early or is garbled.") from error


def _decode(data: bytes, number: int, question: Question) -> Answer:
    answered, flags, questions, records, _, _ = _HEADER.unpack_from(data)
    name, at = _name(data, _HEADER.size)
    kind, group = struct.unpack_from("!HH", data, at)
    if answered != number or questions != 1 or (name, kind, group) != (question.name, question.kind, _IN):
        raise InvalidInput("The name server answered another question.")
    if not flags & _IS_ANSWER or flags & _OPCODE:
        raise InvalidInput("The name server sent something that is not an answer.")
    code = flags & 0xF
    if code == _NO_SUCH_NAME:
        return Answer()
    if code:
        raise InvalidInput(f"The name server failed (code {code}).")
    is_truncated = bool(flags & _IS_TRUNCATED)
    if is_truncated:
        return Answer(is_truncated=True)
    at += 4
    found: dict[str, list[str | Service]] = {}
    aliases: dict[str, str] = {}
    for _ in range(min(records, RECORDS_MAX)):
        owner, at = _name(data, at)
        kind, group, _, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + size > len(data):
            raise InvalidInput("The answer of the name server ends early.")
        if group == _IN and kind == _ALIAS:
            aliases[owner] = _name(data, at)[0]
        elif group == _IN and kind == question.kind:
            found.setdefault(owner, []).append(_value(data, at, size, question.kind))
        at += size
    return _of(question.name, found, aliases)


def _of(name: str, found: dict[str, list[str | Service]], aliases: dict[str, str]) -> Answer:
    """Only what is said of the name that was asked for, or of the name it stands for."""
    for _ in range(ALIASES_MAX):
        if name in found or name not in aliases:
            break
        name = aliases[name]
    values = found.get(name, ())
    return Answer(
        addresses=tuple(value for value in values if isinstance(value, str)),
        services=tuple(value for value in values if isinstance(value, Service)),
    )


def _value(data: bytes, at: int, size: int, kind: RecordType) -> str | Service:
    match kind:
        case RecordType.A:
            return str(ipaddress.IPv4Address(data[at : at + size]))
        case RecordType.AAAA:
            return str(ipaddress.IPv6Address(data[at : at + size]))
        case RecordType.SRV:
            priority, weight, port = _SERVICE.unpack_from(data, at)
            target, end = _name(data, at + _SERVICE.size)
            if end != at + size:
                raise InvalidInput("A service record of the name server has another length than it says.")
            return Service(priority, weight, target, port)


def _name(data: bytes, at: int) -> tuple[str, int]:
    """The name that begins at `at`, in lower case, and where what follows it begins. Pointers lead backwards only."""
    labels: list[str] = []
    end, chars, pointers = -1, 0, 0
    while size := data[at]:
        if size >= 0xC0:
            target = (size & 0x3F) << 8 | data[at + 1]
            end = at + 2 if end < 0 else end
            pointers += 1
            if target >= at or pointers > POINTERS_MAX:
                raise InvalidInput("A name in the answer of the name server points in circles.")
            at = target
            continue
        label = data[at + 1 : at + 1 + size]
        chars += size + 1
        if size > 63 or len(label) < size or chars > NAME_CHARS_MAX + 1:
            raise InvalidInput("A name in the answer of the name server is too long.")
        labels.append(label.decode("ascii").lower())
        at += 1 + size
    return ".".join(labels), at + 1 if end < 0 else end
