"""Tells the streams of this process every event exactly once and in order, whichever process committed it.

committed here ─▶ next in number? told at once ─────────────────────────────▶ streams
                  else, or a wake-up of the bus, or the clock ─▶ read from SQL ─▶ streams
Nothing depends on a wake-up: one that is lost makes an event late by one look, never lost.
"""

import asyncio
from typing import Final

import structlog

from windrow_master.api.record_routes import message_of, topics_of
from windrow_master.api.sse import Broadcaster, Message
from windrow_master.loops import ends_alone
from windrow_master.store.bus import Bus
from windrow_master.store.model import EventRow
from windrow_master.store.store import Store

EVENT: Final = "event"
CLUSTER: Final = "cluster"
"""The kinds of wake-ups; the subject of the first is empty and its text a number, the subject of the second an id."""
LOOK_S: Final = 10.0
"""A look without a wake-up, while the bus is well: one of its messages in a million may be lost all the same."""
LOOK_ALONE_S: Final = 0.5
"""While the bus reaches this process only: a person hardly sees the difference, and the database does not feel it."""
READ_MAX: Final = 500

log = structlog.get_logger(__name__)


class EventTail:
    """The end of the events as this process has told it. Used on one loop."""

    def __init__(self, store: Store, bus: Bus, broadcaster: Broadcaster, *, is_writer: bool = True) -> None:
        """is_writer: events are committed through this very store, and told as they are."""
        self._store, self._bus, self._broadcaster = store, bus, broadcaster
        newest = store.read_now(lambda uow: uow.events.newest(limit=1))
        self._last = newest[0].number if newest else 0
        self._is_reading = False
        self._wanted = asyncio.Event()
        bus.listen(EVENT, self._woken)
        bus.listen(CLUSTER, self._cluster_changed)
        if is_writer:
            store.on_event(self._committed)

    async def run(self) -> None:
        """Look when woken, and now and then without."""
        while True:
            try:
                async with asyncio.timeout(LOOK_S if self._bus.health.problem is None else LOOK_ALONE_S):
                    await self._wanted.wait()
            except TimeoutError:
                self._cluster_changed("", "")
            with ends_alone("events_reading", after=self._last):  # the next look reads on from the last one told
                await self._look()

    def _committed(self, row: EventRow) -> None:
        if row.number == self._last + 1 and not self._is_reading:
            self._tell(row)
        else:
            self._wanted.set()
        self._bus.publish(EVENT, "", str(row.number))

    def _woken(self, _subject: str, text: str) -> None:
        if not (text.isdecimal() and int(text) <= self._last):
            self._wanted.set()

    def _cluster_changed(self, cluster_id: str, _text: str) -> None:
        topics = [f"{CLUSTER}/{cluster_id}"] if cluster_id else self._broadcaster.topics(f"{CLUSTER}/")
        for topic in topics:
            self._broadcaster.publish([topic], Message("changed", {}))

    async def _look(self) -> None:
        self._wanted.clear()
        self._is_reading = True
        try:
            while rows := await self._store.read(lambda uow: uow.events.after(self._last, limit=READ_MAX)):
                for row in rows:
                    self._tell(row)
        finally:
            self._is_reading = False

    def _tell(self, row: EventRow) -> None:
        self._last = row.number
        if topics := [one for one in topics_of(row) if self._broadcaster.has_listeners(one)]:
            self._broadcaster.publish(topics, message_of(row))
