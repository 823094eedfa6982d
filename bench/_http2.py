"""As much of HTTP/2 (RFC 9113) and HPACK (RFC 7541) as a storm's host speaks: one call of gRPC after the other, with
small messages. Pure: bytes in, bytes out; what gRPC for Python sends itself is compared with it by a test."""

import struct
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PADDED_OR_PRIORITY = 0x28
STATIC_FIELDS = 61
"""Of HPACK's table of well-known fields. None of them says anything here; each is named by its number."""
SETTING = struct.Struct(">HI")
MESSAGE = struct.Struct(">BI")
"""Before each message of gRPC: whether it is compressed, and its length."""
HEAD_BYTES = 9


class Malformed(Exception):
    """Bytes came that gRPC never sends."""


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """One frame."""
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def settings(values: dict[int, int]) -> bytes:
    """The settings that this end asks for."""
    return frame(SETTINGS, 0, 0, b"".join(SETTING.pack(*one) for one in values.items()))


def message(stream: int, body: bytes, *, is_last: bool = False) -> bytes:
    """One message of gRPC in a frame of its own."""
    return frame(DATA, END_STREAM * is_last, stream, MESSAGE.pack(0, len(body)) + body)


def call(stream: int, fields: tuple[tuple[str, str], ...]) -> bytes:
    """The beginning of a call: every field a literal, remembered by nobody."""
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)
    return frame(HEADERS, END_HEADERS, stream, block)


def frames(taken: bytearray) -> Iterator[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and body of every whole frame, which is taken away from the bytes that came."""
    while len(taken) >= HEAD_BYTES:
        ends = HEAD_BYTES + int.from_bytes(taken[:3], "big")
        if len(taken) < ends:
            return
        head, body = bytes(taken[:HEAD_BYTES]), bytes(taken[HEAD_BYTES:ends])
        del taken[:ends]
        if head[3] in (DATA, HEADERS) and head[4] & PADDED_OR_PRIORITY:
            raise Malformed("a frame has padding or a priority")
        yield head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, body


def messages(taken: bytearray) -> Iterator[bytes]:
    """Every whole message of gRPC, which is taken away from a stream's bytes."""
    while len(taken) >= MESSAGE.size:
        compressed, length = MESSAGE.unpack_from(taken)
        if compressed:
            raise Malformed("a message is compressed")
        if len(taken) < MESSAGE.size + length:
            return
        yield bytes(taken[MESSAGE.size : MESSAGE.size + length])
        del taken[: MESSAGE.size + length]


class Fields:
    """Reads one connection's blocks of fields. It remembers all it is told to: a host hears a few of them."""

    def __init__(self) -> None:
        self._known: list[tuple[str, str]] = []

    def read(self, block: bytes) -> list[tuple[str, str]]:
        """The fields of one block; a well-known one's name, and its value where it has one, is its number."""
        found: list[tuple[str, str]] = []
        at = 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _number(block, at, 7)
                found.append(self._field(index))
            elif first & 0xE0 == 0x20:
                _, at = _number(block, at, 5)  # how large the table may be
            else:
                is_kept = bool(first & 0x40)
                index, at = _number(block, at, 6 if is_kept else 4)
                if index:
                    name = self._field(index)[0]
                else:
                    name, at = _read_text(block, at)
                value, at = _read_text(block, at)
                found.append((name, value))
                if is_kept:
                    self._known.insert(0, found[-1])
        return found

    def _field(self, index: int) -> tuple[str, str]:
        if index <= STATIC_FIELDS:
            return str(index), str(index)
        if index - STATIC_FIELDS > len(self._known):
            raise Malformed(f"there is no field {index}")
        return self._known[index - STATIC_FIELDS - 1]


def _text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) >= 0x7F:
        return b"\x7f" + _rest(len(raw) - 0x7F) + raw
    return bytes((len(raw),)) + raw


def _rest(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """A number whose first bits are in the byte there, and where it ends."""
    number, at = block[at] & (1 << bits) - 1, at + 1
    if number < (1 << bits) - 1:
        return number, at
    shift = 0
    while True:
        number, shift, at = number + ((block[at] & 0x7F) << shift), shift + 7, at + 1
        if not block[at - 1] & 0x80:
            return number, at


def _read_text(block: bytes, at: int) -> tuple[str, int]:
    if block[at] & 0x80:
        raise Malformed("a field is in Huffman's code")
    length, at = _number(block, at, 7)
    return block[at : at + length].decode(), at + length
