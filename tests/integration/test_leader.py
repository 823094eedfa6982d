"""Several Masters on one PostgreSQL: one leads, one waits; a leader that was killed or stopped writes no more."""

import json
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from tests.support import truth
from tests.support.killing import Killer, command_flaws, online, watching
from tests.support.postgres import Postgres, scratch
from tests.support.rental import Renter
from tests.support.stack import Stack, stack, wait_for
from windrow_up.free_ports import is_free

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.long]

IS_LONG = bool(os.environ.get("CHAOS"))
KILLS = 100 if IS_LONG else 1
MASTERS = 3 if IS_LONG else 2
SEED = int(os.environ.get("SEED") or 1)
SIMULATED = 20 if IS_LONG else 4
TAKEOVER_S = 15.0
"""The promised limit; a short run on a busy machine is only asked to end."""
ENDED = ("Deleted", "Finished", "Failed")
LOOK_S = 5
"""For one of many looks: a leader that was stopped takes the call and never answers."""
ASK_S = 30
"""For one request of the load: what is given up early is only asked again of a Master that is slow already."""


@pytest.fixture(scope="module")
def pair_url(postgres: Postgres, postgres_template: str) -> Iterator[str]:
    """The database of the pair."""
    with scratch(postgres, postgres_template) as url:
        yield url


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, pair_url: str) -> Iterator[Stack]:
    """A market with two Masters on one PostgreSQL; many kills need a third, since one that died often starts late."""
    flags = ("--masters", str(MASTERS), "--simulate", str(SIMULATED))
    folder = tmp_path_factory.mktemp("pair")
    with stack(*flags, folder=folder, environment={"WINDROW_DATABASE_URL": pair_url}) as running:
        truth.is_kept_in(running.data_dir, pair_url)
        # Only then is it all up: `windrow up` gives up where its Master dies while it is still starting the rest.
        renter = Renter(running)
        wait_for(lambda: len(online(renter)) == SIMULATED + 1)
        yield running


@pytest.mark.timeout(600)
@pytest.mark.proves("windrow up on PostgreSQL: a rental from its request to its receipt")
def test_a_rental_on_postgresql(pair: Stack) -> None:
    renter = Renter(pair)
    cluster = renter.create("sh", "-c", "echo hello from PostgreSQL; sleep 600")
    wait_for(lambda: b"hello from PostgreSQL" in renter.log(cluster["id"]))
    receipt = renter.delete(cluster["id"])

    assert receipt["running_seconds"] is not None
    assert renter.flaws(cluster["id"]) == []
    assert not (pair.data_dir / "master.sqlite3").exists()


@pytest.mark.timeout(600)
@pytest.mark.proves("a Master that waits says where the leader is, and leads when that one has died")
def test_the_second_master_waits_and_says_where_the_leader_is(pair: Stack) -> None:
    first = wait_for(lambda: leader(pair))
    others = [ports for ports in pair.cli["masters"][:MASTERS] if ports["http"] != first.http]
    answer = wait_for(lambda: _refusal(pair, first))

    assert answer["status"] == 503
    assert answer["leader"] == first.address
    assert int(answer["retry_after"]) > 0
    assert all(is_free("127.0.0.1", other["trunk"]) for other in others)

    with Killer(Renter(pair)).held_down():
        os.kill(first.pid, signal.SIGKILL)
        second = wait_for(lambda: (now := leader(pair)) and now.epoch > first.epoch and now)
    assert second.http in {other["http"] for other in others}
    assert second.epoch == first.epoch + 1
    wait_for(lambda: (pair.data_dir / "log" / f"{second.epoch:012d}").is_dir())


@pytest.mark.timeout(600)
@pytest.mark.proves("a leader that was stopped and wakes after another took over writes nothing")
def test_a_stopped_leader_that_wakes_writes_nothing(pair: Stack, pair_url: str) -> None:
    with busy_leader(pair) as first:
        os.kill(first.pid, signal.SIGSTOP)
        second = wait_for(lambda: (now := leader(pair)) and now.epoch > first.epoch and now)
        # What its clients asked meanwhile waits in its sockets: it wakes with work to do.
        before = _numbers(pair_url, first.epoch), _log_bytes(pair, first.epoch)
        os.kill(first.pid, signal.SIGCONT)
        wait_for(lambda: not _is_process(first.pid))
    after = _numbers(pair_url, first.epoch), _log_bytes(pair, first.epoch)

    assert before == after
    newest_old, oldest_new = _order(pair_url, second.epoch)
    assert newest_old < oldest_new
    assert truth.ledger_flaws(pair.data_dir) == []


