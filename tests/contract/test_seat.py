"""The contract of the leader's seat on a real PostgreSQL: one leads, and who was overtaken writes nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import psycopg
import pytest
from psycopg.pq import abc as pgconn
from sqlalchemy.exc import DBAPIError

from tests.master_support import ManualClock, SeededRng
from tests.waiting import poll
from windrow_master.store.engine import APPLICATION, IDLE_IN_TRANSACTION_MS
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.leader import GONE_NS, LEASE_NS, SURE_NS
from windrow_master.store.leadership import STANDBY_GONE_NS, Candidate, Claim
from windrow_master.store.repository import TermRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Fenced, StorageFailed

pytestmark = pytest.mark.proves("the leader's seat on a real PostgreSQL")


class Masters:
    """Masters on one database, as far as leading goes."""

    def __init__(self, url: str, folder: Path, cleanup: ExitStack) -> None:
        self.url, self._folder, self._cleanup = url, folder, cleanup
        self.clock = ManualClock()

    def candidate(self, name: str) -> Candidate:
        candidate = Candidate(self.url, self.clock, name, f"https://{name}:8443")
        self._cleanup.callback(candidate.close)
        return candidate

    def lead(self, claim: Claim | None = None) -> Store:
        """Begin a term: on a claim, or from whoever has the seat."""
        place = self._folder / str(id(claim))
        database = None if claim is not None else self.url
        store = Store.open(place, self.clock, SeededRng(), executor=InlineExecutor(), database=database, claim=claim)
        self._cleanup.callback(store.close)
        return store


@pytest.fixture
def masters(postgres_url: str, tmp_path: Path) -> Iterator[Masters]:
    with ExitStack() as cleanup:
        yield Masters(postgres_url, tmp_path, cleanup)


def claimed(candidate: Candidate) -> Claim:
    _, claim = candidate.ask()
    assert claim is not None
    return claim


def note(uow: UnitOfWork) -> None:
    uow.audit("test", "note", "it")


def entries(url: str) -> list[int]:
    """The epoch of each entry of the audit log."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return [row[0] for row in connection.execute("SELECT epoch FROM audit WHERE action = 'note' ORDER BY number")]


def test_one_leads_and_the_others_see_where(masters: Masters) -> None:
    first = masters.candidate("a")
    store = masters.lead(claimed(first))
    seat, claim = masters.candidate("b").ask()

    assert claim is None
    assert (seat.epoch, seat.holder, seat.address, seat.is_connected) == (store.epoch, "a", "https://a:8443", True)


def test_a_seat_that_was_given_back_is_taken_at_once(masters: Masters) -> None:
    masters.lead(claimed(masters.candidate("a"))).close()

    assert masters.lead(claimed(masters.candidate("b"))).epoch == 2


def test_a_leader_whose_process_ended_is_followed_when_it_is_surely_gone(masters: Masters) -> None:
    masters.lead(claimed(masters.candidate("a")))
    second = masters.candidate("b")
    with psycopg.connect(masters.url.replace("+psycopg", ""), autocommit=True) as connection:
        # What the kernel does for a process that dies: its sessions end, and it beats no more.
        connection.execute("UPDATE leader SET epoch = 7")
    assert second.ask()[1] is None

    masters.clock.advance(GONE_NS)
    assert masters.lead(claimed(second)).epoch == 8


def test_a_leader_whose_session_was_ended_says_with_its_next_beat_that_it_lives(masters: Masters) -> None:
    with ExitStack() as alone:
        alone.enter_context(mock.patch("windrow_master.store.leadership.Leadership.keep", lambda *_: None))
        first = claimed(masters.candidate("a"))
        store = masters.lead(first)
    lost: list[str] = []
    assert first.leadership.beat(store.epoch, lost.append)
    with psycopg.connect(masters.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [store.epoch],
        )
    second = masters.candidate("b")
    poll(lambda: not second.ask()[0].is_connected)

    assert first.leadership.beat(store.epoch, lost.append)

    assert second.ask()[0].is_connected
    assert not lost


