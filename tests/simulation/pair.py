"""Several Masters over one database and one shared storage, of which one leads: the lease, the takeover, the fence.

    Master 1 ──┐                 ┌── the database's server: one disk, sessions with the locks they hold
               ├── sessions ─────┤
    Master 2 ──┘                 └── the telemetry log's storage, mounted by both

The shipped candidate, lease, epoch check and log decide. What stands in: the server is SQLite in memory with one
connection, on which transactions follow one another; a session's advisory lock is a row of `Server.locks`; beats are a
task and no thread. A Master that ends is started again a moment later, as its unit would be.
"""

import asyncio
import copy
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection as Session
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import StaticPool

from tests.simulation.database import READ, WRITE, Connection, Cursor, Power, driver, migrated, opened
from tests.simulation.machines import MasterMachine
from windrow_master.app import wiring
from windrow_master.app.clock import SteadyClock
from windrow_master.app.standby import StandbyApp, seat_of
from windrow_master.app.wiring import Master
from windrow_master.store.engine import Engines, set_up
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.leader import BEAT_NS
from windrow_master.store.leadership import Candidate, Leadership
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import Conflict, StorageFailed
from windrow_proto.units import MILLISECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

WAITS_S = (0.001, 0.05, 0.4)
"""From a claim to the term: what a Master loads and asks in between."""
AGAIN_S = (0.5, 2.0)
"""Until a Master that ended by itself is started again."""
TRIP_NS = 20 * MILLISECOND
"""The duration of a beat; other statements take no time here."""
EACH_ALONE = "SELECT 1"
"""The statement with which a beating session begins: each of its statements is a transaction, as the shipped one asks
for. One that stayed open after a look would take the next beat of another Master back with it, since all share one
connection."""
LOOK_S = 0.25
"""How often a unit looks whether its Master ended."""


class Lost(sqlite3.OperationalError):
    """The server does not answer, or has ended the session."""


class Server:
    """The database's machine. locks: which session holds each epoch's; lives: of Masters, as they wrote in turn."""

    def __init__(self) -> None:
        self.power: Power = migrated()
        self.connection: Connection | None = opened(self.power)
        self.locks: dict[int, Line] = {}
        self.lines: set[Line] = set()
        self.unreachable: set[str] = set()
        """Masters whose way here is cut."""
        self.lost_commits: dict[str, bool] = {}
        """Masters whose next commit loses its answer; whether it is made all the same."""
        self.lives: list[str] = []

    def engines(self, master: "PairedMaster") -> Engines:
        """The engines that a Master opens: one line that writes, one that reads, one that beats."""
        writer, reader, seat = (self._engine(master, begin) for begin in (WRITE, READ, EACH_ALONE))
        return Engines(writer, reader, seat)

    def _engine(self, master: "PairedMaster", begin: str) -> Engine:
        module = driver(self.power)
        module.connect = lambda *_, **__: Line(self, master)
        engine = create_engine("sqlite:////master.sqlite3", module=module, poolclass=StaticPool)
        set_up(engine, begin=begin, pragmas=())

        def failed(context: ExceptionContext) -> None:
            context.is_disconnect = isinstance(context.original_exception, Lost)

        event.listen(engine, "handle_error", failed)
        return engine

    def answering(self, master: str) -> Connection:
        """The connection on which all transactions run; raises Lost where this Master does not reach the server."""
        if self.connection is None or master in self.unreachable:
            raise Lost("server closed the connection unexpectedly")
        return self.connection

    def end_sessions(self, master: str | None = None) -> None:
        """End all sessions of this Master (None: of everybody), and with them their locks."""
        for line in sorted(self.lines, key=lambda line: line.number):
            if master in (None, line.master.name):
                line.end()

    def cut_power(self, luck: random.Random) -> None:
        """It falls; what was committed is there when it comes back."""
        self.power, self.connection = self.power.cut(luck), None
        self.end_sessions()

    def wrote(self, life: str) -> None:
        """This life of a Master has committed something, or begun its term."""
        if self.lives[-1:] != [life]:
            self.lives.append(life)

    def come_back(self) -> None:
        """Answer again."""
        if self.connection is None:
            self.connection = opened(self.power)


