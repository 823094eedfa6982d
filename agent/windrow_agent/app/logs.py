"""The agent's log: one JSON object per line on standard error, with a count of the bugs that are logged."""

import sys
import time
from typing import Final

import structlog

from windrow_proto import oneline, redact
from windrow_proto.crashes import Crashes

BUG_MET: Final = "agent.bug_met"


def configure_log() -> Crashes:
    """One event a line; returns what counts in it."""
    crashes = Crashes(time.time_ns)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            crashes.count,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redact.processor,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    oneline.install()
    return crashes


def faults(crashes: Crashes) -> tuple[str, ...]:
    """The condition, for a day after the last."""
    return (BUG_MET,) if crashes.is_stated else ()
