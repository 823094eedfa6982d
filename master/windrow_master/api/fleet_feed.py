"""Writes the fleet as JSON text, once for all readers: each host is written anew only when it, its samples or a price
changed, and each step of a stream once for all its readers.

Every host carries the version at which it changed; a stream asks for what is newer than what it sent last. Versions
begin at the time in microseconds, so that one of an earlier Master is old to the next.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from windrow_master.api import fleet_shapes as shapes
from windrow_master.api import fleet_texts as texts
from windrow_master.api import sse
from windrow_master.api.services import Services
from windrow_master.fleet.model import AdminState
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.view import Entry
from windrow_master.market.offers import PriceBook
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.ids import AccountId, HostId
from windrow_proto.ports import Clock
from windrow_proto.units import MICROSECOND, SECOND

PERIOD_NS: Final = SECOND
PRICES_KEPT_NS: Final = 5 * SECOND
NOBODY: Final = AccountId("")
"""An account that owns no host."""
MADE_AT_ONCE: Final = 25
"""Hosts written before others on the loop have their turn: some ten milliseconds."""
QUIET_PERIODS: Final = 15
"""Periods without news after which a comment keeps the stream alive."""


Viewer = AccountId | None
"""For whom a text is: an account, which learns who holds slots of its own hosts only; None oversees the market."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """One host as text, and at which version of the feed it came to look so.

    heads, rows: for its owner and who oversees the market, then for others.
    """

    key: tuple[int, int, int]
    version: int
    is_shown: bool
    owner: AccountId
    heads: tuple[bytes, bytes]
    gpus: bytes
    rows: tuple[bytes, bytes]
    frames: texts.Frames

    def head_for(self, viewer: Viewer) -> bytes:
        """Return what this viewer may see of the host itself."""
        return self.heads[0 if _is_open(viewer, self.owner) else 1]

    def rows_for(self, viewer: Viewer) -> bytes:
        """Return what this viewer may see of its GPUs in the flat list."""
        return self.rows[0 if _is_open(viewer, self.owner) else 1]


def _is_open(viewer: Viewer, owner: AccountId) -> bool:
    return viewer is None or viewer == owner


@dataclass(frozen=True, slots=True)
class Whole:
    """One host with its link and GPUs: what a page of hosts is put together from; texts as `Shaped.heads`."""

    of: Shaped
    seen: tuple[int | None, int | None]
    number: int
    texts: tuple[bytes, bytes]

    def text_for(self, viewer: Viewer) -> bytes:
        """Return what this viewer may see of it."""
        return self.texts[0 if _is_open(viewer, self.of.owner) else 1]


class FleetFeed:
    """The written fleet. Used on the loop."""

    def __init__(
        self, store: Store, fleet: FleetService, telemetry: TelemetryService, market: MarketService, clock: Clock
    ) -> None:
        self._store, self._fleet, self._telemetry, self._market = store, fleet, telemetry, market
        self._clock = clock
        self._shaped: dict[HostId, Shaped] = {}
        self._wholes: dict[HostId, Whole] = {}
        self._steps: dict[tuple[int, Viewer], tuple[sse.Message, ...]] = {}
        self._steps_version = 0
        self._turn = asyncio.Lock()
        self._book: PriceBook | None = None
        self._book_ns = 0
        self._book_version = 0
        self._refreshed_ns = -PERIOD_NS
        self.version = self._number = clock.wall_ns() // MICROSECOND

    async def book(self) -> PriceBook:
        """The prices, at most five seconds old."""
        now_ns = self._clock.monotonic_ns()
        if self._book is None or now_ns - self._book_ns >= PRICES_KEPT_NS:
            book = await self._store.read(self._market.book)
            self._book_ns = now_ns
            if self._book is None or not book.says_the_same(self._book):
                self._book = book
                self._book_version += 1
        return self._book

    async def refresh(self) -> None:
        """Write anew what has changed; at most once a period, however many look."""
        async with self._turn:  # who comes meanwhile waits for all of it, and not for a part
            now_ns = self._clock.monotonic_ns()
            if now_ns - self._refreshed_ns < PERIOD_NS // 2 and self._shaped:
                return
            self._refreshed_ns = now_ns
            await self._write(self._fleet.view)

    async def _write(self, entries: Iterable[Entry]) -> None:
        book, made = await self.book(), 0
        for entry in entries:
            made += self._is_written(entry, book)
            if made >= MADE_AT_ONCE:
                made = 0
                await asyncio.sleep(0)

    def _is_written(self, entry: Entry, book: PriceBook) -> bool:
        """Write one host; False if it was as it is."""
        host_id = entry.host.host_id
        key = entry.version, self._telemetry.live.version_of(host_id), self._book_version
        before = self._shaped.get(host_id)
        if before is not None and before.key >= key:  # an older entry may come from a list that was made earlier
            return False
        kept = None if before is None else before.frames
        if kept is None or (kept.entry_version, kept.book_version) != (entry.version, self._book_version):
            kept = texts.frames(entry, book, self._book_version)
        reading = self._telemetry.live.get(host_id)
        gpus, rows, closed_rows = texts.filled(kept, reading)
        head = texts.head_text(entry, reading, book)
        self.version += 1
        self._shaped[host_id] = Shaped(
            key,
            self.version,
            entry.host.admin_state is not AdminState.RETIRED,
            entry.host.owner_account,
            (f"{head},{kept.holders[0]}".encode(), f"{head},{kept.holders[1]}".encode()),
            gpus.encode(),
            (rows.encode(), closed_rows.encode()),
            kept,
        )
        return True

    def rows(self, viewer: Viewer) -> list[bytes]:
        """Every GPU of hosts that are not retired, as text: a piece for each host."""
        return [shaped.rows_for(viewer) for shaped in self._shaped.values() if shaped.is_shown and shaped.rows[0]]

    def host(self, entry: Entry, book: PriceBook, sees: shapes.Sees | None) -> dict[str, Any]:
        """One host whole, as of now. sees: None for its owner and who oversees the market."""
        host_id = entry.host.host_id
        live, reading = self._fleet.presence.get(host_id), self._telemetry.live.get(host_id)
        return shapes.host_json(entry, live, reading, book, sees)

    async def wholes(self, entries: Sequence[Entry]) -> list[Whole]:
        """The same of many hosts, each as text with a number that changes with it; only what changed is written anew.

        A page of a thousand hosts is seven megabytes, most of it the same as a second ago.
        """
        await self._write(entries)
        return [self._whole(entry) for entry in entries]

    def _whole(self, entry: Entry) -> Whole:
        host_id = entry.host.host_id
        shaped, presence = self._shaped[host_id], self._fleet.presence.get(host_id)
        seen = (None, None) if presence is None else (presence.last_seen_ns, presence.rtt_ns)
        before = self._wholes.get(host_id)
        if before is None or before.of is not shaped or before.seen != seen:
            link = texts.link_text(entry, presence).encode()
            opened, closed = (b'%b,%b,"gpus":[%b]}' % (head, link, shaped.gpus) for head in shaped.heads)
            self._number += 1
            before = self._wholes[host_id] = Whole(shaped, seen, self._number, (opened, closed))
        return before

    def _summary(self, host_id: HostId, head: bytes) -> bytes:
        entry = self._fleet.view.get(host_id)
        assert entry is not None, "what was written is in the view"
        return b"%b,%b}" % (head, texts.link_text(entry, self._fleet.presence.get(host_id)).encode())

    def news(self, after: int, viewer: Viewer) -> tuple[sse.Message, ...]:
        """Return the changes after a version, as messages that all who ask for the same and see the same share."""
        if viewer is not None and all(shaped.owner != viewer for shaped in self._shaped.values()):
            viewer = NOBODY
        if self._steps_version != self.version:
            self._steps.clear()
            self._steps_version = self.version
        found = self._steps.get((after, viewer))
        if found is None:
            found = self._steps[after, viewer] = self._messages(after, viewer)
        return found

    def _messages(self, after: int, viewer: Viewer) -> tuple[sse.Message, ...]:
        changed = [(host_id, shaped) for host_id, shaped in self._shaped.items() if shaped.version > after]
        parts = {
            "rows": b",".join(shaped.rows_for(viewer) for _, shaped in changed if shaped.rows[0]),
            "hosts": b",".join(self._summary(host_id, shaped.head_for(viewer)) for host_id, shaped in changed),
        }
        head = b'{"version":%d,' % self.version
        return tuple(
            sse.Message(name, id=str(self.version), text=b'%b"%b":[%b]}' % (head, name.encode(), text))
            for name, text in parts.items()
            if text
        )

    async def stream(self, seen: int | None, viewer: Viewer) -> AsyncGenerator[sse.Message, None]:
        """Changed rows and hosts, once a second; everything first, unless the listener says what it has seen."""
        last = seen if seen is not None and seen <= self.version else 0
        quiet = 0
        while True:
            await self.refresh()
            news, last = self.news(last, viewer), self.version
            for message in news:
                yield message
            quiet = 0 if news else quiet + 1
            if quiet >= QUIET_PERIODS:
                quiet = 0
                yield sse.ALIVE
            await self._clock.sleep_ns(PERIOD_NS)


_FEEDS: Final[WeakKeyDictionary[object, FleetFeed]] = WeakKeyDictionary()
"""One feed for each fleet that is served, so that all its readers share what was shaped."""


def feed_of(services: Services) -> FleetFeed:
    """The shared feed of this application's fleet."""
    feed = _FEEDS.get(services.fleet)
    if feed is None:
        feed = FleetFeed(services.store, services.fleet, services.telemetry, services.market, services.clock)
        _FEEDS[services.fleet] = feed
    return feed
