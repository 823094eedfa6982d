"""Runs the same work with each host when it is due, a limited number at once, the longest waiting first: challenges and
acceptance tests.

 changed, due ─▶ queue ─▶ is due, connected ─▶ ready ─▶ begin (one transaction) ─▶ carry out ─▶ queue
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection
from functools import partial
from typing import Final, Generic, TypeVar

from windrow_master.fleet.model import Host
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.view import Entry
from windrow_master.loops import Boundary, when_due
from windrow_master.store.store import Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE

W = TypeVar("W")
"""A piece of work that was written down as begun."""
LOOK_AGAIN_NS: Final = MINUTE
"""For a host to which nothing happens: a route may open without a change of the host, and a clock may be set."""


class HostScheduler(ABC, Generic[W]):
    """Used on the loop only. Of its subclass: what is due, how it begins, and how it is carried out."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: Clock,
        fleet: FleetService,
        pause_ns: int,
        at_once: int,
        running: dict[HostId, W | None],
    ) -> None:
        """name: of the work, for the log. pause_ns: between two looks, at least. at_once: hosts worked with. running:
        where what is under way is kept, by host; None: it is being begun."""
        self._name, self._pause_ns, self._at_once = name, pause_ns, at_once
        self._store, self._clock, self._fleet = store, clock, fleet
        self._running = running
        self._ready: set[HostId] = set()
        self._queue = WorkQueue[HostId](clock)
        self._is_listed = False
        self._faults = Boundary(name, DATABASE_FAULTS)
        self._group: asyncio.TaskGroup | None = None
        fleet.on_change(self._changed)

    @abstractmethod
    def _pick_up(self, uow: UnitOfWork) -> None:
        """Conclude what a Master before this one had begun."""

    @abstractmethod
    def _is_due(self, entry: Entry, now_ns: int) -> bool:
        """Return whether it is time for this host; now_ns: wall time."""

    @abstractmethod
    def _next_ns(self, host: Host, now_ns: int) -> int | None:
        """Return when it may be time for a host that is not due, in wall time; None: something has to happen first."""

    @abstractmethod
    def _due_ns(self, host: Host) -> int:
        """Since when a host that is due waits, in wall time."""

    @abstractmethod
    def _begin(self, uow: UnitOfWork, host_id: HostId, actor: str) -> W | str:
        """Write down that it begins; or why it cannot."""

    @abstractmethod
    async def _carry_out(self, work: W) -> None:
        """Do what was begun, and write down what came of it."""

    @abstractmethod
    async def _break_off(self, work: W) -> None:
        """Write down that a bug has ended it, so that the host waits for its next turn."""

    async def run(self) -> None:
        """Work with whoever is due, until cancelled."""
        async with asyncio.TaskGroup() as group:

            async def turn() -> None:
                if self._group is None:  # what is begun before that would be concluded with what was left
                    await self._store.write(self._pick_up, name=f"{self._name}.start")
                    self._group = group
                await self.tick()

            try:
                await when_due(turn, self._queue, self._pause_ns, self._name)
            finally:
                self._group = None

    async def tick(self) -> None:
        """Look at the hosts that changed or may be due, and begin with those that are, the longest waiting first."""
        now_ns = self._clock.wall_ns()
        if not self._is_listed:
            self._changed([entry.host.host_id for entry in self._fleet.view])
            self._is_listed = True
        for host_id in self._queue.take():
            entry = self._fleet.view.get(host_id)
            if entry is not None:
                self._consider(entry, now_ns)
        for host_id in sorted(self._ready, key=self._waits_since):
            if len(self._running) >= self._at_once:
                break
            self._ready.discard(host_id)
            await self._begin_one(host_id)
        await self._fleet.refresh()

    def _changed(self, host_ids: Collection[HostId]) -> None:
        for host_id in host_ids:
            self._queue.add(host_id)

    def _consider(self, entry: Entry, now_ns: int) -> None:
        """Put it among those that are ready, or have it looked at again when it may be."""
        host, again_ns = entry.host, 0
        self._ready.discard(host.host_id)
        if host.host_id in self._running:
            return  # its end brings it up
        with self._faults.around(host.host_id, "due"):
            if not self._is_due(entry, now_ns):
                next_ns = self._next_ns(host, now_ns)
                again_ns = LOOK_AGAIN_NS if next_ns is None else max(1, min(LOOK_AGAIN_NS, next_ns - now_ns))
            elif not self._fleet.is_connected(host.host_id):
                again_ns = LOOK_AGAIN_NS
            elif not self._faults.skips(host.host_id):
                self._ready.add(host.host_id)
                return
        self._queue.add(host.host_id, self._clock.monotonic_ns() + again_ns)

    def _waits_since(self, host_id: HostId) -> tuple[int, HostId]:
        entry = self._fleet.view.get(host_id)
        return (0 if entry is None else self._due_ns(entry.host)), host_id

    async def _begin_one(self, host_id: HostId) -> None:
        self._running[host_id] = None
        try:
            with self._faults.around(host_id, "begin"):
                begin = partial(self._begin, host_id=host_id, actor="master")
                work = await self._store.write(begin, name=f"{self._name}.begin")
                if not isinstance(work, str):
                    self._launch(host_id, work)
        finally:
            self._release(host_id, None)

    def _launch(self, host_id: HostId, work: W) -> None:
        if self._group is not None:
            self._running[host_id] = work
            self._group.create_task(self._done(host_id, work), name=f"{self._name} {host_id}")

    def _release(self, host_id: HostId, work: W | None) -> None:
        """This work is over; None: it was not begun. Another one may have begun meanwhile."""
        if self._running.get(host_id) is work:
            self._running.pop(host_id, None)
            self._queue.add(host_id)

    async def _done(self, host_id: HostId, work: W) -> None:
        try:
            await self._carry_out(work)
            self._faults.went_well(host_id, "work")
        except Exception:  # the task's top level: the others go on
            self._faults.crashed(host_id, "work")
            await self._break_off(work)
        finally:
            self._release(host_id, work)
