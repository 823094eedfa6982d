"""`function`: an edited line to its result on a rented host, and what a warm call costs beyond the round trip.

The shipped `windrow up` with its defaults in one network, the renter in another; a process of ours moves the packets
between them and holds each for 20 ms (tests/support/slow_link.py; needs root). The renter's side is a package of 200
files. Edits are of one line each, from the file's save to the result: by a program that goes on (a notebook, say), and
by a program that is started anew for each. All of it shares this machine.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench._report import last_line, median, percentile, scale, table
from tests.support.forwarder import Line
from tests.support.namespaces import Namespace, namespace
from tests.support.rental import renting
from tests.support.slow_link import lines

ONE_WAY_MS = 20.0
FILES = 200
EDITS, EDITS_MIN = 50, 5
PROGRAMS, PROGRAMS_MIN = 20, 3
CALLS, CALLS_MIN = 200, 20
GOAL_EDIT_S, GOAL_CALL_MS = 1.0, 20.0
PATIENCE_S = 120.0
PROGRAM = """
import sys, time, json
import windrow as rh
from big.last import result, nothing

def main(words):
    began = time.monotonic()
    box = rh.cluster(name="bench", instance_type="CPU:1").up_if_not()
    up = time.monotonic() - began
    function = rh.function(result).to(box)
    if words[0] == "once":
        print(function(), flush=True)
        return
    if words[0] == "down":
        box.down()
        return
    from pathlib import Path
    path, edits, calls = Path(words[1]), int(words[2]), int(words[3])
    began = time.monotonic()
    function()
    cold = time.monotonic() - began
    took = []
    for number in range(edits):
        path.write_text(f"VALUE = {number}\\n")
        began = time.monotonic()
        found = function()
        took.append(time.monotonic() - began)
        assert found == number, (found, number)
    bare = rh.function(nothing).to(box)
    pool = bare.distribute("pool", 1)
    warm = {}
    for name, one in (("call_ms", bare), ("pool_ms", pool)):
        one()
        warm[name] = []
        for _ in range(calls):
            began = time.monotonic()
            one()
            warm[name].append((time.monotonic() - began) * 1000)
    print(json.dumps({"up_s": up, "cold_s": cold, "edits_s": took, **warm}), flush=True)

if __name__ == "__main__":
    main(sys.argv[1:])
"""


def package(folder: Path) -> Path:
    """200 modules that are all imported, most of them import another; returns the one whose line is edited."""
    big = folder / "big"
    big.mkdir()
    (big / "__init__.py").write_text("")
    body = "".join(f"def work_{n}(a, b={n}):\n    return [a * b + {n} for _ in range(a)]\n\n\n" for n in range(12))
    for number in range(FILES - 3):
        before = f"from big import {f'm{number - 1:03d}' if number % 10 else 'edited'}\n"
        (big / f"m{number:03d}.py").write_text(f"{before}\n\n{body}VALUE = {number}\n")
    edited = big / "edited.py"
    edited.write_text("VALUE = -1\n")
    every = ", ".join(["edited", *(f"m{number:03d}" for number in range(FILES - 3))])
    functions = "def result():\n    return edited.VALUE\n\n\ndef nothing():\n    pass\n"
    (big / "last.py").write_text(f"from big import {every}\n\n\n{functions}")
    (folder / "program.py").write_text(PROGRAM)
    return edited


@contextlib.contextmanager
def networks() -> Iterator[tuple[Namespace, Namespace, str]]:
    """The renter's, the market's with its address, and 40 ms there and back between them."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(namespace()) for name in ("home", "market")}
        joined = stack.enter_context(lines(made))
        joined.both("home", "market", Line(delay_ms=ONE_WAY_MS))
        yield made["home"], made["market"], joined.address("market")


