"""Every parser that reads what others wrote, each with good examples of its input, for fuzzing.

Bytes come from a peer, a disk or a person. What may come out is the parser's value or a WindrowError, nothing else.
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError

from tests.unit.proto.values import BOOT, HOST, ROUND_TRIPS
from windrow_agent.core import dns
from windrow_agent.core.command import CommandState, Phase
from windrow_agent.storage.journal import Journal, command_fact, epoch_fact, tombstone
from windrow_master.api.paging import read_cursor, write_cursor
from windrow_master.telemetry import record as log_records
from windrow_master.telemetry.decode import Decoder
from windrow_master.telemetry.marks import MarkBook
from windrow_master.telemetry.model import LogPosition, LogRecord, SeriesKey, SeriesQuery
from windrow_master.telemetry.remote import promql
from windrow_proto import units
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import InvalidInput, WindrowError
from windrow_proto.ids import CommandId, HostId, WorkloadId
from windrow_proto.messages import Record
from windrow_proto.model import Command, CommandKind, FrameClass, Kind, Lane
from windrow_proto.samples import Sample, decode_batch, encode_batch, parse_batch
from windrow_proto.segments import SegmentLog, scan_segment, segment_path
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import (
    TOGETHER_BYTES_MAX,
    Envelope,
    decode_record,
    encode_record,
    frame_from,
    seal,
    take_apart,
    unseal,
    unseal_bytes,
)
from windrow_proto.wire_fields import parse


@dataclass(frozen=True)
class Parser:
    """One parser: a name, what it does with bytes, and inputs that it accepts."""

    name: str
    read: Callable[[bytes], Any]
    seeds: tuple[bytes, ...]


class Believing:
    """Makes and believes every proof: the fuzz is to reach what lies behind it."""

    def prove(self, kind: Kind, signed: bytes) -> tuple[int, bytes]:
        """Some proof."""
        return 1, bytes(64)

    def verify(self, proof_kind: int, signed: bytes, proof: bytes) -> None:
        """Believe it."""

    def suffices(self, proof_kind: int, kind: Kind) -> bool:
        """It does."""
        return True

    def encrypt(self, kind: Kind, sequence: int, body: bytes) -> bytes:
        """It goes as it is."""
        return b""

    def decrypt(self, kind: Kind, sequence: int, encrypted: bytes) -> bytes:
        """It came as it is."""
        return encrypted


_SAMPLES: Final = [
    Sample(10**18 + n * 10**9, {("", 101): 5 + n, ("GPU-1", 1): None if n == 2 else n, ("GPU-1", 2): n * 7})
    for n in range(5)
]
_FILLING: Final = link_pb2.Frame(sealed=bytes(TOGETHER_BYTES_MAX)).SerializeToString()
_ENVELOPE: Final = Envelope(HOST, BOOT, 3, FrameClass.EVIDENCE, Lane.EVIDENCE, 9, Kind.EVENT, b"body")


def _frame(data: bytes) -> Any:
    return unseal(parse(link_pb2.Frame, data), Believing())


def _message(data: bytes) -> Any:
    try:
        return frame_from(data)
    except DecodeError as error:  # which ends the stream of whoever sent it
        raise InvalidInput(str(error)) from error


def _large_message(data: bytes) -> Any:
    """As the end of a message so large that its fields are counted before it is parsed."""
    return _message(_FILLING + data)


def _together(data: bytes) -> Any:
    return take_apart(parse(link_pb2.Frame, data))


def _journal(data: bytes) -> Any:
    disk = MemoryDisk()
    log = SegmentLog(disk, "/j")
    if data:
        log.append(data[: 1 << 20])
    log.close()
    return Journal(disk, "/j", lambda: 0, "boot")


def _segment(data: bytes) -> Any:
    disk = MemoryDisk()
    disk.append(segment_path("/s", 1), data)
    scan_segment(disk, "/s", 1)
    return SegmentLog(disk, "/s").damaged


def _segment_seeds() -> tuple[bytes, ...]:
    disk = MemoryDisk()
    log = SegmentLog(disk, "/s")
    log.append_all([b"one", b"two" * 50, b"three"])
    log.close()
    return (disk.read(segment_path("/s", 1), 0, 1 << 20),)


def _by_value_error(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """For what says of itself that it raises ValueError: its callers make it theirs."""

    def reading(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise InvalidInput(str(error)) from error

    return reading


def _text(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: read(data.decode("latin-1" if data[:1] == b"\xed" else "utf-8", "replace"))


def _numpy(data: bytes) -> Any:
    return Decoder(lambda host, device: 1).decode([(HostId("host_1"), data)])


_QUERY: Final = SeriesQuery((SeriesKey(HostId("host_1"), "", 101),), 0, 60_000, 1_000)
_ANSWER: Final = {"metric": {"host": "host_1", "gpu": ""}, "values": [[1.5, "2.5"], [7, "NaN"], [9.25, "1e3"]]}


def _answer(data: bytes) -> Any:
    return promql.points(_QUERY, [promql.read_answer(data)])


def _checkpoint() -> bytes:
    book = MarkBook()
    book.add_ranges(HostId("host_1"), BOOT, ((1, 5), (7, 9)), 12)
    return book.to_checkpoint(LogPosition(1, 2, 3))


def _journal_seeds() -> tuple[bytes, ...]:
    done = CommandState(CommandId("cmd_1"), Phase.SUCCEEDED, result={"a": "b"})
    found = (
        epoch_fact(5),
        tombstone(WorkloadId("work_1"), 7),
        command_fact(done, Command(CommandId("cmd_1"), CommandKind.BENCHMARK), 9),
    )
    return tuple(json.dumps(one).encode() for one in found)


_SERVICE = dns.Question("_windrow-access._tcp.a.org", dns.RecordType.SRV)
_NAMES: Final = (
    struct.pack("!HHHHHH", 7, 0x8180, 1, 1, 0, 0)
    + dns.encode_question(7, _SERVICE)[12:44]
    + b"\xc0\x0c"
    + struct.pack("!HHIH", 33, 1, 60, 6 + 6)
    + struct.pack("!HHH", 10, 5, 7443)
    + b"\x03acc\xc0\x21"
)


def _names(data: bytes) -> dns.Answer:
    return dns.decode_answer(data, 7, _SERVICE)


def wire_parsers() -> tuple[Parser, ...]:
    """The bodies of messages: one parser for each decoder, seeded with all its examples."""
    seeds: dict[Callable[[bytes], Any], list[bytes]] = {}
    table: list[Any] = list(ROUND_TRIPS)
    for encode, decode, value in table:
        seeds.setdefault(decode, []).append(encode(value))
    return tuple(Parser(decode.__name__, decode, tuple(found)) for decode, found in seeds.items())


def all_parsers() -> tuple[Parser, ...]:
    """Everything that is fuzzed."""
    frame = seal(_ENVELOPE, Believing())
    together = link_pb2.Frame(sequence=1, sealed=b"one", more=[link_pb2.Frame(sequence=2, sealed=b"two")])
    nested = link_pb2.Frame(sequence=1, more=[link_pb2.Frame(more=[together])])
    record = encode_record(Record(BOOT, 5, Kind.EVENT, b"body"))
    kept = log_records.encode(LogRecord(HostId("host_1"), BOOT, 3, Kind.TELEMETRY, 5, b"body"))
    batch = encode_batch(_SAMPLES)
    others = (
        Parser("frame", _frame, (frame.SerializeToString(),)),
        Parser("sealed", lambda data: unseal_bytes(data, Believing()), (frame.sealed,)),
        Parser("message of a stream", _message, (together.SerializeToString(),)),
        Parser("large message of a stream", _large_message, (together.SerializeToString(), nested.SerializeToString())),
        Parser("frames together", _together, (together.SerializeToString(),)),
        Parser("name server's answer", _names, (_NAMES,)),
        Parser("store's answer", _answer, (json.dumps({"status": "success", "data": {"result": [_ANSWER]}}).encode(),)),
        Parser("record", decode_record, (record,)),
        Parser("batch", decode_batch, (batch,)),
        Parser("batch columns", parse_batch, (batch,)),
        Parser("batch to rows", _numpy, (batch,)),
        Parser("segment", _segment, _segment_seeds()),
        Parser("journal", _journal, _journal_seeds()),
        Parser("log record", log_records.decode, (kept,)),
        Parser("marks checkpoint", MarkBook.from_checkpoint, (_checkpoint(),)),
        Parser("cursor", _text(read_cursor), (write_cursor("host_1").encode(), write_cursor("5").encode())),
        Parser("money", _text(_by_value_error(units.parse_money)), (b"12.50", b"0.00000001")),
        Parser("time", _text(_by_value_error(units.parse_time)), (b"2026-01-02T03:04:05.678901234Z",)),
    )
    return (*wire_parsers(), *others)


def outcome(parser: Parser, data: bytes) -> str:
    """Read once; returns what was wrong, empty where nothing was."""
    try:
        parser.read(data)
    except WindrowError:
        return ""
    except Exception as error:  # what the fuzz looks for
        return f"{parser.name}: {type(error).__name__}: {error} from {data[:200]!r}"
    return ""
