"""Ends a process together with the one that started it."""

import contextlib
import signal
from typing import Final

PR_SET_PDEATHSIG: Final = 1


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Get this signal when the parent has ended; 0: none."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # not every Python has it

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
