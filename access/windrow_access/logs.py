"""The log of an Access: one JSON object per line on standard error. It counts the bugs that are logged."""

import sys
import time
from collections.abc import Iterable, Mapping

import structlog

from windrow_proto import oneline, redact
from windrow_proto.crashes import Crashes
from windrow_proto.scrape import Figure
from windrow_proto.v1 import services_pb2


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


def bugs_met(crashes: Crashes) -> services_pb2.BugsMet | None:
    """For the Master, for a day after the last."""
    if not crashes.is_stated:
        return None
    return services_pb2.BugsMet(count=crashes.counts.total(), last=crashes.last, last_ns=crashes.last_ns)


def figures(crashes: Crashes, labels: Mapping[str, str]) -> Iterable[Figure]:
    """For Prometheus."""
    yield Figure("access_bugs_met_total", "Bugs met that ended only what met them", crashes.counts.total(), labels)