def test_the_log_is_fenced_before_a_leader_without_session_is_followed(masters: Masters) -> None:
    with ExitStack() as alone:
        alone.enter_context(mock.patch("windrow_master.store.leadership.Leadership.keep", lambda *_: None))
        first = claimed(masters.candidate("a"))
        store = masters.lead(first)
    first.leadership.beat(store.epoch, pytest.fail)
    masters.clock.advance(SURE_NS)

    with pytest.raises(Fenced):
        first.leadership.check()
    store.write_now(note, name="fenced by its row alone")
    first.leadership.beat(store.epoch, pytest.fail)
    first.leadership.check()


def test_a_leader_misses_a_stand_by_that_there_was_and_none_that_there_never_was(masters: Masters) -> None:
    with mock.patch("windrow_master.store.leadership.Leadership.keep", lambda *_: None):
        first = claimed(masters.candidate("a"))
        epoch = masters.lead(first).epoch

    def missed(leads: Claim, epoch: int) -> bool:
        assert leads.leadership.beat(epoch, pytest.fail)
        masters.clock.advance(STANDBY_GONE_NS)
        return bool(list(leads.leadership.conditions()))

    assert not missed(first, epoch)
    second = masters.candidate("b")
    second.ask()
    assert not missed(first, epoch)
    assert not missed(first, epoch), "it waits"
    second.close()
    poll(lambda: missed(first, epoch))


def test_a_stand_by_that_leads_now_misses_the_other(masters: Masters) -> None:
    with mock.patch("windrow_master.store.leadership.Leadership.keep", lambda *_: None):
        first = claimed(masters.candidate("a"))
        store, second = masters.lead(first), masters.candidate("b")
        second.ask()
        first.leadership.beat(store.epoch, pytest.fail)
        second.ask()
        store.close()
        later = claimed(second)
        epoch = masters.lead(later).epoch
    assert later.leadership.beat(epoch, pytest.fail)
    masters.clock.advance(STANDBY_GONE_NS)
    assert [code for code, _, _ in later.leadership.conditions()] == ["master.standby_gone"]


def test_a_leader_that_is_connected_and_silent_is_followed_after_its_lease(masters: Masters) -> None:
    with ExitStack() as stopped:
        # Stopped: its session stays and its thread beats no more.
        stopped.enter_context(mock.patch("windrow_master.store.leadership.Leadership.keep", lambda *_: None))
        first = claimed(masters.candidate("a"))
        store = masters.lead(first)
        second = masters.candidate("b")
        assert second.ask()[1] is None
        first.leadership.check()
        masters.clock.advance(LEASE_NS)
        later = masters.lead(claimed(second))

    assert (store.epoch, later.epoch) == (1, 2)
    with pytest.raises(Fenced):
        first.leadership.check()
    with pytest.raises(Fenced):
        store.write_now(note, name="late")
    assert entries(masters.url) == []


def test_of_two_that_would_take_the_seat_one_does(masters: Masters) -> None:
    first, second = masters.candidate("a"), masters.candidate("b")
    claim = claimed(first)

    assert second.ask()[1] is None
    assert masters.lead(claim).epoch == 1


def test_a_claim_on_a_leader_that_moved_since_is_refused(masters: Masters) -> None:
    claim = claimed(masters.candidate("a"))
    masters.lead()

    with pytest.raises(Conflict):
        masters.lead(claim)


def test_who_was_overtaken_writes_nothing(masters: Masters) -> None:
    first, second = masters.lead(), masters.lead()
    second.write_now(note, name="note")

    with pytest.raises(Fenced):
        first.write_now(note, name="late")
    assert first.problem is not None
    assert entries(masters.url) == [second.epoch]


def test_without_the_check_of_the_epoch_it_would(masters: Masters) -> None:
    """The control: the judge above sees a late write where nothing stops it."""
    first, second = masters.lead(), masters.lead()
    second.write_now(note, name="note")
    asks = TermRepository.is_mine
    with mock.patch.object(TermRepository, "is_mine", lambda self, epoch: asks(self, epoch) or True):
        first.write_now(note, name="late")

    assert entries(masters.url) == [second.epoch, first.epoch]