@pytest.mark.timeout(3600 if IS_LONG else 600)
@pytest.mark.proves("the leader is killed under load: no acknowledged sample is lost, nothing is done twice")
@pytest.mark.long
def test_the_leader_is_killed_under_load(pair: Stack) -> None:
    chance = random.Random(SEED)
    renter = Renter(pair)
    folders = [pair.data_dir / "agent", *(pair.data_dir / "simulated" / f"{n:04d}" for n in range(SIMULATED))]
    wait_for(lambda: all(truth.produced(folder).keys for folder in folders))
    spooled: set[truth.Key] = set()
    took: list[float] = []
    with watching() as seen, Renting(renter, seen.markers) as renting:
        for number in range(KILLS):
            before = wait_for(lambda: leader(pair))
            renting.wait_for_more()
            wait_for(lambda before=before: _refusal(pair, before))  # another waits, so that there is whom to hand to
            time.sleep(chance.uniform(0.0, 1.0))  # the moment itself is what is tried
            began = time.monotonic()
            os.kill(before.pid, signal.SIGKILL)
            wait_for(lambda before=before: leader(pair).epoch > before.epoch)
            took.append(time.monotonic() - began)
            if number % 10 == 0:
                print(f"kill {number + 1} of {KILLS}: {took[-1]:.1f} s; rentals {len(renting.clusters)}", flush=True)
                spooled |= {key for folder in folders for key in truth.produced(folder).keys}
    spooled |= {key for folder in folders for key in truth.produced(folder).keys}
    said = f"seed {SEED}, takeovers {sorted(round(one, 1) for one in took)}"
    print(f"{KILLS} kills; rentals {len(renting.clusters)}; samples' batches {len(spooled)}; {said}")

    wait_for(lambda: spooled <= set(truth.stored(pair.data_dir)), pause_s=0.2)
    assert [key for key, times in truth.stored(pair.data_dir).items() if times != 1] == [], said
    assert all(len(processes) <= 1 for processes in seen.processes.values()), said
    assert renter.flaws(*renting.clusters) == [], said
    assert command_flaws(pair.data_dir, *renting.clusters) == [], said
    assert _audit_is_whole(renter), said
    assert not IS_LONG or max(took) <= TAKEOVER_S, said


# --- who leads -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leader:
    """The Master that answers as the leader."""

    pid: int
    epoch: int
    http: int
    address: str
    token: str


def leader(running: Stack) -> Leader:
    """Returns the present leader; raises while nobody does."""
    record = running.cli
    try:
        with urllib.request.urlopen(f"{record['url']}/healthz", timeout=LOOK_S) as answer:
            epoch = int(json.load(answer)["epoch"])
    except urllib.error.HTTPError as error:
        error.close()
        raise
    http = int(record["url"].rpartition(":")[2])
    return Leader(int(record["pids"]["master"]), epoch, http, record["https_url"], record["token"])


def _refusal(running: Stack, now: Leader) -> dict[str, Any] | None:
    """Returns the answer of a Master that waits; None while none names the leader of now."""
    others = [ports["http"] for ports in running.cli["masters"] if ports["http"] != now.http]
    for http in others:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{http}/api/v1/hosts", timeout=LOOK_S).close()
        except urllib.error.HTTPError as error:
            with error:
                found: dict[str, Any] = json.load(error)
                if found.get("leader") == now.address:
                    return found | {"retry_after": error.headers["Retry-After"]}
        except OSError:
            continue  # it is starting
    return None


def _log_bytes(running: Stack, epoch: int) -> int:
    """Bytes of telemetry in the log of one term."""
    return sum(path.stat().st_size for path in (running.data_dir / "log" / f"{epoch:012d}").iterdir())


def _is_process(pid: int) -> bool:
    return any(one.pid == pid for one in truth.processes())


