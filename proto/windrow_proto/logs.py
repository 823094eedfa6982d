"""Sets up the log of a daemon: one JSON object per line on standard error, with a count of the bugs that are logged."""

import sys
import time
from typing import TYPE_CHECKING

import structlog

from windrow_proto import oneline, redact
from windrow_proto.crashes import Crashes

if TYPE_CHECKING:
    from structlog.typing import Processor


def steps(crashes: Crashes) -> "list[Processor]":
    """The first steps of an event on its way to the log: its level, its count, its time and its traceback."""
    return [
        structlog.processors.add_log_level,
        crashes.count,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]


def configure_log() -> Crashes:
    """One event a line; returns what counts in it."""
    crashes = Crashes(time.time_ns)
    structlog.configure(
        processors=[*steps(crashes), redact.processor, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    oneline.install()
    return crashes
