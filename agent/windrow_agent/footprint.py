"""Keeps the agent small in memory: one heap, and what only its start or a measurement needed is given back.

Nothing is lost: the kernel reads a page of a program again when it is needed again.
"""

import asyncio
import contextlib
import ctypes
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_ARENA_MAX: Final = -8
"""Numbers of malloc.h."""
MADV_DONTNEED: Final = 4
"""Of mman.h, the same on every architecture but Alpha."""
SETTLED_S: Final = 30.0
"""After the start: by then the host has joined its Access and was measured for the first time."""
EVERY_S: Final = 30.0
"""A measurement of bandwidth leaves tens of megabytes behind, at a time that the Master chooses. Giving back costs a
millisecond or two."""
MAPS: Final = Path("/proc/self/maps")


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Let these modules seem not to be installed to whoever imports inside the block, and as they were after it."""
    kept = {name: sys.modules[name] for name in names if name in sys.modules}
    sys.modules.update(dict.fromkeys(names, None))  # type: ignore[arg-type]  # None is how Python itself says it
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(kept)


def keep_small() -> None:
    """Let the C library share one heap among threads and give back what it frees: a dozen idle threads of gRPC would
    otherwise keep a heap each, tens of megabytes after one bandwidth measurement. Where it is not glibc: nothing."""
    library = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):
        library.mallopt(M_ARENA_MAX, 1)
        library.mallopt(M_TRIM_THRESHOLD, 128 * 1024)


async def stay_small() -> None:
    """Give back once the start is over, and then again and again, until cancelled."""
    await asyncio.sleep(SETTLED_S)
    while True:
        give_back()
        await asyncio.sleep(EVERY_S)


def give_back() -> None:
    """Return free heap in the middle of the heap, and every page of program text: those in use come back within the
    next second by a few hundred minor faults, those that only start-up ran (a third of what is resident) do not."""
    library = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):
        library.malloc_trim(0)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    try:
        lines = MAPS.read_text().splitlines()
    except OSError:
        return
    for begin, end in text_mappings(lines):
        library.madvise(begin, end - begin, MADV_DONTNEED)


def text_mappings(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Begin and end of the mappings that hold program text of files: readable and executable, never writable, private
    (proc_pid_maps(5)). Nothing can have been written to them, so that dropping them loses nothing.

    Text of a file that was replaced since (`(deleted)`) is there as well: its old content stays with the mapping.
    """
    for line in lines:
        where, rights, _, _, inode, *name = line.split(maxsplit=5)
        if rights == "r-xp" and inode != "0" and name:
            begin, _, end = where.partition("-")
            yield int(begin, 16), int(end, 16)
