"""Messages between an agent and its prover over the child's stdin and stdout: a length, a mark, bytes. Pure."""

import struct
from typing import Final

from windrow_proto.errors import InvalidInput
from windrow_proto.wire_challenge import ANSWER_BYTES_MAX
from windrow_proto.wire_challenge import FAILURE_MAX as FAILURE_MAX

HEAD: Final = struct.Struct(">IB")
"""Bytes of the body, and whether it is what was asked for."""
BODY_BYTES_MAX: Final = ANSWER_BYTES_MAX
DONE: Final = 1
FAILED: Final = 0


def record(body: bytes, mark: int = DONE) -> bytes:
    """One record; at most BODY_BYTES_MAX bytes."""
    return HEAD.pack(len(body), mark) + body


def read_head(head: bytes) -> tuple[int, bool]:
    """Returns the number of bytes that follow, and whether they are an answer; raises InvalidInput for more than may
    come."""
    size, mark = HEAD.unpack(head)
    if size > BODY_BYTES_MAX or mark not in (DONE, FAILED):
        raise InvalidInput(f"A prover's record of {size} bytes with mark {mark}; at most {BODY_BYTES_MAX} may come.")
    return size, mark == DONE
