"""Encodes the size of a terminal in a channel, and names the shell that a terminal starts. Pure.

 Master ── 0: keys, 3: size ──▶ host ── empty data when the shell runs, then 1: output ──▶ Master

An agent from before there were terminals closes such a channel at once, as one for a purpose that it does not know.
"""

import struct
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import InvalidInput

SIZE_STREAM: Final = 3
SIDE_MAX: Final = 1_000
"""Columns and rows: more than any screen has, and a bound for what programs allocate by it."""
SHELL: Final = (
    *("sh", "-c"),
    "export TERM=xterm-256color; if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh -l",
)
"""Bash keeps the image's PATH, which a login shell would replace."""
_SIZE: Final = struct.Struct(">HH")


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """In characters. Raises InvalidInput beyond 1 to SIDE_MAX."""

    columns: int
    rows: int

    def __post_init__(self) -> None:
        if not (1 <= self.columns <= SIDE_MAX and 1 <= self.rows <= SIDE_MAX):
            raise InvalidInput(f"A terminal has 1 to {SIDE_MAX:,} columns and rows.")


def encode_size(size: TerminalSize) -> bytes:
    """The size as data of SIZE_STREAM."""
    return _SIZE.pack(size.columns, size.rows)


def decode_size(data: bytes) -> TerminalSize:
    """Read the same. Raises InvalidInput."""
    if len(data) != _SIZE.size:
        raise InvalidInput("The size of a terminal has four bytes.")
    return TerminalSize(*_SIZE.unpack(data))
