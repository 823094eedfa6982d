"""The networks that other tests stand on: what is set for a line happens on it, and nothing is left of it."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.forwarder import Line
from tests.support.namespaces import Namespace, namespace, need_networks, switched
from tests.support.slow_link import Lines, lines
from tests.waiting import PATIENCE_S, poll

pytestmark = [pytest.mark.timeout(120)]

PORT = 7000
SO_RCVBUFFORCE = 33
TOLERANCE = 0.98
"""Clocks are read by several processes; a packet sooner than this was not held up as long as it was told."""


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    need_networks()


@pytest.fixture(scope="module")
def pair(needed: None) -> Iterator[tuple[Namespace, Namespace, Lines]]:
    """Two networks, `here` and `there`."""
    with namespace() as here, namespace() as there, lines({"here": here, "there": there}) as made:
        yield here, there, made


@pytest.fixture
def two(pair: tuple[Namespace, Namespace, Lines]) -> Iterator[tuple[Namespace, Namespace, Lines]]:
    """The same with nothing set."""
    yield pair
    pair[2].both("here", "there", Line())


@contextmanager
def _echo(there: Namespace, address: str) -> Iterator[None]:
    """Send every datagram back to where it came from."""
    with there.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, PORT))
        server.settimeout(0.1)
        ended = threading.Event()

        def run() -> None:
            while not ended.is_set():
                try:
                    data, peer = server.recvfrom(2000)
                except TimeoutError:
                    continue
                server.sendto(data, peer)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _client(here: Namespace, address: str) -> socket.socket:
    with here.entered():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.connect((address, PORT))
    made.settimeout(PATIENCE_S)
    return made


def _round_trip_s(client: socket.socket) -> float:
    began = time.monotonic()
    client.send(b"?")
    client.recv(10)
    return time.monotonic() - began


def test_a_delay_holds_for_its_direction_and_from_the_moment_it_is_set(
    two: tuple[Namespace, Namespace, Lines],
) -> None:
    here, there, made = two
    address = made.address("there")
    with _echo(there, address), _client(here, address) as client:
        made.both("here", "there", Line(delay_ms=80))
        assert _round_trip_s(client) >= 0.160 * TOLERANCE
        made.set("there", "here", Line(delay_ms=400))
        assert _round_trip_s(client) >= 0.480 * TOLERANCE
        made.both("here", "there", Line())
        assert min(_round_trip_s(client) for _ in range(20)) < 0.160  # it is the setting that held them up


def test_tcp_feels_the_delay_too(two: tuple[Namespace, Namespace, Lines]) -> None:
    here, there, made = two
    made.both("here", "there", Line(delay_ms=60))
    with there.entered(), socket.create_server((made.address("there"), PORT)), here.entered():
        began = time.monotonic()
        socket.create_connection((made.address("there"), PORT), PATIENCE_S).close()
        assert time.monotonic() - began >= 0.120 * TOLERANCE


def test_loss_is_of_one_direction_drawn_from_the_seed_and_counted(two: tuple[Namespace, Namespace, Lines]) -> None:
    here, there, made = two
    with there.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        server.settimeout(PATIENCE_S)
        server.bind((made.address("there"), PORT))
        with _client(here, made.address("there")) as client:
            made.set("here", "there", Line(loss=0.3))
            before = made.counts("here", "there")
            for number in range(400):
                client.send(number.to_bytes(2, "big"))
                time.sleep(0.0005)  # a device holds 500 packets

            def counted() -> bool:
                seen = made.counts("here", "there")
                return seen["passed"] + seen["lost"] >= 400 + before["passed"] + before["lost"]

            poll(counted)
            seen = made.counts("here", "there")
            assert 60 <= seen["lost"] - before["lost"] <= 180  # 120 are to be expected, with a deviation of 9
            heard = [server.recv(10) for _ in range(seen["passed"] - before["passed"])]
            assert heard == sorted(set(heard))  # in order, each once
            assert made.counts("there", "here")["lost"] == 0
            made.set("here", "there", Line(loss=1.0))
            client.send(b"x")
            poll(lambda: made.counts("here", "there")["lost"] == seen["lost"] + 1)


def test_jitter_varies_and_keeps_the_order(two: tuple[Namespace, Namespace, Lines]) -> None:
    here, there, made = two
    address = made.address("there")
    with _echo(there, address), _client(here, address) as client:
        made.set("here", "there", Line(delay_ms=10, jitter_ms=60))
        assert min(_round_trip_s(client) for _ in range(5)) >= 0.010 * TOLERANCE
        for number in range(50):
            client.send(bytes([number]))
        assert [client.recv(10)[0] for _ in range(50)] == list(range(50))


def test_a_rate_holds_a_transfer_up_and_a_full_queue_refuses(two: tuple[Namespace, Namespace, Lines]) -> None:
    here, there, made = two
    size, kbit_s = 60_000, 400.0
    with there.entered(), socket.create_server((made.address("there"), PORT)) as server:
        made.set("here", "there", Line(kbit_s=kbit_s))
        with here.entered():
            client = socket.create_connection((made.address("there"), PORT), PATIENCE_S)
        with client, server.accept()[0] as taken:
            began = time.monotonic()
            client.sendall(bytes(size))
            client.shutdown(socket.SHUT_WR)
            while taken.recv(65536):
                pass
            assert time.monotonic() - began >= size * 8 / (kbit_s * 1000) * TOLERANCE
    with _client(here, made.address("there")) as client:
        made.set("here", "there", Line(kbit_s=8))
        for _ in range(10):
            client.send(bytes(1000))  # a second each
        poll(lambda: made.counts("here", "there")["refused"] > 0)


def test_rules_drop_one_direction_or_reset_and_count_what_they_met() -> None:
    with switched(2) as ((here, _), (there, address)):  # noqa: SIM117 - one network after the other
        with there.entered(), socket.create_server((address, PORT)) as server, here.entered():
            server.settimeout(PATIENCE_S)
            with socket.create_connection((address, PORT), PATIENCE_S) as client, server.accept()[0] as taken:
                there.forbid(incoming=f"tcp dport {PORT} counter drop")
                client.send(b"unheard")
                taken.send(b"heard")
                client.settimeout(PATIENCE_S)
                assert client.recv(10) == b"heard"
                poll(lambda: there.hits() > 0)
                taken.setblocking(False)
                with pytest.raises(BlockingIOError):
                    taken.recv(10)
                there.forbid(incoming=f"tcp dport {PORT} counter reject with tcp reset")
                with pytest.raises(ConnectionResetError):
                    client.recv(10)  # what was unheard goes again, and is answered so
                there.forbid()
                socket.create_connection((address, PORT), PATIENCE_S).close()


def test_nothing_is_left_and_this_process_stays_where_it_was() -> None:
    before, devices = os.readlink("/proc/self/ns/net"), _devices()
    with namespace() as here, namespace() as there, lines({"here": here, "there": there}) as made:
        process = made._process
        with here.entered():
            assert os.readlink("/proc/thread-self/ns/net") != before
            assert "far" in Path("/proc/thread-self/net/dev").read_text()
    assert process.returncode == 0
    assert os.readlink("/proc/self/ns/net") == before
    assert _devices() <= devices


def _devices() -> set[str]:
    """Those of this machine but for the ends of containers' lines, which come and go meanwhile."""
    names = (line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:])
    return {name for name in names if not name.startswith("veth")}
