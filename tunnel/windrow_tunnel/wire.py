"""The bytes that an end of a tunnel exchanges with an Access and with the other end. Pure.

An end asks an Access for the upgrade of an HTTP/1.1 connection, and shows its grant. After the upgrade come records:
four bytes of length (big-endian) and so many bytes; length 0 ends the direction. So one direction can end before the
other, which the TLS of Python's standard library cannot say, and an end is told from a cut.
"""

import json
from typing import Any, Final

from windrow_tunnel.errors import Malformed, Refused

PATH: Final = "/tunnel"
PROTOCOL: Final = "windrow-tunnel/2"
"""The name after the upgrade; another format of what follows is another number."""
HEAD_BYTES_MAX: Final = 8 * 1024
"""The head of a request, and an answer up to its end: a grant takes some 400 bytes."""
HEAD_ENDS: Final = b"\r\n\r\n"
JOINED: Final = b"HTTP/1.1 101 "
ACCEPTED: Final = JOINED + f"Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}".encode() + HEAD_ENDS
RECORD_BYTES_MAX: Final = 256 * 1024
"""The content of one record: as much as one read of a socket brings."""
RECORD_HEAD_BYTES: Final = 4
END: Final = bytes(RECORD_HEAD_BYTES)


def request(grant: str, server_name: str) -> bytes:
    """The first bytes of either end to an Access."""
    lines = (f"GET {PATH} HTTP/1.1", f"Host: {server_name}", "Connection: Upgrade", f"Upgrade: {PROTOCOL}")
    return "\r\n".join((*lines, f"Authorization: Bearer {grant}", "", "")).encode()


def refusal(answer: bytes) -> Refused:
    """The error for an answer of an Access, whole or not, that does not join the ends."""
    head, _, body = answer.partition(HEAD_ENDS)
    words = head.split(b"\r\n", 1)[0].removeprefix(b"HTTP/1.1 ")[:100].decode("ascii", "replace")
    problem: Any = {}
    try:
        problem = json.loads(body)
    except ValueError:
        pass  # another server answers there, or the connection was cut
    detail = f"The relay refused the tunnel: {words or 'no answer'}."
    return Refused(detail, problem if isinstance(problem, dict) else {})


def record(data: bytes) -> bytes:
    """Bytes as one record: from 1 to RECORD_BYTES_MAX of them."""
    return len(data).to_bytes(RECORD_HEAD_BYTES, "big") + data


class RecordReader:
    """Takes records apart as they come, in any pieces, and keeps nothing but a part of a length."""

    __slots__ = ("_head", "_left", "is_ended")

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self.is_ended = False

    def feed(self, data: bytes | memoryview) -> list[memoryview]:
        """Return the contents among these bytes, in order; `is_ended` when the direction has ended. Raises Malformed
        for anything but records, and for bytes after the end."""
        found: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            if self.is_ended:
                raise Malformed("Bytes came after the end of a tunnel's direction.")
            if self._left:
                found.append(rest[: self._left])
                self._left -= len(found[-1])
                rest = rest[len(found[-1]) :]
                continue
            wanted = RECORD_HEAD_BYTES - len(self._head)
            self._head += bytes(rest[:wanted])
            rest = rest[wanted:]
            if len(self._head) == RECORD_HEAD_BYTES:
                self._left, self._head = int.from_bytes(self._head, "big"), b""
                self.is_ended = not self._left
                if self._left > RECORD_BYTES_MAX:
                    raise Malformed(f"A record of {self._left} bytes came; the limit is {RECORD_BYTES_MAX}.")
        return found
