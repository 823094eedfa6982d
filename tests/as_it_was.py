"""Process state that a test must leave as it found it, because everything after it in the same process would see it."""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PYTESTS_OWN = frozenset({"PYTEST_CURRENT_TEST"})
"""Set and changed by pytest around each step of a test."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGVTALRM)
"""The signals that daemons and tests take; SIGALRM is the time limit's own."""

_UMASK = os.umask(0o022)
os.umask(_UMASK)
"""As whoever runs the tests has it. To look at it is to set it, so every look sets this one."""

Look = Callable[[], Any]
PutBack = Callable[[Any], object]


def _umask() -> int:
    return os.umask(_UMASK)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in PYTESTS_OWN}


def _put_environment(before: dict[str, str]) -> None:
    for name in _environment().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def _handlers() -> list[logging.Handler]:
    found = logging.getLogger().handlers
    return [handler for handler in found if not type(handler).__module__.startswith("_pytest")]


def _put_handlers(before: list[logging.Handler]) -> None:
    root = logging.getLogger()
    root.handlers[:] = [*before, *(handler for handler in root.handlers if handler not in _handlers())]


def _put_excepthooks(before: tuple[Any, Any]) -> None:
    sys.excepthook, threading.excepthook = before


def _put_signals(before: list[Any]) -> None:
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def _put_gc(before: tuple[int, int, int]) -> None:
    """A daemon sets the threshold and freezes what it has; to count what is frozen takes a tenth of a second."""
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.collect()  # of what a daemon has left here, which would else be kept for as long as the process
    gc.freeze()


KEPT: dict[str, tuple[Look, PutBack]] = {
    "the umask": (_umask, os.umask),
    "the working directory": (os.getcwd, os.chdir),
    "the environment": (_environment, _put_environment),
    "the root logger's handlers": (_handlers, _put_handlers),
    "the root logger's level": (lambda: logging.getLogger().level, lambda level: logging.getLogger().setLevel(level)),
    "the hooks for crashes": (lambda: (sys.excepthook, threading.excepthook), _put_excepthooks),
    "the signal handlers": (lambda: [signal.getsignal(number) for number in SIGNALS], _put_signals),
    "the garbage collector": (gc.get_threshold, _put_gc),
}
"""By what a person calls it: how to see it, and how to put it back."""


def seen() -> dict[str, Any]:
    """Everything as it is now."""
    return {name: look() for name, (look, _) in KEPT.items()}


def put_back(before: dict[str, Any]) -> list[str]:
    """Make it what it was; returns what was not so, each in words."""
    changed = []
    for name, (look, put) in KEPT.items():
        now = look()
        if now != before[name]:
            put(before[name])
            changed.append(f"{name}: {_difference(before[name], now)}")
    return changed


def _difference(before: Any, now: Any) -> str:
    if isinstance(before, dict):  # names alone: values may be secrets
        return ", ".join(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
    return f"{before!r} became {now!r}"


@contextmanager
def contained() -> Iterator[None]:
    """Run what takes the whole process for its own, a daemon's command, and put everything back."""
    before = seen()
    try:
        yield
    finally:
        put_back(before)
