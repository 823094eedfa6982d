"""Counts unexpected errors that ended one task only, by the name of their event on its way to the log. Pure."""

from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from windrow_proto.units import DAY

CRASHED: Final = "_crashed"
"""How the names of events end that say: a bug was met, it ended what met it, and all else goes on."""
STATED_NS: Final = DAY
"""How long after the last one operators are told that there were some."""


class Crashes:
    """The bugs that the log of one process has reported since its start. now_ns: wall time."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.counts: Counter[str] = Counter()
        self.last, self.last_ns = "", 0

    def count(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """For structlog: one event on its way to the log."""
        name = str(event.get("event"))
        if name.endswith(CRASHED):
            self.counts[name] += 1
            self.last, self.last_ns = name, self._now_ns()
        return event

    @property
    def is_stated(self) -> bool:
        """True if operators should know now."""
        return bool(self.last) and self._now_ns() - self.last_ns < STATED_NS