# --- load ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Load:
    """Requests that each write something, sent to one Master however it is."""

    asked: int = 0
    done: int = 0
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def loaded(running: Stack, first: Leader) -> Iterator[Load]:
    """Clients ask this very Master for join tokens all the time: what they send while it is stopped waits there."""
    load = Load()

    def ask() -> None:
        while not load.ended.is_set():
            request = urllib.request.Request(
                f"http://127.0.0.1:{first.http}/api/v1/join-tokens",
                data=b'{"role": "host"}',
                headers={
                    "Authorization": f"Bearer {first.token}",
                    "Content-Type": "application/json",
                    "Idempotency-Key": os.urandom(8).hex(),
                },
            )
            load.asked += 1
            try:
                urllib.request.urlopen(request, timeout=ASK_S).close()
                load.done += 1
            except urllib.error.HTTPError as error:
                error.close()
            except OSError:
                load.ended.wait(0.05)

    threads = [threading.Thread(target=ask, name="asking") for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.ended.set()
        for thread in threads:
            thread.join()


@contextmanager
def busy_leader(running: Stack) -> Iterator[Leader]:
    """The leader under load that it answers; while the machine stands still, the first one may lose its lease."""
    while True:
        first: Leader = wait_for(lambda: leader(running))
        with loaded(running, first) as load:
            wait_for(lambda first=first, load=load: load.done >= 20 or leader(running).epoch > first.epoch)
            if load.done >= 20:
                yield first
                return


class Renting:
    """Rents and deletes all the time, from a thread, through whoever leads."""

    def __init__(self, renter: Renter, markers: set[str]) -> None:
        self.clusters: list[str] = []
        self._renter, self._markers = renter, markers
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="renting")

    def __enter__(self) -> "Renting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self._failure is None, self._failure

    def wait_for_more(self) -> None:
        """Until another rental has begun."""
        count = len(self.clusters)
        wait_for(lambda: len(self.clusters) > count or self._failure)

    def _run(self) -> None:
        try:
            number = 0
            while not self._ended.is_set():
                number += 1
                self._rent(f"led-{os.getpid()}-{number}")
        except Exception as error:  # told by the thread that judges
            self._failure = error

    def _rent(self, marker: str) -> None:
        self._markers.add(marker)
        key = os.urandom(8).hex()
        body = {"kind": "box", "argv": ["sh", "-c", "sleep 600", marker]}

        def create() -> Any:
            with self._renter.stack.client() as api:
                return api.request("POST", "/clusters", body=body, key=key)["cluster"]

        cluster = wait_for(create)
        self.clusters.append(str(cluster["id"]))
        self._renter.phase(cluster["id"], "Running", *ENDED)
        wait_for(lambda: self._renter.ask("DELETE", f"/clusters/{cluster['id']}") or True)
        self._renter.phase(cluster["id"], *ENDED)
        self._renter.receipt(cluster["id"])


# --- what the database says ------------------------------------------------------------------------------------------


def _numbers(url: str, epoch: int) -> tuple[Any, ...]:
    """All that a term wrote, as far as rows say whose they are."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        audit = connection.execute("SELECT count(*), max(number) FROM audit WHERE epoch = %s", [epoch]).fetchone()
        answers = connection.execute("SELECT count(*) FROM idempotency WHERE epoch = %s", [epoch]).fetchone()
    assert audit is not None
    assert answers is not None
    return (*audit, *answers)


def _order(url: str, epoch: int) -> tuple[int, int]:
    """The last entry of the terms before this one, and its first."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(
            "SELECT max(number) FILTER (WHERE epoch < %s), min(number) FILTER (WHERE epoch >= %s) FROM audit",
            [epoch, epoch],
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _audit_is_whole(renter: Renter) -> bool:
    """Every entry chained to the one before it, over all terms."""
    from windrow_master.store.model import CHAIN_START, AuditEntry

    previous = CHAIN_START
    for row in truth.rows(renter.stack.data_dir, "SELECT * FROM audit ORDER BY number"):
        entry = AuditEntry(**row)
        if entry.link(previous) != bytes(entry.chain):
            return False
        previous = bytes(entry.chain)
    return True
