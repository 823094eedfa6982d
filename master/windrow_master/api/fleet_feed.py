"""The fleet as JSON, made once for all who look: each host is shaped anew only when it, its samples or a price changed.

Every shaped host carries the version at which it changed; a stream asks for what is newer than what it sent last.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windrow_master.api import fleet_shapes as shapes
from windrow_master.api import sse
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.view import Entry
from windrow_master.market.offers import PriceBook
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

PERIOD_NS: Final = SECOND
PRICES_KEPT_NS: Final = 5 * SECOND
MADE_AT_ONCE: Final = 50
"""Hosts shaped before others on the loop have their turn: some ten milliseconds."""
QUIET_PERIODS: Final = 15
"""Periods without news after which a comment keeps the stream alive."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """One host as JSON, and at which version of the feed it came to look so."""

    key: tuple[int, int, int]
    version: int
    summary: dict[str, Any]
    rows: list[dict[str, Any]]


class FleetFeed:
    """The shaped fleet. Used on the loop."""

    def __init__(
        self, store: Store, fleet: FleetService, telemetry: TelemetryService, market: MarketService, clock: Clock
    ) -> None:
        self._store, self._fleet, self._telemetry, self._market = store, fleet, telemetry, market
        self._clock = clock
        self._shaped: dict[HostId, Shaped] = {}
        self._texts: dict[HostId, tuple[tuple[int | None, ...], str]] = {}
        self._book: PriceBook | None = None
        self._book_ns = 0
        self._book_version = 0
        self._asks: object = None
        self._refreshed_ns = -PERIOD_NS
        self.version = 0

    async def book(self) -> PriceBook:
        """The prices, at most five seconds old."""
        now_ns = self._clock.monotonic_ns()
        if self._book is None or now_ns - self._book_ns >= PRICES_KEPT_NS:
            asks = await self._store.read(lambda uow: tuple(uow.asks.list_all()))
            self._book_ns = now_ns
            if self._book is None or asks != self._asks:
                self._asks, self._book = asks, PriceBook(asks)
                self._book_version += 1
        return self._book

    async def refresh(self) -> None:
        """Shape anew what has changed; at most once a period, however many look."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._refreshed_ns < PERIOD_NS // 2 and self._shaped:
            return
        self._refreshed_ns = now_ns
        book = await self.book()
        live = self._telemetry.live
        for entry in self._fleet.view:
            host_id = entry.host.host_id
            key = entry.version, live.version_of(host_id), self._book_version
            before = self._shaped.get(host_id)
            if before is None or before.key != key:
                self.version += 1
                reading = live.get(host_id)
                summary = shapes.summary_json(entry, self._fleet.presence.get(host_id), reading, book)
                rows = shapes.rows_json(entry, reading, book)
                self._shaped[host_id] = Shaped(key, self.version, summary, rows)

    def rows(self) -> list[dict[str, Any]]:
        """Every GPU of hosts that are not retired."""
        return [row for shaped in self._shaped.values() if _is_shown(shaped) for row in shaped.rows]

    def host(self, entry: Entry, book: PriceBook) -> dict[str, Any]:
        """One host whole, as of now."""
        host_id = entry.host.host_id
        return shapes.host_json(entry, self._fleet.presence.get(host_id), self._telemetry.live.get(host_id), book)

    async def texts(self, entries: Sequence[Entry]) -> list[str]:
        """The same of many hosts, each as JSON text, made anew only where something changed since the last time.

        A page of a thousand hosts is eight megabytes of text, most of it the same as a second ago.
        """
        book = await self.book()
        found, made = [], 0
        for entry in entries:
            host_id = entry.host.host_id
            presence = self._fleet.presence.get(host_id)
            seen = (None, None) if presence is None else (presence.last_seen_ns, presence.rtt_ns)
            key = (entry.version, self._telemetry.live.version_of(host_id), self._book_version, *seen)
            before = self._texts.get(host_id)
            if before is None or before[0] != key:
                text = json.dumps(self.host(entry, book), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
                before = self._texts[host_id] = (key, text)
                made += 1
                if made % MADE_AT_ONCE == 0:
                    await asyncio.sleep(0)
            found.append(before[1])
        return found

    def since(self, version: int) -> tuple[Shaped, ...]:
        """The hosts that changed after a version."""
        return tuple(shaped for shaped in self._shaped.values() if shaped.version > version)

    async def stream(self, seen: int | None) -> AsyncGenerator[sse.Message, None]:
        """Changed rows and hosts, once a second; everything first, unless the listener says what it has seen."""
        last = seen if seen is not None and seen <= self.version else 0
        quiet = 0
        while True:
            await self.refresh()
            news = self.since(last)
            last = max((shaped.version for shaped in news), default=last)
            for message in _messages(news, last):
                yield message
            quiet = 0 if news else quiet + 1
            if quiet >= QUIET_PERIODS:
                quiet = 0
                yield sse.ALIVE
            await self._clock.sleep_ns(PERIOD_NS)


def _messages(news: Iterable[Shaped], version: int) -> list[sse.Message]:
    rows = [row for shaped in news for row in shaped.rows]
    hosts = [shaped.summary for shaped in news]
    messages = []
    if rows:
        messages.append(sse.Message("rows", {"version": version, "rows": rows}, str(version)))
    if hosts:
        messages.append(sse.Message("hosts", {"version": version, "hosts": hosts}, str(version)))
    return messages


def _is_shown(shaped: Shaped) -> bool:
    return bool(shaped.summary["admin_state"] != "retired")