def round_trips(home: Namespace, market: Namespace, address: str, count: int) -> list[float]:
    """Milliseconds of one byte there and back over a bare connection."""
    with market.entered():
        server = socket.create_server((address, 0))

    def echo() -> None:
        one, _ = server.accept()
        with one:
            while data := one.recv(1):
                one.sendall(data)

    with server:
        threading.Thread(target=echo, daemon=True).start()
        with home.entered(), socket.create_connection(server.getsockname(), PATIENCE_S) as one:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found = []
            for _ in range(count):
                began = time.monotonic()
                one.sendall(b"x")
                one.recv(1)
                found.append((time.monotonic() - began) * 1000)
    return found


class Renter:
    """The program of the renter, in the network of the renter."""

    def __init__(self, home: Namespace, folder: Path, environment: dict[str, str]) -> None:
        self._home, self._folder = home, folder
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("WINDROW_")} | environment

    def run(self, *words: str) -> str:
        """Run it to its end; returns the last line it printed."""
        with self._home.entered():
            done = subprocess.run(
                [sys.executable, "program.py", *words], cwd=self._folder, env=self._environment, text=True,
                capture_output=True, timeout=PATIENCE_S * 5, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def programs(renter: Renter, edited: Path, count: int) -> list[float]:
    """Seconds from each save to the end of a program that was started for it and has printed the result."""
    found = []
    for number in range(count):
        edited.write_text(f"VALUE = {10_000 + number}\n")
        began = time.monotonic()
        said = renter.run("once")
        found.append(time.monotonic() - began)
        if said != str(10_000 + number):
            raise RuntimeError(f"{said!r} is not the result of the edit {number}")
    return found


def measured(folder: Path) -> dict[str, Any]:
    """All of it."""
    edits, count = max(EDITS_MIN, int(EDITS * scale())), max(PROGRAMS_MIN, int(PROGRAMS * scale()))
    calls = max(CALLS_MIN, int(CALLS * scale()))
    source = folder / "source"
    source.mkdir()
    edited = package(source)
    with networks() as (home, market, address):
        bare = round_trips(home, market, address, calls)
        with market.entered(), renting("--listen", "0.0.0.0", "--public", address, folder=folder) as found:
            cli = found.stack.cli
            environment = {
                "WINDROW_URL": re.sub("//[^:/]+", f"//{address}", cli["https_url"]),
                "WINDROW_TOKEN": cli["token"],
                "WINDROW_CA_FILE": cli["ca_pem"],
                "XDG_STATE_HOME": str(folder / "state"),
            }
            renter = Renter(home, source, environment)
            steady: dict[str, Any] = json.loads(renter.run("steady", str(edited), str(edits), str(calls)))
            anew = programs(renter, edited, count)
            renter.run("down")
    return {**steady, "bare_ms": bare, "anew_s": anew}


def main() -> None:
    """Run it and print."""
    with tempfile.TemporaryDirectory(prefix="windrow-bench-function-") as name:
        found = measured(Path(name))
    bare, call = median(found["bare_ms"]), median(found["call_ms"])
    detail = {
        "edit_p50_s": median(found["edits_s"]),
        "edit_p95_s": percentile(found["edits_s"], 0.95),
        "edit_new_program_p50_s": median(found["anew_s"]),
        "edit_new_program_p95_s": percentile(found["anew_s"], 0.95),
        "round_trip_p50_ms": bare,
        "call_p50_ms": call,
        "call_overhead_p50_ms": call - bare,
        "pool_overhead_p50_ms": median(found["pool_ms"]) - bare,
        "create_s": found["up_s"],
        "first_call_s": found["cold_s"],
        "files": FILES,
        "edits": len(found["edits_s"]),
        "new_programs": len(found["anew_s"]),
    }
    detail = {name: round(value, 4) for name, value in detail.items()}
    print("windrow up --listen 0.0.0.0 --public ADDRESS, its defaults otherwise")
    table(list(detail.items()))
    table([("goal: edit_p95_s below", GOAL_EDIT_S), ("goal: call_overhead_p50_ms at most", GOAL_CALL_MS)])
    value = detail["edit_p95_s"]
    last_line("function", value, "s", "the goal of 1 s from save to result", value / GOAL_EDIT_S, detail)


if __name__ == "__main__":
    main()