class Line:
    """One session of a Master with the server, as the driver's connection. Once it has ended, whatever is asked first
    on it is told so; the next is asked on a new one, but for the one that beats, which is opened anew by its owner."""

    isolation_level: str | None = None
    numbers = 0

    def __init__(self, server: Server, master: "PairedMaster") -> None:
        server.answering(master.name)
        Line.numbers += 1
        self.server, self.master, self.number = server, master, Line.numbers
        self.life = "" if master.process is None else master.process.name
        self.has_ended = False
        server.lines.add(self)

    def _raw(self) -> Connection:
        raw = self.server.answering(self.master.name)
        if self.has_ended:
            self.has_ended = False
            self.server.lines.add(self)
            raise Lost("terminating connection due to administrator command")
        return raw

    @property
    def in_transaction(self) -> bool:
        """True if BEGIN was said and not ended."""
        return self.server.connection is not None and self.server.connection.in_transaction

    def cursor(self, *_: Any) -> Cursor:
        """A new cursor."""
        raw = self._raw()
        raw.is_reading = raw.is_reading and raw.in_transaction
        return raw.cursor()

    def execute(self, statement: str, parameters: Any = ()) -> Cursor:
        """Run one statement."""
        return self.cursor().execute(statement, parameters)

    def commit(self) -> None:
        """End the transaction, if there is one; what was written counts as this life's."""
        raw = self._raw()
        if not raw.in_transaction:
            return
        is_made = self.server.lost_commits.pop(self.master.name, None) if not raw.is_reading else None
        if is_made is False:
            raw.rollback()
        else:
            raw.commit()
            if not raw.is_reading and self.master.rooms is not None:  # who does not lead yet writes nothing of its own
                self.server.wrote(self.life)
        if is_made is not None:
            self.end()
            raise Lost("server closed the connection unexpectedly")

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        if self.server.connection is not None:
            self.server.connection.rollback()

    def create_function(self, name: str, arity: int, function: Any, *, deterministic: bool = False) -> None:
        """Add an SQL function."""
        self._raw().create_function(name, arity, function, deterministic=deterministic)

    def end(self) -> None:
        """The server ends it."""
        self.has_ended = True
        self.server.lines.discard(self)
        for epoch in [epoch for epoch, line in self.server.locks.items() if line is self]:
            del self.server.locks[epoch]

    def close(self) -> None:
        """Let go of it."""
        self.end()


class SimulatedLeadership(Leadership):
    """The shipped lease: its locks are the server's table, its beats a task."""

    def __init__(self, master: "PairedMaster", engines: Engines) -> None:
        assert engines.seat is not None
        super().__init__(engines.seat, master.clock, master.name, master.address)
        self._server = master.server

    def _claim(self, session: Session, epoch: int) -> bool:
        line = session.connection.driver_connection
        assert isinstance(line, Line)
        line._raw()
        return self._server.locks.setdefault(epoch, line) is line

    def _is_claimed(self, session: Session, epoch: int) -> bool:
        return epoch in self._server.locks

    def _wait(self, session: Session) -> None:
        """Who waits is not counted here."""

    def _waiting(self, session: Session) -> int:
        return 0

    def end_overtaken(self) -> None:
        """Nobody keeps a transaction open here: each is over before anybody else takes a step."""

    def keep(self, epoch: int, on_lost: Callable[[str], None]) -> None:
        """Beat from now on."""
        self._beat_ns = self._clock.monotonic_ns()
        asyncio.get_running_loop().create_task(self._beating(epoch, on_lost))

    async def _beating(self, epoch: int, on_lost: Callable[[str], None]) -> None:
        while not self._stop.is_set():
            await self._clock.sleep_ns(BEAT_NS)
            await self._clock.sleep_ns(TRIP_NS)
            if self._stop.is_set() or not self.beat(epoch, on_lost):
                return

    def close(self) -> None:
        """Beat no more."""
        self._stop.set()
        self._drop()


class SimulatedCandidate(Candidate):
    """The shipped one, on engines that are open already."""

    def __init__(self, master: "PairedMaster") -> None:
        self._engines = master.server.engines(master)
        self._leadership = SimulatedLeadership(master, self._engines)


