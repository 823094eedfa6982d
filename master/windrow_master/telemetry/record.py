"""Encodes the payload of one record of the telemetry log as bytes, and decodes it. Pure.

    offset  size  what (little-endian)
    0       1     version of this layout, 1
    1       1     kind (windrow_proto.model.Kind): TELEMETRY or GAP
    2       8     when it arrived, wall nanoseconds
    10      16    boot of origin
    26      8     sequence of origin
    34      2     n, the length of the host's id
    36      n     the host's id, UTF-8
    36+n    rest  the body as the host sealed it: a TelemetryBatch or a Gap

Around it the segment log puts the length and a checksum (windrow_proto.segments).
"""

import struct
from typing import Final

from windrow_master.telemetry.model import LogRecord
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.model import Kind

VERSION: Final = 1
_HEAD: Final = struct.Struct("<BBq16sQH")


def encode(record: LogRecord) -> bytes:
    """A record as the log keeps it."""
    host = record.host_id.encode()
    head = _HEAD.pack(VERSION, record.kind, record.received_ns, record.origin_boot, record.origin_sequence, len(host))
    return head + host + record.body


def decode(payload: bytes) -> LogRecord:
    """Read a record; raises InvalidInput on anything that `encode` did not make."""
    try:
        version, kind, received_ns, boot, sequence, length = _HEAD.unpack_from(payload)
        host = payload[_HEAD.size : _HEAD.size + length].decode()
        if version != VERSION or len(host) == 0:
            raise InvalidInput(f"A record of the telemetry log of version {version} is not understood.")
        known = Kind(kind)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("These bytes are not a record of the telemetry log.") from error
    body = payload[_HEAD.size + length :]
    return LogRecord(HostId(host), BootId(boot), sequence, known, received_ns, body)
