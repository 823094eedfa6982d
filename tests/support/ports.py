"""Ports of a test's own: nobody else's who asks here, in this run or in another one on this machine, until we end.

A port that is merely free now may be taken before it is used, or while the server that had it is down after a kill: by
another test, or by any connection that goes out. These lie below the range that Linux gives to outgoing connections
(from 32,768 on), and each block of them is locked by the process that uses it.
"""

import fcntl
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

FIRST = 20_000
BLOCK = 20
BLOCKS = 600
FOLDER = "windrow-test-ports"

_held: list[IO[bytes]] = []
_spare: list[int] = []


def own_ports() -> range:
    """A block of ports in a row, each free now."""
    folder = Path(tempfile.gettempdir()) / FOLDER
    folder.mkdir(mode=0o777, exist_ok=True)
    for number in random.SystemRandom().sample(range(BLOCKS), BLOCKS):
        ports = range(FIRST + number * BLOCK, FIRST + (number + 1) * BLOCK)
        if _is_locked_by_us(folder / str(number)) and all(map(_is_free, ports)):
            return ports
    raise AssertionError(f"all {BLOCKS} blocks of ports are in use")


def own_port() -> int:
    """One such port."""
    if not _spare:
        _spare.extend(own_ports())
    return _spare.pop()


def _is_locked_by_us(path: Path) -> bool:
    """Lock it for as long as this process lives."""
    try:
        file = path.open("ab")
    except PermissionError:  # another user's
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    _held.append(file)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
