"""Decides when a message is sent: quiet hours, digests, pauses between tries. Pure.

PAGE, test ─▶ now; what was held of the same object goes before it
others     ─▶ now, at the next full span of the digest, or at the end of the quiet hours
failed     ─▶ 5 s, 20 s, 80 s, ... 1 h later, each a fifth more or less; after 3 days it is given up
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from windrow_master.watch.notify.model import Channel, Quiet
from windrow_proto.conditions import Severity
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

FIRST_PAUSE_NS: Final = 5 * SECOND
PAUSE_NS_MAX: Final = HOUR
GROWTH: Final = 4
LIFE_NS: Final = 3 * DAY
"""How long a delivery is tried."""
JITTER: Final = 0.2


def pause_ns(tries: int, chance: float) -> int:
    """How long to wait after so many tries that failed, 1 or more. chance: in [0, 1), drawn for each."""
    plain_ns = min(PAUSE_NS_MAX, FIRST_PAUSE_NS * GROWTH ** min(tries - 1, 10))
    return int(plain_ns * (1 - JITTER + 2 * JITTER * chance))


def held_until(channel: Channel, severity: Severity, zone: tzinfo, now_ns: int) -> int | None:
    """When a message of this severity goes that comes now; None: at once. zone: of the channel's quiet hours."""
    if severity is Severity.PAGE:
        return None
    due_ns = now_ns
    if channel.digest_minutes is not None:
        span_ns = channel.digest_minutes * MINUTE
        due_ns = (now_ns // span_ns + 1) * span_ns
    if channel.quiet is not None:
        due_ns = quiet_end(channel.quiet, zone, due_ns) or due_ns
    return due_ns if due_ns > now_ns else None


def quiet_end(quiet: Quiet, zone: tzinfo, at_ns: int) -> int | None:
    """The end of the quiet hours that a time lies in; None: in none. Clocks on the wall decide, so that hours are
    longer or shorter on the day of a change; an end that this day does not have is the first minute behind it."""
    if not _is_quiet(quiet, zone, at_ns):
        return None
    local = _local(zone, at_ns)
    end = local.replace(hour=quiet.until_minute // 60, minute=quiet.until_minute % 60, second=0, microsecond=0)
    if _minute(local) >= quiet.until_minute:
        end = (end + timedelta(days=1)).replace(fold=0)
    end_ns = int(end.astimezone(UTC).timestamp()) * SECOND
    while end_ns - MINUTE > at_ns and not _is_quiet(quiet, zone, end_ns - MINUTE):
        end_ns -= MINUTE
    return end_ns


def _is_quiet(quiet: Quiet, zone: tzinfo, at_ns: int) -> bool:
    minute, begin, end = _minute(_local(zone, at_ns)), quiet.from_minute, quiet.until_minute
    return begin <= minute < end if begin < end else minute >= begin or minute < end


def _local(zone: tzinfo, at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns // SECOND, UTC).astimezone(zone)


def _minute(local: datetime) -> int:
    return local.hour * 60 + local.minute
