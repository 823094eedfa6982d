"""Keeps the agent small in memory: one heap, and memory that only the start or a measurement needed is given back.
Nothing is lost: the kernel reads a page of a program again when the program needs it.

A process that plays many hosts is kept even instead: what is done to all of its memory stops all of them at once.
"""

import asyncio
import contextlib
import ctypes
import gc
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
EVEN_S: Final = (30.0, 60.0, 120.0)
"""From one such moment to the next: hosts of a large fleet come one after the other, their second connections later. No
more than these, since what is left out is not found when it is garbage one day."""
SEARCH_EVERY_S: Final = 600.0
"""And from then on for garbage: what ended connections leave behind."""
NEVER: Final = 1 << 30
SMAPS: Final = Path("/proc/self/smaps")
Mapping = tuple[int, int, str]
"""Begin, end, and the file that it is of."""


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


async def stay_even() -> None:
    """Search all of the memory for garbage at moments of our own only, and leave what came with the start out of it:
    through the objects of five hundred hosts it takes most of a second, in which each of them seems to be late by
    itself."""
    gc.set_threshold(*gc.get_threshold()[:2], NEVER)
    for pause_s in EVEN_S:
        await asyncio.sleep(pause_s)
        gc.collect()
        gc.freeze()
    while True:
        await asyncio.sleep(SEARCH_EVERY_S)
        gc.collect()


async def stay_small() -> None:
    """Give back once the start is over, and then again and again, until cancelled."""
    await asyncio.sleep(SETTLED_S)
    known: frozenset[Mapping] = frozenset()
    while True:
        known = give_back(known)
        await asyncio.sleep(EVERY_S)


def give_back(known: frozenset[Mapping]) -> frozenset[Mapping]:
    """Return free heap in the middle of the heap, and every page of programs that was only read: those in use come back
    within the next second by a few hundred minor faults, those that only start-up needed (code, symbols, relocations)
    do not.

    known: what the last call returned; only what it holds is given back. A library that is being loaded at this moment
    is first mapped as if nothing would be written to it.
    """
    library = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):
        library.malloc_trim(0)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    try:
        found = frozenset(clean_mappings(SMAPS.read_text().splitlines()))
    except OSError:
        return frozenset()
    for begin, end, _ in found & known:
        library.madvise(begin, end - begin, MADV_DONTNEED)
    return found


def clean_mappings(lines: Iterable[str]) -> Iterator[Mapping]:
    """The private mappings of files that are not writable now and of which no page was ever written (proc_pid_smaps(5):
    nothing of them is anonymous or swapped out), so that dropping them loses nothing. What a loader relocated and then
    made read-only has written pages.

    A file that was replaced since (`(deleted)`) is there as well: its old content stays with the mapping.
    """
    at: Mapping | None = None
    written: dict[str, str] = {}
    for line in (*lines, "0-0 end"):
        head, *rest = line.split(maxsplit=5)
        if head.endswith(":"):
            written[head] = rest[0]
            continue
        if at is not None and written.get("Anonymous:") == written.get("Swap:") == "0":
            yield at
        written, at = {}, None
        if len(rest) == 5 and rest[0] in ("r-xp", "r--p") and rest[3] != "0":
            begin, _, end = head.partition("-")
            at = int(begin, 16), int(end, 16), rest[4]
