"""Writes an event when an Access is lost, and when it is back: once each, whoever leads meanwhile."""

from dataclasses import dataclass

from windrow_master.identity.members import accesses_in_force
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE

GRACE_NS = MINUTE
"""After the start of a Master: by then every Access that is there has found it."""
LOST, BACK = "access.lost", "access.back"


@dataclass(frozen=True, slots=True)
class AccessNews:
    """An Access has come, or its last worker has gone. hosts: that were connected through that worker."""

    access_id: str
    region: str
    is_attached: bool
    is_drained: bool
    hosts: int = 0


class AccessNewsWriter:
    """What is new of Accesses, written down in turns. Used on the loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._waiting: dict[str, AccessNews] = {}
        self._attached: set[str] = set()
        self._missing_due_ns: int | None = clock.monotonic_ns() + GRACE_NS

    def note(self, news: AccessNews) -> None:
        """Have this written in the next turn."""
        self._waiting[news.access_id] = news
        (self._attached.add if news.is_attached else self._attached.discard)(news.access_id)

    async def turn(self) -> None:
        """Write what waits; a while after the start also which Accesses have not come back to this Master."""
        is_due = self._missing_due_ns is not None and self._clock.monotonic_ns() >= self._missing_due_ns
        if not self._waiting and not is_due:
            return
        waiting, attached = dict(self._waiting), frozenset(self._attached)

        def write(uow: UnitOfWork) -> None:
            for one in waiting.values():
                _write(uow, one)
            for access_id in sorted(accesses_in_force(uow) - attached) if is_due else ():
                if _last(uow, access_id) == BACK:
                    _write(uow, AccessNews(access_id, "", is_attached=False, is_drained=False))

        await self._store.write(write, name="access.news")
        self._waiting = {key: one for key, one in self._waiting.items() if waiting.get(key) is not one}
        if is_due:
            self._missing_due_ns = None


def _last(uow: UnitOfWork, access_id: str) -> str | None:
    """The kind of the last of these events about an Access; None: there was none."""
    found = [row for kind in (LOST, BACK) for row in uow.events.newest(access_id, kind=kind, limit=1)]
    return max(found, key=lambda row: row.number).kind if found else None


def _write(uow: UnitOfWork, news: AccessNews) -> None:
    kind, name = BACK if news.is_attached else LOST, f"The relay {news.region or news.access_id}"
    if _last(uow, news.access_id) == kind:
        return
    text = (
        f"{name} is attached" if news.is_attached else f"{name} is gone: {news.hosts} hosts were connected through it"
    )
    fields = {"region": news.region, "drained": "1" if news.is_drained else "0"}
    uow.event(kind, (news.access_id,), text, fields, "master")
