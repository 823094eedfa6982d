"""The agent's log: one JSON object per line on standard error, with a count of the bugs that are logged."""

import sys
import time

import structlog

from windrow_proto import oneline, redact
from windrow_proto.conditions import ConditionCode
from windrow_proto.crashes import Crashes


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
    return (ConditionCode.AGENT_BUG_MET.value,) if crashes.is_stated else ()