class Mount:
    """The shared storage as one life of a Master has it: once that has ended, it goes on with a copy of its own."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def leave(self) -> None:
        """Cuts the owner off: nobody sees what it still does."""
        self._disk = copy.deepcopy(self._disk)


class PairedMaster(MasterMachine):
    """One of several Masters' machines: it waits for the seat, and leads."""

    def __init__(self, world: "World", directory: Path, number: int, server: Server, storage: MemoryDisk) -> None:
        self.server, self.storage = server, storage
        super().__init__(world, directory, f"master-{number}")
        self._mount = Mount(storage)
        self.is_stopped = False

    @property
    def power(self) -> Power:  # it is the server's
        """The disk of the database."""
        return self.server.power

    @power.setter
    def power(self, _: Power) -> None:
        """The one that every Master makes for itself is not used here."""

    @property
    def disk(self) -> MemoryDisk:  # it is everybody's
        """The disk of the log."""
        return self.storage

    @disk.setter
    def disk(self, _: MemoryDisk) -> None:
        """Likewise."""

    @property
    def has_ended(self) -> bool:
        """True if it would have ended by now: it may write no more."""
        return self.rooms is not None and self.rooms.store.problem is not None and not self.is_stopped

    async def _main(self) -> None:
        clock = SteadyClock(self.clock)
        self._mount = Mount(self.storage)
        await self._serve(await self._led(clock))

    async def _led(self, clock: SteadyClock) -> Master:
        """Wait for the seat and take it; begin anew where another was faster, or the server fell."""
        luck = random.Random(f"{self.world.seed}|{self.name}|{self.lives}|seat")
        while True:
            claim = None
            try:
                claim = await seat_of(SimulatedCandidate(self), StandbyApp(), asyncio.Event())
                assert claim is not None
                await asyncio.sleep(luck.choice(WAITS_S))
                self.rooms = wiring.build(
                    self.directory,
                    clock,
                    self.rng(),
                    disk=self._mount,  # as a MemoryDisk
                    make_executor=InlineExecutor,
                    claim=claim,
                )
                assert self.process is not None
                self.server.wrote(self.process.name)
                return self.rooms
            except (Conflict, StorageFailed) as error:
                self.world.trace.add(f"{self.name} does not lead: {error.code}")
                await asyncio.sleep(luck.choice(AGAIN_S))

    def stop(self) -> None:
        """SIGSTOP."""
        assert self.process is not None
        self.is_stopped = True
        self.world.loop.halt(self.process)

    def go_on(self) -> None:
        """SIGCONT."""
        if self.is_stopped and self.process is not None:
            self.world.loop.go_on(self.process)
        self.is_stopped = False

    def hand_over(self) -> None:
        """End it in order: it writes down the end of its term and gives the seat back."""
        if self.rooms is not None:
            self.rooms.store.close()
        self.kill(None)

    def mend(self) -> None:
        """After the last fault: have it run, and reach its database."""
        self.server.unreachable.discard(self.name)
        self.server.lost_commits.clear()
        self.server.come_back()
        self.go_on()
        super().mend()

    def kill(self, luck: random.Random | None) -> None:
        """End it; with `luck` the power is cut, and what it had not synced on the storage is lost where it led."""
        led, self.rooms, self.is_stopped = self.rooms is not None, None, False
        self._die()
        self.world.network.remove(self.address)
        self.server.end_sessions(self.name)
        self._mount.leave()
        is_alone = all(other.rooms is None for other in self.world.masters)
        if luck is not None and led and is_alone:
            self.storage.crash(keep_unsynced=lambda _, count: luck.randrange(count + 1))


async def supervise(world: "World") -> None:
    """As the units of these Masters: start again what ended by itself."""
    luck = random.Random(f"{world.seed}|supervise")
    while True:
        await asyncio.sleep(LOOK_S)
        for master in world.masters:
            if isinstance(master, PairedMaster) and master.has_ended:
                master.kill(None)
                world.count("master ended by itself")
                await asyncio.sleep(luck.choice(AGAIN_S))
                if not master.is_up:
                    master.start()


def pair(world: "World", directory: Path, count: int) -> list[MasterMachine]:
    """So many Masters over one database and one storage."""
    server, storage = Server(), MemoryDisk()
    return [PairedMaster(world, directory, number, server, storage) for number in range(1, count + 1)]
