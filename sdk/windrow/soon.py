"""Repeats a request while the Master says that its GPU is back in a moment, as a card that is being challenged is."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from windrow.errors import ApiProblem

T = TypeVar("T")

SOON_S: Final = 180.0
"""For a card to be back: a challenge takes seconds on a card as it should be, and ends after some two minutes."""
PAUSE_S: Final = 2.0
"""Between two looks, where the Master names no time."""
PAUSE_S_MAX: Final = 10.0
"""The longest pause, whatever the Master names: who waits for a card wants it before others do."""


def patiently(ask: Callable[[], T], patience_s: float, tell: Callable[[str], object] | None = None) -> T:
    """Returns the answer of `ask`, asked again for `patience_s` seconds while its refusal names a time to come back.

    tell: is given the reason in words, once. Raises the last ApiProblem.
    """
    ends, is_told = time.monotonic() + patience_s, False
    while True:
        try:
            return ask()
        except ApiProblem as problem:
            left_s = ends - time.monotonic()
            if problem.code != "no_capacity" or problem.retry_after_s <= 0 or left_s <= 0:
                raise
            if tell is not None and not is_told:
                tell(f"  {problem.detail} Asking again, for {patience_s:.0f} s at most.")
            is_told = True
            time.sleep(min(problem.retry_after_s, PAUSE_S_MAX, left_s))
