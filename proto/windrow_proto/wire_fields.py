"""Shared steps of every decoder: size first, then the message, then each text and list against its limit. Pure."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.ids import BootId, CommandId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.messages import LaneMarks
from windrow_proto.model import Isolation, Lane, SlotGrant
from windrow_proto.v1 import host_pb2, link_pb2

TEXT_MAX: Final = 128
"""Characters of a name, a code or an id."""
IMAGE_MAX: Final = 512
DETAIL_MAX: Final = 4096
"""Characters of a sentence for a person."""
ARGUMENT_MAX: Final = 65_536
ARGUMENTS_MAX_TOTAL: Final = 262_144
"""Characters of all of argv or env together: a quarter of a control message."""
LIST_MAX: Final = 4096
RANGES_MAX: Final = 1024
"""Ranges in one LaneMarks; the limit of Intervals, too."""
MARKS_MAX: Final = 256
"""LaneMarks in one message: a lane has one per boot whose records are still about."""
TELEMETRY_BYTES_MAX: Final = 262_144
CONTROL_BYTES_MAX: Final = 1_048_576
SEALED_BYTES_MAX: Final = CONTROL_BYTES_MAX + 4096
"""A control body with its record, envelope and proof around it."""

M = TypeVar("M", bound=Message)

HOSTS_KNOWN: Final = 16_384
"""Ids that were looked at lately: each message of a host brings its own."""
_KEPT_IN_DETAIL = "\n\t"
_LANES: Final = {int(one): one for one in Lane}


def parse(message: type[M], data: bytes, limit: int = CONTROL_BYTES_MAX) -> M:
    """Read a message of at most `limit` bytes; raises TooLarge before it is parsed, InvalidInput on garbage."""
    if len(data) > limit:
        raise TooLarge(f"{message.DESCRIPTOR.name} of {len(data)} bytes; the limit is {limit}.")
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise InvalidInput(f"These bytes are not a {message.DESCRIPTOR.name}.") from error


def clean_text(text: str, limit: int = TEXT_MAX) -> str:
    """Make a text safe to store and show: unprintable characters (control, direction, surrogates) become U+FFFD, and
    what goes over `limit` characters is cut. Line breaks and tabs stay where a whole sentence fits (DETAIL_MAX)."""
    text = text[:limit]
    if text.isprintable():
        return text
    kept = _KEPT_IN_DETAIL if limit >= DETAIL_MAX else ""
    return "".join(c if c.isprintable() or c in kept else "\ufffd" for c in text)


def text(value: str, limit: int = TEXT_MAX) -> str:
    """A received text, cleaned; raises InvalidInput over the limit."""
    if len(value) > limit:
        raise InvalidInput(f"A text of {len(value)} characters where at most {limit} are allowed.")
    return clean_text(value, limit)


def texts(values: Collection[str], limit: int = TEXT_MAX) -> tuple[str, ...]:
    """Received texts, each as `text`, at most LIST_MAX of them."""
    return tuple(text(value, limit) for value in listed(values))


def text_map(values: Mapping[str, str], limit: int = DETAIL_MAX) -> dict[str, str]:
    """A received map of texts; keys are short."""
    if len(values) > LIST_MAX:
        raise InvalidInput(f"{len(values)} entries where at most {LIST_MAX} are allowed.")
    return {text(key): text(values[key], limit) for key in values}


T = TypeVar("T")


def listed(values: Collection[T], limit: int = LIST_MAX) -> list[T]:
    """A received list; raises InvalidInput over the limit."""
    if len(values) > limit:  # before each is looked at: there may be two million
        raise InvalidInput(f"A list of {len(values)} where at most {limit} are allowed.")
    return list(values)


def arguments(values: Collection[str]) -> tuple[str, ...]:
    """Received argv: taken literally, since it is executed and not shown; NUL is refused."""
    found = tuple(listed(values))
    if any(len(value) > ARGUMENT_MAX or "\0" in value for value in found):
        raise InvalidInput(f"An argument is longer than {ARGUMENT_MAX} characters or holds a NUL.")
    if sum(map(len, found)) > ARGUMENTS_MAX_TOTAL:
        raise InvalidInput(f"The arguments are longer than {ARGUMENTS_MAX_TOTAL} characters together.")
    return found


def environment(values: Mapping[str, str]) -> dict[str, str]:
    """Received environment variables: as `arguments`; a name is not empty and holds no equals sign."""
    if any(not key or "=" in key or len(key) > DETAIL_MAX for key in values):
        raise InvalidInput("A variable of the environment has no name, one with an equals sign, or one too long.")
    arguments([f"{key}={values[key]}" for key in values])
    return dict(values)


@lru_cache(HOSTS_KNOWN)
def host_id(value: str) -> HostId:
    """A received host id; any printable short text, since only the Master knows which there are."""
    return HostId(text(value))


def workload_id(value: str) -> WorkloadId:
    """A received workload id, not empty."""
    if not value:
        raise InvalidInput("A workload without an id.")
    return WorkloadId(text(value))


def command_id(value: str) -> CommandId:
    """A received command id, not empty."""
    if not value:
        raise InvalidInput("A command without an id.")
    return CommandId(text(value))


def boot_id(value: bytes) -> BootId:
    """A received boot id: 16 bytes."""
    if len(value) != 16:
        raise InvalidInput(f"A boot id has 16 bytes, this one {len(value)}.")
    return BootId(value)


def lane(value: int) -> Lane:
    """A received lane; raises InvalidInput for one we do not know."""
    found = _LANES.get(value)
    if found is None:
        raise InvalidInput(f"There is no lane {value}.")
    return found


def digest(value: bytes, what: str) -> bytes:
    """A received SHA-256 or 32-byte key."""
    if len(value) != 32:
        raise InvalidInput(f"{what} has 32 bytes, this one {len(value)}.")
    return value


def not_negative(value: int, what: str) -> int:
    """A received signed number that counts something."""
    if value < 0:
        raise InvalidInput(f"{what} is {value} and cannot be negative.")
    return value


def to_ranges(values: Collection[link_pb2.Range]) -> tuple[tuple[int, int], ...]:
    """Received ranges: from 1, sorted, apart from each other, at most RANGES_MAX."""
    found = tuple((value.first, value.last) for value in listed(values, RANGES_MAX))
    before = -1
    for first, last in found:
        if first < 1 or last < first or first <= before + 1:
            raise InvalidInput("Ranges of sequences must count from 1, be sorted and not touch.")
        before = last
    return found


def from_ranges(ranges: Iterable[tuple[int, int]]) -> list[link_pb2.Range]:
    """Ranges as messages."""
    return [link_pb2.Range(first=first, last=last) for first, last in ranges]


def to_marks(values: Collection[link_pb2.LaneMarks]) -> tuple[LaneMarks, ...]:
    """Received marks, at most MARKS_MAX."""
    if not values:
        return ()
    return tuple(
        LaneMarks(lane(mark.lane), boot_id(mark.origin_boot), to_ranges(mark.ranges))
        for mark in listed(values, MARKS_MAX)
    )


def from_marks(marks: Iterable[LaneMarks]) -> list[link_pb2.LaneMarks]:
    """Marks as messages."""
    return [
        link_pb2.LaneMarks(
            lane=link_pb2.Lane.Name(mark.lane), origin_boot=mark.origin_boot, ranges=from_ranges(mark.ranges)
        )
        for mark in marks
    ]


def from_slots(slots: Iterable[SlotGrant]) -> list[host_pb2.SlotGrant]:
    """Grants as messages."""
    return [
        host_pb2.SlotGrant(
            slot_id=s.slot_id, token=s.token, gpu_uuid=s.gpu_uuid, isolation=host_pb2.Isolation.Name(s.isolation)
        )
        for s in slots
    ]


def to_slots(messages: Collection[host_pb2.SlotGrant]) -> tuple[SlotGrant, ...]:
    """Received grants."""
    return tuple(
        SlotGrant(SlotId(text(m.slot_id)), m.token, GpuUuid(text(m.gpu_uuid)), known(Isolation, m.isolation))
        for m in listed(messages)
    )


def blob(value: bytes, limit: int) -> bytes:
    """Received bytes that only their addressee reads."""
    if len(value) > limit:
        raise InvalidInput(f"{len(value)} bytes where at most {limit} are allowed.")
    return value


def port(number: int) -> int:
    """A received TCP port."""
    if not 0 < number <= 65_535:
        raise InvalidInput(f"There is no port {number}.")
    return number


E = TypeVar("E", bound=IntEnum)


def known(enum: type[E], number: int) -> E:
    """The member of this number, or the one of number 0 (UNSPECIFIED) where a newer peer sent one we do not know."""
    try:
        return enum(number)
    except ValueError:
        return enum(0)
