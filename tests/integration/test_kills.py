"""SIGKILL and SIGSTOP to each process of a market while work runs, and death at named points: what was acknowledged,
signed and deleted holds."""

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.services import all_required, found, need
from tests.support import truth
from tests.support.killing import (
    SCRIPT,
    Killer,
    Outages,
    Seen,
    command_flaws,
    have_left,
    online,
    remains,
    telemetry_flaws,
    watching,
)
from tests.support.named_points import POINTS, Armoury
from tests.support.rental import Renter, local_image, renting
from tests.support.stack import stack, wait_for
from tests.support.wrapped_up import COMMAND
from windrow_proto.samples import decode_batch

pytestmark = [pytest.mark.slow, pytest.mark.chaos]

IS_LONG = bool(os.environ.get("CHAOS"))
KILLS = int(os.environ.get("KILLS") or (300 if IS_LONG else 4))
OVERLAPPING = 0.25
"""Of the kills: the next comes before anything serves again."""
SEED = int(os.environ.get("SEED") or 1)
MOVED_S = 10.0
"""The promised limit; a short run on a busy machine is only asked to end."""
SIMULATED = 200 if IS_LONG else 20
STOPPED_S_MAX = 8.0 if IS_LONG else 2.0
"""Shorter than the silence after which a host is Suspect, and long enough for its streams to be given up."""
REACHED_S = 12.0
"""For work that is going on to come to a named point: receipts, and so charges, are ten seconds apart. Which were not
come to is said at the end."""
MASTERS = 3
"""One leads; where the one that waited was killed before the next had loaded all, a third takes over."""


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """A container image made here; empty, so that only processes are rented, where there is no container daemon."""
    if not all_required() and not (found()["docker"].version and found()["busybox"].version):
        yield ""
        return
    need("docker")
    need("busybox")
    with local_image(tmp_path / "image") as name:
        yield name


@pytest.mark.docker
@pytest.mark.timeout(600)
@pytest.mark.proves("agent, Master and Access are killed during a rental: it is deleted, billed and stored as signed")
@pytest.mark.long
def test_a_rental_outlives_the_death_of_each_daemon_and_ends_clean(tmp_path: Path, image: str) -> None:
    with watching() as seen, stack(folder=tmp_path) as running:
        renter = Renter(running)
        killer = Killer(renter)
        host_id = renter.online()["id"]
        # Only the agent knows a process from a container: in short the others' deaths are tried on one of them.
        if image:
            _outlives(killer, seen, f"process-{host_id}", ("agent", "master", "access") if IS_LONG else ("agent",))
        marker = f"last-{host_id}"
        cluster_id, receipt = _outlives(killer, seen, marker, ("agent", "master", "access"), image)

        # The deleted stays deleted whoever starts anew, and its receipt stays as it was.
        for kind in ("agent", "master"):
            killer.kill_and_wait(kind)
        assert remains(renter, host_id, cluster_id) == []
        assert len(seen.processes[marker]) == 1
        assert renter.receipt(cluster_id)["running_seconds"] == receipt["running_seconds"]
        batches = truth.produced(running.data_dir / "agent")
        assert telemetry_flaws(running.data_dir, running.data_dir / "agent") == []

    assert truth.ledger_flaws(running.data_dir) == []
    logged = _times_in_log(running.data_dir, host_id)
    assert logged
    assert logged <= _times_in_history(running.data_dir, host_id)
    assert batches.keys <= set(truth.stored(running.data_dir))


def _outlives(
    killer: Killer, seen: Seen, marker: str, kinds: Sequence[str], image: str = ""
) -> tuple[str, dict[str, Any]]:
    """One rental during which these daemons die: its cluster, deleted, and its last receipt."""
    renter, running = killer.renter, killer.stack
    host_id = renter.host()["id"]
    wait_for(lambda: all(slot["state"] == "free" for slot in renter.host()["slots"]))
    seen.markers.add(marker)
    cluster = renter.create("sh", "-c", SCRIPT, marker, **({"image": image} if image else {}))
    wait_for(lambda: b"tick 3" in renter.log(cluster["id"]))

    for kind in kinds:
        killer.kill_and_wait(kind)
        assert len(truth.workload_processes(marker)) == 1
    log = wait_for(lambda: renter.log(cluster["id"]))  # as soon as the host is within reach again
    receipt = renter.delete(cluster["id"])

    wait_for(lambda: not remains(renter, host_id, cluster["id"]))
    assert truth.workload_processes(marker) == []
    assert _containers(host_id) == []
    assert log.count(b"begin") == 1
    assert len(seen.processes[marker]) == 1
    assert renter.flaws(cluster["id"]) == []
    assert command_flaws(running.data_dir, cluster["id"]) == []
    assert telemetry_flaws(running.data_dir, running.data_dir / "agent") == []
    return str(cluster["id"]), receipt


