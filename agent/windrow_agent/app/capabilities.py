"""Keeps the Linux capabilities that the agent was started with from the programs that it starts."""

import contextlib
import ctypes
from typing import Final

PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
"""Numbers of Linux's prctl.h."""


def drop_ambient_capabilities() -> None:
    """Clear the ambient capabilities of this thread and of those it will start; it keeps the rights themselves.

    The unit gives CAP_SYSLOG, for the kernel's log. Handed on, a workload would have it too, and bubblewrap refuses to
    start with any. Call it before the first thread. Where the kernel knows no such call: nothing.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
