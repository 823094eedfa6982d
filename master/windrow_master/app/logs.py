"""Writes the Master's log: one JSON object per line on stderr, libraries' warnings included."""

import logging
import sys
import time
from collections.abc import Iterable

import structlog

from windrow_proto import oneline, redact
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.crashes import Crashes
from windrow_proto.logs import steps


def figures(crashes: Crashes) -> Iterable[tuple[str, str, float, dict[str, str]]]:
    """For Prometheus: the sum, and each kind that there was."""
    for name, count in sorted(crashes.counts.items()) or (("", 0),):
        yield "bugs_met_total", "Bugs met that ended only what met them", count, {"event": name}


def conditions(crashes: Crashes) -> Iterable[Stated]:
    """For health: the bugs met, for a day after the last."""
    if crashes.is_stated:
        yield (
            ConditionCode.MASTER_BUG_MET,
            f"Since its start this Master has met a bug {crashes.counts.total()} times, the last one logged as "
            f"`{crashes.last}`. Each ended only what met it.",
            crashes.last_ns,
        )


def set_up(level: str) -> Crashes:
    """Send structlog and the standard logging the same way; returns what counts in it."""
    crashes = Crashes(time.time_ns)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        *steps(crashes),
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
