"""`tunnel`: bulk data and round trips from a renter to a port of a workload, through `windrow cluster forward`.

The shipped `windrow up` with its defaults: the command on the renter's side, an Access, the real agent of this host, a
process that sinks, sends and echoes. Beside it two bare TCP proxies in Python (bench/_proxy.py: no TLS, one hop) to the
same port of the same process, in turn: one on asyncio's streams, as they are commonly written, and one on its
protocols, the fastest we know. Goal: at least half of a bare proxy's throughput. The ratio is to the first; what it is
to the second is in `ratio_to_protocols`.

All of it shares this machine, where ours are three processes that seal and open, and the peer is one that does neither:
on few cores it is their processor time together that counts. Where each has a core of its own, as on three machines, it
is that of the busiest: `busiest_cpu_s_per_gib`.
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
from dataclasses import dataclass, field
from pathlib import Path
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
PEERS = ("streams", "protocols")
DETAIL = ("up_mib_s", "down_mib_s", "round_trip_p50_ms", "open_p50_ms", "cpu_s_per_gib", "busiest_cpu_s_per_gib")
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
    stages: list[list[int]]
    """The processes of each hop."""
    up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)
    trips_ms: list[float] = field(default_factory=list)
    opens_ms: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    """Of each hop, in all."""
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
            before = list(map(cpu_seconds, way.stages))
            way.up.append(size / (1 << 20) / up(way.port, size))
            way.down.append(size / (1 << 20) / down(way.port, size))
            used = [cpu_seconds(pids) - start for pids, start in zip(way.stages, before, strict=True)]
            way.cpu_s = [sum(both) for both in zip(way.cpu_s or [0.0] * len(used), used, strict=True)]
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
        sum(way.cpu_s) / way.moved * (1 << 30),
        max(way.cpu_s) / way.moved * (1 << 30),
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
        bare = [[sys.executable, "-m", "bench._proxy", kind, "127.0.0.1", str(port)] for kind in PEERS]

        def said(line: str) -> int:
            return int(json.loads(line)["local_address"].rpartition(":")[2])

        with contextlib.ExitStack() as stack:
            ours = stack.enter_context(started(forward, said, environment))
            peers = [stack.enter_context(started(command, int, {})) for command in bare]
            agent = agent_pid(renter.stack)
            children = Path(f"/proc/{agent}/task/{agent}/children")
            wait_for(lambda: not children.read_text())  # its own benchmarks of the host
            stages = [[ours[1]], renter.stack.daemons()["access"], [agent]]
            ways = [Way("tunnel", ours[0], stages)]
            ways += [Way(kind, at, [[pid]]) for kind, (at, pid) in zip(PEERS, peers, strict=True)]
            measure(ways, size, count)
        renter.delete(cluster_id)
    tell(ways, size)


def tell(ways: list[Way], size: int) -> None:
    """The table and the last line."""
    found = {way.name: figures(way) for way in ways}
    sys.stdout.write(f"tunnel: windrow up, windrow cluster forward; {size >> 20} MiB each way, {RUNS} runs in turn\n")
    rows: list[tuple[str, Any]] = [("", "".join(f"{name:>12}" for name in found))]
    rows += [(name, "".join(f"{each[name]:>12,.2f}" for each in found.values())) for name in DETAIL]
    table(rows)
    tunnel = found["tunnel"]
    ratios = {kind: min(tunnel[name] / found[kind][name] for name in ("up_mib_s", "down_mib_s")) for kind in PEERS}
    detail: dict[str, Any] = tunnel | {f"ratio_to_{kind}": round(ratio, 4) for kind, ratio in ratios.items()}
    detail |= {f"{kind}_{name}": value for kind in PEERS for name, value in found[kind].items()}
    value = min(tunnel["up_mib_s"], tunnel["down_mib_s"])
    last_line("tunnel", value, "MiB/s", "bare asyncio streams TCP proxy", ratios["streams"], detail)


if __name__ == "__main__":
    main()
