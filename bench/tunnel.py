"""`tunnel`: bulk data and round trips from a renter to a port of a workload, through `windrow cluster forward`.

The shipped `windrow up` with its defaults: the command on the renter's side, an Access, the real agent of this host, a
process that sinks, sends and echoes. Beside it a bare TCP proxy in Python (bench/_proxy.py: no TLS, one hop) to the
same port of the same process, in turn. Goal: at least half of its throughput. All of it shares this machine: ours are
three processes with four times TLS where the peer is one without.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench._report import cpu_seconds, last_line, median, percentile, scale, table
from bench.agent import agent_pid
from tests.support.rental import Renter, renting
from tests.support.stack import WINDROW, wait_for

RUNS = 3
BULK_BYTES, BULK_BYTES_MIN = 512 << 20, 32 << 20
ROUND_TRIPS, ROUND_TRIPS_MIN = 2_000, 200
OPENS = 20
PIECE = 256 << 10
PATIENCE_S = 120.0
DETAIL = ("up_mib_s", "down_mib_s", "round_trip_p50_ms", "open_p50_ms", "cpu_s_per_gib")
WORKLOAD = """
import socket, threading
def serve(one):
    with one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        said = one.recv(1)
        if said == b"S":  # sink: answers how much came
            count, room = 0, bytearray(262144)
            while got := one.recv_into(room): count += got
            one.sendall(str(count).encode())
        elif said == b"D":  # send what is asked for
            asked = b""
            while not asked.endswith(b"."): asked += one.recv(1)
            left, piece = int(asked[:-1]), bytes(262144)
            while left > 0:
                one.sendall(piece[:left]); left -= len(piece)
        else:
            while one.recv(1): one.sendall(b"e")
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        connection, _ = server.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""


@dataclass(slots=True)
class Way:
    """One way to the workload, and what was measured over it."""

    name: str
    port: int
    pids: list[int]
    up: list[float]
    down: list[float]
    trips_ms: list[float]
    opens_ms: list[float]
    cpu_s: float = 0.0
    moved: int = 0


def dialled(port: int) -> socket.socket:
    """A connection without Nagle's delay."""
    one = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def up(port: int, size: int) -> float:
    """Seconds from the first byte until the workload has said that all came."""
    with dialled(port) as one:
        one.sendall(b"S")
        piece, left = bytes(PIECE), size
        began = time.monotonic()
        while left > 0:
            one.sendall(piece[:left])
            left -= len(piece)
        one.shutdown(socket.SHUT_WR)
        said = one.makefile("rb").read()
        took = time.monotonic() - began
    if int(said) != size:
        raise RuntimeError(f"{said!r} of {size} bytes came")
    return took


def down(port: int, size: int) -> float:
    """Seconds from asking until all has come."""
    with dialled(port) as one:
        room, count = bytearray(PIECE), 0
        began = time.monotonic()
        one.sendall(b"D" + str(size).encode() + b".")
        while got := one.recv_into(room):
            count += got
        took = time.monotonic() - began
    if count != size:
        raise RuntimeError(f"{count} of {size} bytes came")
    return took


def trips(port: int, count: int) -> list[float]:
    """Milliseconds of each round trip of one byte on one connection."""
    found = []
    with dialled(port) as one:
        one.sendall(b"E")
        for _ in range(count):
            began = time.monotonic()
            one.sendall(b"x")
            one.recv(1)
            found.append((time.monotonic() - began) * 1000)
    return found


def opened(port: int) -> float:
    """Milliseconds from dialling to the first byte back."""
    began = time.monotonic()
    with dialled(port) as one:
        one.sendall(b"Ex")
        one.recv(1)
        return (time.monotonic() - began) * 1000


@contextlib.contextmanager
def started(
    command: list[str], port_in: Callable[[str], int], environment: dict[str, str]
) -> Iterator[tuple[int, int]]:
    """A process that prints where it listens: that port, and its pid."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment) as process:
        try:
            assert process.stdout is not None
            yield port_in(process.stdout.readline()), process.pid
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def measure(ways: list[Way], size: int, count: int) -> None:
    """All of them in turn."""
    for _ in range(RUNS):
        for way in ways:
            before = cpu_seconds(way.pids)
            way.up.append(size / (1 << 20) / up(way.port, size))
            way.down.append(size / (1 << 20) / down(way.port, size))
            way.cpu_s += cpu_seconds(way.pids) - before
            way.moved += 2 * size
            way.trips_ms += trips(way.port, count // RUNS)
    for way in ways:
        way.opens_ms += [opened(way.port) for _ in range(OPENS)]


def figures(way: Way) -> dict[str, float]:
    """Medians of what was measured."""
    values = (
        median(way.up),
        median(way.down),
        percentile(way.trips_ms, 0.5),
        percentile(way.opens_ms, 0.5),
        way.cpu_s / way.moved * (1 << 30),
    )
    return {name: round(value, 4) for name, value in zip(DETAIL, values, strict=True)}


def serving(renter: Renter) -> tuple[str, int]:
    """A cluster that runs the workload, and its port."""
    cluster = renter.create("python3", "-u", "-c", WORKLOAD)
    return cluster["id"], int(wait_for(lambda: renter.log(cluster["id"]).split()[:1])[0])


def main() -> None:
    """Run it and print."""
    size = max(BULK_BYTES_MIN, int(BULK_BYTES * scale()) // PIECE * PIECE)
    count = max(ROUND_TRIPS_MIN, int(ROUND_TRIPS * scale()))
    with renting() as renter:
        cluster_id, port = serving(renter)
        cli = renter.stack.cli
        environment = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"]}
        forward = [WINDROW, "cluster", "forward", cluster_id, str(port), "--json"]
        bare = [sys.executable, "-m", "bench._proxy", "127.0.0.1", str(port)]

        def said(line: str) -> int:
            return int(json.loads(line)["local_address"].rpartition(":")[2])

        with started(forward, said, environment) as ours, started(bare, int, {}) as peers:
            pids = [ours[1], *renter.stack.daemons()["access"], agent_pid(renter.stack)]
            ways = [Way("tunnel", ours[0], pids, [], [], [], []), Way("proxy", peers[0], [peers[1]], [], [], [], [])]
            measure(ways, size, count)
        renter.delete(cluster_id)
    tunnel, proxy = (figures(way) for way in ways)
    sys.stdout.write(f"tunnel: windrow up, windrow cluster forward; {size >> 20} MiB each way, {RUNS} runs in turn\n")
    rows: list[tuple[str, Any]] = [("", "tunnel / bare proxy")]
    rows += [(name, f"{tunnel[name]:,.2f} / {proxy[name]:,.2f}") for name in DETAIL]
    table(rows)
    name = min(("up_mib_s", "down_mib_s"), key=lambda one: tunnel[one] / proxy[one])
    detail: dict[str, Any] = tunnel | {f"proxy_{key}": value for key, value in proxy.items()}
    last_line("tunnel", tunnel[name], "MiB/s", "bare asyncio TCP proxy", tunnel[name] / proxy[name], detail)


if __name__ == "__main__":
    main()
