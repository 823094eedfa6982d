"""The settings of telemetry: how long samples are kept, and which views of history there are. Pure.

WINDROW_METRICS_WRITE_URL  where samples go by Prometheus remote write (the whole URL, as http://host:8428/api/v1/write)
WINDROW_METRICS_URL        where charts ask by PromQL (with or without /api/v1); DuckDB is not kept then
WINDROW_METRICS_TOKEN      a bearer token for both; or in the file that WINDROW_METRICS_TOKEN_FILE names
WINDROW_LOG_KEEP_HOURS     how long a segment of the log is kept at least (24)
WINDROW_LOG_GIB            how large the log may become before its oldest segments go early (64)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from windrow_master.telemetry.remote.store import API_PATH, MetricsStore, parse_url
from windrow_master.telemetry.segment_log import BYTES_MAX, KEEP_NS, Retention
from windrow_proto.errors import InvalidInput
from windrow_proto.units import HOUR

KEEP_HOURS_MAX: Final = 24 * 366
GIB_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """The configured views of history; empty URLs mean that there is no metrics store."""

    write_url: str = field(default="", repr=False)
    read_url: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    retention: Retention = field(default_factory=Retention)

    @property
    def has_embedded(self) -> bool:
        """True if DuckDB follows the log and answers the charts."""
        return not self.read_url

    @property
    def shown(self) -> str:
        """In a line, without secrets."""
        store = self.store()
        written = store.write_url.shown if store is not None else "none"
        charts = store.read_url.shown if store is not None and store.read_url is not None else "embedded"
        return f"charts={charts} metrics_store={written} keep_hours={self.retention.keep_ns // HOUR}"

    def store(self) -> MetricsStore | None:
        """The metrics store, not yet connected; None where none is configured."""
        if not self.write_url:
            return None
        read_url = parse_url(self.read_url, self.token, without=API_PATH) if self.read_url else None
        return MetricsStore(parse_url(self.write_url, self.token), read_url)


def read_settings(setting: Callable[[str], str | None]) -> HistorySettings:
    """Read and check what `setting` says under each name; raises InvalidInput with the name."""
    write_url, read_url = setting("WINDROW_METRICS_WRITE_URL") or "", setting("WINDROW_METRICS_URL") or ""
    if read_url and not write_url:
        raise InvalidInput(
            "WINDROW_METRICS_URL says where charts ask, and WINDROW_METRICS_WRITE_URL, where samples go, is missing."
        )
    hours = _number("WINDROW_LOG_KEEP_HOURS", setting, KEEP_NS // HOUR, KEEP_HOURS_MAX)
    gib = _number("WINDROW_LOG_GIB", setting, BYTES_MAX >> 30, GIB_MAX)
    settings = HistorySettings(
        write_url, read_url, setting("WINDROW_METRICS_TOKEN") or "", Retention(hours * HOUR, gib << 30)
    )
    settings.store()
    return settings


def _number(name: str, setting: Callable[[str], str | None], default: int, highest: int) -> int:
    text = setting(name) or str(default)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= highest:
        raise InvalidInput(f"{name} is a whole number from 1 to {highest}.")
    return int(text)
