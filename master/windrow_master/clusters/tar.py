"""Counts the files of a tar stream while it passes by; it unpacks nothing and keeps no more than one header. Pure."""

from typing import Final

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
