"""Looks at a tar stream while it passes by: counts files, says whether it is whole, or keeps back what does not fit. It
unpacks nothing and keeps no more than a member's headers. Pure."""

from typing import Final

from windrow_proto.errors import InvalidInput

BLOCK: Final = 512
_FILES: Final = frozenset({b"0", b"\0", b"7"})
"""Type flags of regular files: old, present and contiguous."""


class TarCounter:
    """Feed it the stream in pieces of any size. What is not tar counts nothing; to judge it is the unpacker's task."""

    def __init__(self) -> None:
        self.bytes = 0
        self.files = 0
        self._header = b""
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Take in the next piece."""
        self.bytes += len(data)
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
            else:
                step = min(BLOCK - len(self._header), len(data) - at)
                self._header += data[at : at + step]
                if len(self._header) == BLOCK:
                    self._take(self._header)
                    self._header = b""
            at += step

    def _take(self, header: bytes) -> None:
        if not any(header):
            return
        self.files += header[156:157] in _FILES
        self._skip = -(-_size(header[124:136]) // BLOCK) * BLOCK


def _size(field: bytes) -> int:
    """The size in a header: octal text, or base 256 where the first bit is set; 0 for anything else."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.split(b"\0")[0].strip()
    return int(text, 8) if text and all(48 <= digit <= 55 for digit in text) else 0


