"""Ends an attached run in good order: SIGINT, SIGTERM and SIGHUP release what was rented; a second signal ends the run
at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal came: everything on the way out still happens."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.exit_code = 128 + number
        super().__init__(signal.Signals(number).name)


class Signals:
    """The signals of one attached run. words: what is written where a second one ends it at once."""

    def __init__(self) -> None:
        self.words = ""
        self._first: int | None = None
        self._is_held = self._is_waiting = False

    def hear(self, number: int, frame: FrameType | None = None) -> None:
        """A signal came."""
        if self._first is not None:
            with suppress(OSError):
                os.write(2, self.words.encode(errors="replace"))
            os._exit(128 + number)
        self._first = number
        if self._is_held:
            self._is_waiting = True
        else:
            raise Ended(number)

    def held(self, make: Callable[[], T]) -> T:
        """Returns the result of `make`. A signal counts from `release` on, so that what was made is known and can be
        undone."""
        self._is_held = True
        try:
            return make()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let signals count again. Raises Ended where one was held back."""
        self._is_held = False
        if self._is_waiting and self._first is not None:
            self._is_waiting = False
            raise Ended(self._first)


@contextmanager
def heard() -> Iterator[Signals]:
    """Hear the signals that end a run, in the main thread; one that is ignored, as by nohup, stays so."""
    signals, before = Signals(), dict[signal.Signals, Any]()
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, signals.hear)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
