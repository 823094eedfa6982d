"""The Master's log: one JSON object per line on stderr, libraries' warnings included."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Final

import structlog

from windrow_proto import oneline, redact
from windrow_proto.crashes import CRASHED
from windrow_proto.units import DAY

STATED_NS: Final = DAY
BUG_MET: Final = "master.bug_met"


class Crashes:
    """Counts such events as they are logged, so that operators hear of what they need not notice."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._last, self._last_ns = "", 0

    def count(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """One event on its way to the log."""
        name = str(event.get("event"))
        if name.endswith(CRASHED):
            self._counts[name] += 1
            self._last, self._last_ns = name, time.time_ns()
        return event

    def figures(self) -> Iterable[tuple[str, str, float, dict[str, str]]]:
        """For Prometheus: the sum, and each kind that there was."""
        for name, count in sorted(self._counts.items()) or (("", 0),):
            yield "bugs_met_total", "Bugs met that ended only what met them", count, {"event": name}

    def conditions(self) -> Iterable[tuple[str, str, int]]:
        """Code, detail and since when, for health: for a day after the last."""
        if self._last and time.time_ns() - self._last_ns < STATED_NS:
            yield (
                BUG_MET,
                f"Since its start this Master has met a bug {self._counts.total()} times, the last one logged as "
                f"`{self._last}`. Each ended only what met it. The log has it with its traceback: please report it.",
                self._last_ns,
            )


def set_up(level: str) -> Crashes:
    """Send structlog and the standard logging the same way; returns what counts in it."""
    crashes = Crashes()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        crashes.count,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.EventRenamer("event"),
                redact.processor,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("windrow_master").setLevel(level.upper())
    oneline.catch_crashes()
    return crashes
