"""Prepares a daemon for a long run. `loading`: the modules of every one. `endure`, of Access and Master, which serve
many: what they have at their start is never searched for garbage again, large blocks of memory stay with the process,
and it may hold as many connections as the system lets it; an Agent has a budget of memory and gives back what it can.
"""

import ctypes
import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG_MAX: Final = 10_000
"""Objects between two searches of the youngest (700 by default): messages of the link die long before, uncounted."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Of mallopt(3), as glibc's malloc.h numbers them."""
BLOCK_BYTES_MAX: Final = 32 << 20
"""Blocks up to this come from the heap. glibc takes those above 128 KiB from the kernel by default and gives them back
at once: filling each page anew cost half of the processor time of decoding samples."""
KEPT_BYTES: Final = 64 << 20
"""Free memory at the top of a heap that is kept for the next block."""


@contextmanager
def loading() -> Iterator[None]:
    """Around the imports of a daemon: all of it lives as long as the process, and is not searched for garbage. Such
    searches were a quarter of the processor time of a Master's imports, and found a thousand objects in 150,000."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def endure() -> None:
    """Call once, when all that lives as long as the process has been made."""
    keep_large_blocks()
    allow_open_files()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *gc.get_threshold()[1:])


def keep_large_blocks() -> bool:
    """True if this C library can be told so; another one than glibc goes on as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    told = mallopt(_M_MMAP_THRESHOLD, BLOCK_BYTES_MAX), mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    return all(told)


def allow_open_files() -> int:
    """Raise the limit of open files, one for each connection, from the soft one (1,024 where nobody says more) to the
    hard one; returns what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # a system whose hard limit is higher than what it allows
            return soft
    return hard
