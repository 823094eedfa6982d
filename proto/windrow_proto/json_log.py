"""Sets up the log of an agent or an Access: one JSON object per line on standard error, redacted."""

import sys
import time

import structlog

from windrow_proto import oneline, redact
from windrow_proto.crashes import Crashes


def configure_log() -> Crashes:
    """Sends events and libraries' warnings the same way; returns the count of the bugs among them."""
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