def test_a_transaction_that_checked_its_epoch_ends_before_the_next_term_begins(masters: Masters) -> None:
    first = masters.lead()
    begun, order = threading.Event(), []

    def slow(uow: UnitOfWork) -> None:
        note(uow)
        begun.set()
        # The next term is asked for while this transaction is open: it is seen to wait for its row.
        poll(lambda: _waiting(masters.url))
        order.append("written")

    def lead() -> None:
        begun.wait(30)
        masters.lead()
        order.append("begun")

    thread = threading.Thread(target=lead)
    thread.start()
    first.write_now(slow, name="slow")
    thread.join()

    assert order == ["written", "begun"]
    assert entries(masters.url) == [first.epoch]


def test_a_leader_stopped_within_a_transaction_holds_nobody_up(masters: Masters) -> None:
    first = masters.lead()
    with first._engines.writer.connect() as connection:
        assert TermRepository(connection).is_mine(first.epoch)
        second = masters.lead()  # the server ends the idle transaction, and with it the lock

        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("UPDATE leader SET holder = 'late'")
        connection.invalidate()
    assert second.epoch == first.epoch + 1


def _stopped_while_sending(session: pgconn.PGconn) -> None:
    """Statements arrived, and the word that it is the server's turn did not (Sync): the server reads on."""
    session.enter_pipeline_mode()
    session.send_query_params(b"SELECT 1", None)
    session.send_flush_request()
    while session.flush():
        continue


def _stopped_while_receiving(session: pgconn.PGconn) -> None:
    """An answer of megabytes is on its way, and nobody reads it: the server writes on."""
    session.send_query(b"SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
    while session.flush():
        continue


@pytest.mark.parametrize("stopped", [_stopped_while_sending, _stopped_while_receiving])
def test_a_leader_stopped_within_a_message_holds_nobody_up(
    masters: Masters, stopped: Callable[[pgconn.PGconn], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow_master.store.leadership.Leadership.keep", lambda *_: None)
    first = masters.lead(claimed(masters.candidate("a")))
    with psycopg.connect(masters.url.replace("+psycopg", ""), application_name=APPLICATION) as session:
        lock = "SELECT epoch FROM leader WHERE epoch = %s FOR KEY SHARE"
        assert session.execute(lock, [first.epoch]).fetchone() == (first.epoch,)
        stopped(session.pgconn)
        time.sleep(IDLE_IN_TRANSACTION_MS / 1_000 + 0.5)  # no patience of the server's runs meanwhile
        assert _holders(masters.url) == 1
        second = masters.candidate("b")
        assert second.ask()[1] is None
        assert _holders(masters.url) == 1, "who only looks ends nobody"
        masters.clock.advance(LEASE_NS)
        assert masters.lead(claimed(second)).epoch == first.epoch + 1
        session.close()


def test_a_connection_that_is_lost_fails_what_was_on_it_and_no_more(masters: Masters) -> None:
    store = masters.lead()
    _cut(masters.url, _backend(store))

    with pytest.raises(StorageFailed):
        store.write_now(note, name="lost")
    store.write_now(note, name="note")
    assert entries(masters.url) == [store.epoch]
    assert store.problem is None


def test_a_connection_that_is_lost_in_a_commit_ends_the_term_because_nobody_knows(masters: Masters) -> None:
    store = masters.lead()
    backend = _backend(store)

    def cut(uow: UnitOfWork) -> None:
        with uow.attempt():  # sent now, so that nothing but the commit is left
            note(uow)
        _cut(masters.url, backend)

    with pytest.raises(StorageFailed):
        store.write_now(cut, name="cut")
    assert store.problem is not None
    with pytest.raises(StorageFailed):
        store.write_now(note, name="late")


def _backend(store: Store) -> int:
    """The server's process that the store writes by."""
    return store.write_now(
        lambda uow: int(uow.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()), name="who"
    )


def _cut(url: str, backend: int) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])


def _holders(url: str) -> int:
    """How many sessions hold the leader's row by a transaction."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks WHERE relation = 'leader'::regclass AND mode = 'RowShareLock' AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchone()
    assert row is not None
    return int(row[0])


def _waiting(url: str) -> bool:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
    return row is not None and row[0] > 0