class TarCheck:
    """Says whether a stream is a whole tar archive. What its members are called is the unpacker's to judge."""

    def __init__(self) -> None:
        self._header = b""
        self._rest = 0
        self._before = b""
        self._holds = False
        self._has_end = False

    def feed(self, data: bytes) -> None:
        """Take in the next piece. Raises InvalidInput."""
        at = 0
        while at < len(data) and not self._has_end:
            if self._rest:
                step = min(self._rest, len(data) - at)
                self._rest -= step
                if self._holds:
                    self._before += data[at : at + step]
            else:
                step = min(BLOCK - len(self._header), len(data) - at)
                self._header += data[at : at + step]
                if len(self._header) == BLOCK:
                    self._take(self._header)
                    self._header = b""
            at += step

    def end(self) -> None:
        """All of it was fed. Raises InvalidInput."""
        if not self._has_end:
            raise InvalidInput("This is not a whole tar archive: it breaks off before its end. Nothing was kept.")

    def _take(self, header: bytes) -> None:
        if not any(header):
            self._has_end = True
            return
        if not _is_sound(header):
            said = " It is compressed: send it without." if header.startswith(_COMPRESSED) else ""
            raise InvalidInput(f"This is not a tar archive.{said} Nothing was kept.")
        kind, size = header[156:157], _size(header[124:136])
        self._holds = kind in _EXTENDED
        if self._holds:
            if len(self._before) + size > _EXTENDED_BYTES_MAX:
                raise InvalidInput("The archive says more than 64 KiB of one file beside its content.")
            self._before += header
        else:
            said = _records(self._before).get("size", "")
            size = int(said) if said.isascii() and said.isdecimal() and len(said) <= _SIZE_DIGITS else size
            self._before = b""
        self._rest = 0 if kind in _BARE else -(-size // BLOCK) * BLOCK


_BARE: Final = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
"""Links, devices, folders and pipes: no content follows them, whatever size they give."""
_COMPRESSED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK")


def _is_sound(header: bytes) -> bool:
    """The checksum of a header: octal, over its bytes, its own field taken as blanks; old programs count with signs."""
    plain = header[:148] + b" " * 8 + header[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in plain)
    return _size(header[148:156].ljust(12, b"\0")) in (sum(plain), signed)


class TarSieve:
    """Lets the members of a tar stream pass as long as they fit, and names those that do not; each goes whole or not.

    members: how many have passed. left_out, left_out_bytes, names: how many have not, their bytes together, and the
    names of the first of them.
    """

    def __init__(self, room_bytes: int) -> None:
        self.members = 0
        self.left_out = self.left_out_bytes = 0
        self.names: list[str] = []
        self._room = room_bytes
        self._header = b""
        self._before = b""
        self._rest, self._sink = 0, _KEEP
        self._zeros = 0

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; returns what passes of it. Raises InvalidInput for what no archive of ours has."""
        out, at = bytearray(), 0
        while at < len(data) and self._zeros < _ZEROS_MAX:
            if self._rest:
                step = min(self._rest, len(data) - at)
                self._rest -= step
                if self._sink == _KEEP:
                    out += data[at : at + step]
                elif self._sink == _HOLD:
                    self._before += data[at : at + step]
            else:
                step = min(BLOCK - len(self._header), len(data) - at)
                self._header += data[at : at + step]
                if len(self._header) == BLOCK:
                    out += self._take(self._header)
                    self._header = b""
            at += step
        return bytes(out)

    def _take(self, header: bytes) -> bytes:
        if not any(header):
            self._zeros += 1
            return header
        kind, size = header[156:157], _size(header[124:136])
        if kind in _EXTENDED:
            if len(self._before) + size > _EXTENDED_BYTES_MAX:
                raise InvalidInput("The archive of its host says more than 64 KiB of one file beside its content.")
            self._before += header
            self._rest, self._sink = -(-size // BLOCK) * BLOCK, _HOLD
            return b""
        records = _records(self._before)
        said = records.get("size", "")
        size = int(said) if said.isascii() and said.isdecimal() and len(said) <= _SIZE_DIGITS else size
        whole, held = header, self._before
        self._before, self._rest = b"", -(-size // BLOCK) * BLOCK
        total = len(held) + BLOCK + self._rest
        if total > self._room:
            self._sink = _DROP
            self.left_out += 1
            self.left_out_bytes += size
            if len(self.names) < _NAMES_MAX:
                self.names.append(records.get("path") or _text(header[:100]))
            return b""
        self._room -= total
        self._sink = _KEEP
        self.members += 1
        return held + whole


_KEEP, _HOLD, _DROP = range(3)
_ZEROS_MAX: Final = 40
"""Blocks of zeros: two of them end an archive, and some programs fill it up to twenty. Nothing passes after so many."""
_EXTENDED: Final = frozenset({b"x", b"L", b"K"})
"""Members that say more of the one that comes after them: pax records, and GNU's long names."""
_NAMES_MAX: Final = 10
_EXTENDED_BYTES_MAX: Final = 64 * 1024
"""Of all of them before one member: more is what a host makes up, and it would be kept here."""
_LENGTH_DIGITS, _SIZE_DIGITS = 6, 20


def _records(before: bytes) -> dict[str, str]:
    """Return the facts that the members before a member give of it: "path" and "size", where they do."""
    found: dict[str, str] = {}
    at = 0
    while at + BLOCK <= len(before):
        kind, size = before[at + 156 : at + 157], _size(before[at + 124 : at + 136])
        body = before[at + BLOCK : at + BLOCK + size]
        if kind == b"L":
            found["path"] = _text(body)
        if kind == b"x":
            found |= _pax(body)
        at += BLOCK + -(-size // BLOCK) * BLOCK
    return found


def _pax(body: bytes) -> dict[str, str]:
    """Return the fields of a pax member that matter here."""
    found: dict[str, str] = {}
    at = 0
    while at < len(body):
        blank = body.find(b" ", at, at + _LENGTH_DIGITS)
        length = body[at:blank] if blank > 0 else b""
        if not length.isdigit() or int(length) == 0:
            break
        name, _, value = body[blank + 1 : max(blank, at + int(length) - 1)].partition(b"=")
        if name in (b"path", b"size"):
            found[name.decode()] = _text(value)
        at += int(length)
    return found


def _text(field: bytes) -> str:
    """Words of a header as they may be shown."""
    text = field.split(b"\0")[0].decode(errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]