@pytest.mark.timeout(7200 if IS_LONG else 600)
@pytest.mark.proves(
    "daemons are killed and stopped at random moments of many rentals, and killed at named points: nothing runs twice,"
    " is lost or billed unsigned"
)
@pytest.mark.long
def test_kills_at_random_moments_break_no_promise(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    points = Armoury(tmp_path / "points")
    more: dict[str, Any] = {"environment": points.environment, "command": COMMAND}
    with watching() as seen, stack("--masters", str(MASTERS), folder=tmp_path, **more) as running:
        renter = Renter(running)
        killer = Killer(renter, points)
        host_id = renter.online()["id"]
        clusters: list[str] = []
        outages = Outages()
        blows = _Blows(killer, chance, outages)
        while len(killer.killed) < KILLS:
            marker = f"round-{len(clusters)}-{host_id}"
            seen.markers.add(marker)
            clusters.append(_round(renter, blows, marker))
            assert len(seen.processes.get(marker, ())) <= 1, (SEED, len(clusters), killer.killed)
            assert renter.flaws(clusters[-1]) == [], (SEED, len(clusters), killer.killed)
        wait_for(lambda: not remains(renter, host_id, *clusters))
        said = (SEED, killer.killed)
        print(f"{len(killer.killed)} blows, {len(clusters)} rentals; serving again after: {outages}")
        print(f"named points not come to in {REACHED_S:.0f} s: {dict(blows.missed)}")

        assert all(len(processes) <= 1 for processes in seen.processes.values()), said
        assert all(truth.workload_processes(marker) == [] for marker in seen.markers), said
        assert renter.flaws(*clusters) == [], said
        assert command_flaws(running.data_dir, *clusters) == [], said
        assert telemetry_flaws(running.data_dir, running.data_dir / "agent") == [], said


class _Blows:
    """The blows that daemons take, drawn from a deck so that a long run has all of them: SIGKILL and SIGSTOP of each
    kind, and, as often as both together, death at each named point."""

    def __init__(self, killer: Killer, chance: random.Random, outages: Outages) -> None:
        self.chance, self.missed = chance, Counter[str]()
        self._killer, self._outages = killer, outages
        self._deck: list[tuple[str, str]] = []
        self._next = "", ""

    def prepare(self) -> None:
        """Draw the next one. A named point is armed now, so that what the renter asks for next may come to it."""
        if not self._deck:
            self._deck = [(manner, kind) for manner in ("kill", "stop") for kind in ("agent", "master", "access")] * 3
            self._deck += [("point", name) for name in POINTS]
            self.chance.shuffle(self._deck)
        self._next = manner, what = self._deck.pop()
        if manner == "point":
            self._killer.points.arm(what)

    def strike(self, host_id: str) -> None:
        """The one that was drawn, at a moment that chance says; mostly waits until all is served again."""
        manner, what = self._next
        if manner == "point":
            if not self._killer.has_died_at(what, REACHED_S):
                self.missed[what] += 1
                return
        else:
            time.sleep(self.chance.uniform(0.0, 2.5))  # the moment itself is what is tried
            if manner == "stop":
                self._killer.stop(what, self.chance.uniform(0.1, STOPPED_S_MAX))
            else:
                self._killer.kill(what)
        if self.chance.random() > OVERLAPPING:
            self._outages.add(f"{what} {manner}", self._killer.serving_again_s(host_id))

    def well(self) -> str:
        """The id of the host, once all daemons are there."""
        return str(self._killer.well()["id"])


def _round(renter: Renter, blows: _Blows, marker: str) -> str:
    """One rental with one to three blows at random moments of it, before and after its deletion; ends when it did."""
    host_id = blows.well()
    wait_for(lambda: all(slot["state"] == "free" for slot in renter.host()["slots"]))
    count = blows.chance.randint(1, 3)
    blows.prepare()
    cluster_id = renter.create_once("sh", "-c", SCRIPT, marker)
    delete_after = blows.chance.randint(0, count)
    for number in range(count):
        if number == delete_after:
            wait_for(lambda: renter.ask("DELETE", f"/clusters/{cluster_id}") or True)
        blows.strike(host_id)
        if number < count - 1:
            blows.prepare()
    renter.delete(cluster_id)
    return cluster_id


@pytest.mark.skipif(not IS_LONG, reason="test_access_death.py kills one over real networks; `make chaos` runs it")
@pytest.mark.timeout(600)
@pytest.mark.proves(
    "an Access that is killed: its agents are back elsewhere, no acknowledged batch is lost", by="make chaos"
)
def test_the_agents_of_a_killed_access_move_and_lose_no_acknowledged_batch() -> None:
    with stack("--simulate", str(SIMULATED)) as running:
        renter = Renter(running)
        killer = Killer(renter)
        folders = [running.data_dir / "simulated" / f"{number:04d}" for number in range(SIMULATED)]
        hosts = wait_for(lambda: (all_ := online(renter)) and len(all_) == SIMULATED + 1 and all_)
        wait_for(lambda: all(truth.produced(folder).keys for folder in folders))
        victim = max(killer.access_pids(), key=lambda one: sum(host["access_id"] == one for host in hosts))
        moving = {host["id"]: host["last_seen_at"] for host in hosts if host["access_id"] == victim}
        assert moving

        began = time.monotonic()
        with killer.held_down():
            os.kill(killer.access_pids()[victim], signal.SIGKILL)
            wait_for(lambda: have_left(renter, moving, victim), pause_s=0.2)
        took_s = time.monotonic() - began
        print(f"{len(moving)} of {len(hosts)} agents moved in {took_s:.1f} s")

        assert not IS_LONG or took_s < MOVED_S
        assert telemetry_flaws(running.data_dir, running.data_dir / "agent", *folders) == []


def _containers(host_id: str) -> list[str]:
    return truth.containers(host_id) if found()["docker"].version else []


def _times_in_log(data_dir: Path, host_id: str) -> set[int]:
    """The instants, in milliseconds, of every sample of a host in the Master's log."""
    batches = [
        decode_batch(one.body)
        for one in truth.log_records(data_dir)
        if one.key[0] == host_id and one.kind == "KIND_TELEMETRY"
    ]
    return {batch.start_wall_ns // 10**6 + at for batch in batches for at in batch.at_ms}


def _times_in_history(data_dir: Path, host_id: str) -> set[int]:
    """The same in the files of history, of which a Master that was killed may leave several."""
    query = "SELECT DISTINCT at_ms FROM raw JOIN device ON raw.device = device.number WHERE host = ?"
    found: set[int] = set()
    for path in (data_dir / "history").glob("*.duckdb"):
        with duckdb.connect(str(path), read_only=True) as history:
            found |= {int(row[0]) for row in history.execute(query, [host_id]).fetchall()}
    return found


@pytest.mark.timeout(600)
@pytest.mark.long
def test_a_stranger_on_a_port_of_the_master_stops_nothing_and_is_told_no_token() -> None:
    with renting() as renter:
        for name in ("http", "trunk"):
            with _Stranger() as stranger:
                _taken(renter, stranger, name)


def _taken(renter: Renter, stranger: "_Stranger", name: str) -> None:
    """One port of the Master is somebody else's after a kill."""
    killer, running = Killer(renter), renter.stack
    seen_at = renter.online()["last_seen_at"]
    before = running.cli["ports"]
    with killer.held_down():
        killer.kill("master")
        wait_for(lambda: stranger.take(before[name]))

    wait_for(lambda: running.cli["ports"][name] != before[name])
    killer.well(seen_at)
    cluster = renter.create("true", until="")
    renter.exited(cluster["id"])

    assert renter.flaws(renter.delete(cluster["id"])["cluster_id"]) == []
    assert running.process.poll() is None
    assert not any(running.cli["token"].encode() in heard for heard in stranger.heard)


class _Stranger:
    """Somebody else's server; remembers who spoke to it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket: socket.socket | None = None

    def __enter__(self) -> "_Stranger":
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def take(self, port: int) -> bool:
        """Listen there, and answer nobody."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError:
            listening.close()
            raise
        listening.listen()
        self._socket = listening
        threading.Thread(target=self._serve, name="stranger", daemon=True).start()
        return True

    def _serve(self) -> None:
        assert self._socket is not None
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                self.heard.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
