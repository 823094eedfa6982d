"""The leader's lease on a shared database: looks at the seat, claims it, beats in a thread while this process leads.

The beats only tell others when to take over. What a leader that was overtaken may still write is decided by the
database alone: every write transaction checks its epoch (store.py).
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import Connection, Engine, bindparam, select, text, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from windrow_master.store.engine import APPLICATION, Engines, engines_of
from windrow_master.store.leader import BEAT_NS, LeaderObservation, Seat, has_lost, is_sure, may_take, see
from windrow_master.store.migrate import upgrade
from windrow_master.store.open_errors import explained
from windrow_master.store.tables import leader
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import Fenced, StorageFailed
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, seconds

CLASS: Final = 0x4C656164
"""The class of the advisory locks that the leaders' sessions hold, one per epoch."""
WAITS: Final = 0x57616974
"""The class of the advisory lock that the sessions of all Masters that wait share."""
STANDBY_GONE_NS: Final = 5 * MINUTE
"""A stand-by that is away for so long was not only started again."""

_LOOK: Final = select(leader.c.epoch, leader.c.beat, leader.c.holder, leader.c.address)
_BEAT: Final = update(leader).where(leader.c.epoch == bindparam("mine")).values(beat=leader.c.beat + 1)
_CLAIM: Final = text("SELECT pg_try_advisory_lock(:class, :mine)")
_CLAIMED: Final = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = :class AND objid = :mine "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_WAIT: Final = text("SELECT pg_try_advisory_lock_shared(:class, 0)")
_WAITING: Final = text(
    "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = :class "
    "AND pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_END: Final = text(
    "SELECT count(pg_terminate_backend(pid)) FROM (SELECT DISTINCT pid FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE relation = 'leader'::regclass AND granted AND mode IN ('RowShareLock', 'RowExclusiveLock') "
    "AND datname = current_database() AND application_name = :name AND pid <> pg_backend_pid()) AS held"
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """A seat that was seen and may be taken, on these engines, and who beats on it afterwards."""

    engines: Engines
    leadership: "Leadership"
    seat: Seat


class Candidate:
    """A Master on a shared database that does not lead (yet)."""

    def __init__(self, url: str, clock: Clock, holder: str, address: str) -> None:
        """Open the database and bring its schema up to date; blocking. Raises StorageFailed when it cannot."""
        self._engines = engines_of(url)
        assert self._engines.seat is not None
        try:
            with explained(url):
                upgrade(self._engines.writer)
        except StorageFailed:
            self._engines.dispose()
            raise
        self._leadership = Leadership(self._engines.seat, clock, holder, address)

    def ask(self) -> tuple[Seat, Claim | None]:
        """Look at the seat, and claim it if it may be taken; blocking. Raises StorageFailed when nobody answers."""
        try:
            seat, is_takeable = self._leadership.look()
            if is_takeable and self._leadership.claim(seat.epoch + 1):
                self._leadership.end_overtaken()
                return seat, Claim(self._engines, self._leadership, seat)
        except SQLAlchemyError as error:
            raise StorageFailed(f"The database does not answer: {_reason(error)}.") from error
        return seat, None

    def close(self) -> None:
        """Ask no more; what was claimed and not begun is let go."""
        self._leadership.close()
        self._engines.dispose()


def _reason(error: SQLAlchemyError) -> str:
    return str(error).splitlines()[0][:200]


def is_led(engine: Engine) -> bool:
    """Return whether the session of a Master that leads is connected to this shared database now."""
    with engine.connect() as session:
        epoch = session.execute(_LOOK).one().epoch
        return bool(session.scalar(_CLAIMED, {"class": CLASS, "mine": epoch}))


class Leadership:
    """This process's part in the lease. Looking and claiming come before `keep`, which begins the thread."""

    def __init__(self, engine: Engine, clock: Clock, holder: str, address: str) -> None:
        """holder: names this process to people; address: where clients of a standby are sent."""
        self.holder, self.address = holder, address
        self._engine, self._clock = engine, clock
        self._connection: Connection | None = None
        self._seen: LeaderObservation | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._beat_ns = clock.monotonic_ns()
        self._is_over = False
        self._has_standby = False
        """One waited since this one looked first: another, or this one itself."""
        self._alone_since_ns: int | None = None

    def conditions(self) -> Iterator[Stated]:
        """For health: a stand-by that there was and that is gone."""
        since_ns = self._alone_since_ns
        if since_ns is not None and self._clock.wall_ns() - since_ns >= STANDBY_GONE_NS:
            yield ConditionCode.MASTER_STANDBY_GONE, "No other Master waits to take over any more.", since_ns

    def check(self) -> None:
        """Raises Fenced while the last beat is so old that another may lead: at once in a process that was stopped and
        wakes. For what is written beside the database; in any thread."""
        if self._is_over or not is_sure(self._beat_ns, self._clock.monotonic_ns()):
            raise Fenced("This Master could not renew its leadership in time: another may lead.")

    def look(self) -> tuple[Seat, bool]:
        """The seat, and whether it may be taken now; blocking. Raises SQLAlchemyError when nobody can be asked."""
        try:
            seat = self._look()
        except SQLAlchemyError:
            self._drop()
            raise
        now_ns, before = self._clock.monotonic_ns(), self._seen
        self._has_standby |= before is not None and before.epoch == seat.epoch and before.beat < seat.beat
        self._seen = see(seat, before, now_ns)
        return seat, may_take(seat, self._seen, now_ns)

    def claim(self, epoch: int) -> bool:
        """Hold this epoch's lock by this session, before the epoch begins; False if another does."""
        return self._claim(self._session(), epoch)

    def end_overtaken(self) -> None:
        """End the sessions that hold the leader's row: a Master that was stopped while it sent or was sent something
        keeps its transaction for ever, since none of the server's timeouts runs then. Only whoever claimed may."""
        try:
            ended = self._session().scalar(_END, {"name": APPLICATION})
        except DBAPIError as error:
            log.warning("overtaken_sessions_not_ended", error=_reason(error))
            return
        if ended:
            log.warning("overtaken_sessions_ended", sessions=ended)

    def keep(self, epoch: int, on_lost: Callable[[str], None]) -> None:
        """Beat from now on; `on_lost` is called once, in the thread, when this process leads no more."""
        self._beat_ns = self._clock.monotonic_ns()
        self._thread = threading.Thread(target=self._keep, args=(epoch, on_lost), name="leader-beat", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Beat no more; the session's end tells the others."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._drop()

    def _look(self) -> Seat:
        is_new = self._connection is None
        session = self._session()
        if is_new:
            self._wait(session)
        row = session.execute(_LOOK).one()
        return Seat(row.epoch, row.beat, row.holder, row.address, self._is_claimed(session, row.epoch))

    def _wait(self, session: Connection) -> None:
        """Let the leader see that this one waits, as long as this session lasts."""
        session.execute(_WAIT, {"class": WAITS})

    def _waiting(self, session: Connection) -> int:
        return int(session.scalar(_WAITING, {"class": WAITS}) or 0)

    def _claim(self, session: Connection, epoch: int) -> bool:
        return bool(session.scalar(_CLAIM, {"class": CLASS, "mine": epoch}))

    def _is_claimed(self, session: Connection, epoch: int) -> bool:
        return bool(session.scalar(_CLAIMED, {"class": CLASS, "mine": epoch}))

    def _keep(self, epoch: int, on_lost: Callable[[str], None]) -> None:
        while not self._stop.wait(seconds(BEAT_NS)):
            if not self.beat(epoch, on_lost):
                return

    def beat(self, epoch: int, on_lost: Callable[[str], None]) -> bool:
        """Beat once; False when `on_lost` was called, and there is nothing more to beat for. Blocking."""
        asked_ns = self._clock.monotonic_ns()
        is_held = self._beat(epoch)
        if is_held is None and self._clock.monotonic_ns() - asked_ns < BEAT_NS:
            # The server has ended the session, which others see: a new one says at once that this process lives.
            asked_ns = self._clock.monotonic_ns()
            is_held = self._beat(epoch)
        if is_held:
            self._beat_ns = asked_ns
        elif is_held is False:
            self._is_over = True
            on_lost(f"Another Master leads; this one's term {epoch} is over.")
            return False
        if has_lost(self._beat_ns, self._clock.monotonic_ns()):
            on_lost(f"The database could not be reached for too long; term {epoch} is given up.")
            return False
        return True

    def _beat(self, epoch: int) -> bool | None:
        """Return whether the seat is still this epoch's; None: nobody could be asked."""
        try:
            is_new = self._connection is None
            session = self._session()
            if is_new:
                self._claim(session, epoch)
            is_held = session.execute(_BEAT, {"mine": epoch}).rowcount == 1
            self._look_after_standby(session)
            return is_held
        except SQLAlchemyError as error:
            self._drop()
            log.warning("leader_beat_failed", epoch=epoch, error=_reason(error))
            return None

    def _look_after_standby(self, session: Connection) -> None:
        is_there = self._waiting(session) > 0
        self._has_standby |= is_there
        if is_there or not self._has_standby:
            self._alone_since_ns = None
        elif self._alone_since_ns is None:
            self._alone_since_ns = self._clock.wall_ns()

    def _session(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                # Not back to the pool: its advisory locks have to end with it.
                connection.invalidate()
                connection.close()
            except DBAPIError as error:
                log.debug("leader_session_not_closed", error=str(error)[:200])
