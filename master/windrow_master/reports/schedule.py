"""When a report is sent: a cron expression in a time zone, by whose clock it is meant, also where clocks change."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cronsim import CronSim, CronSimError

from windrow_master.reports.days import zone_of
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

APART_MIN: Final = timedelta(hours=1)
"""Between two mails of one schedule."""
TRIES: Final = 50
"""Pairs of times that are compared: a month of days has every distance."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A report that is sent by mail to a user of a project. query: as the API takes it. problem: why the last one was
    not sent, or empty."""

    schedule_id: str
    account_id: str
    user_id: str
    name: str
    cron: str
    time_zone: str
    query: Mapping[str, Any]
    created_at_ns: int
    due_at_ns: int
    sent_at_ns: int | None = None
    problem: str = ""


def next_ns(cron: str, zone: str, after_ns: int) -> int:
    """The next time of an expression such as `0 7 1 * *`, in nanoseconds since 1970. Raises InvalidInput."""
    return int(next(_times(cron, zone, after_ns)).timestamp()) * SECOND


def check(cron: str, zone: str, now_ns: int) -> None:
    """Raises InvalidInput for an expression that cannot be read or that sends more than once in an hour."""
    times = _times(cron, zone, now_ns)
    before = next(times)
    for _, at in zip(range(TRIES), times, strict=False):
        if at.astimezone(UTC) - before.astimezone(UTC) < APART_MIN:
            raise InvalidInput("cron: A report is sent at most once an hour.", subject="cron")
        before = at


def _times(cron: str, zone: str, after_ns: int) -> "CronSim":
    if len(cron.split()) != 5:
        raise InvalidInput("cron: Write five fields: minute, hour, day, month, weekday, as 0 7 1 * *.", subject="cron")
    try:
        found = CronSim(cron, datetime.fromtimestamp(after_ns // SECOND, UTC).astimezone(zone_of(zone)))
        next(CronSim(cron, datetime.fromtimestamp(after_ns // SECOND, UTC).astimezone(zone_of(zone))))
    except (CronSimError, StopIteration):
        words = f"cron: {cron[:60]} is no time. Write minute, hour, day, month and weekday, as 0 7 1 * *."
        raise InvalidInput(words, subject="cron") from None
    return found
