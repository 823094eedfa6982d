"""`command`: a command issued to its result committed, through the shipped Master and Access to hosts that do nothing.

Goal: p50 at most 3 times a bare gRPC round trip over the same two hops; 1,000 commands a second. Commands are issued
from inside a Master with the shipped settings (bench/_issuer.py), since an HTTP call a command would measure HTTP; what
a caller of the API sees is told beside. The hosts are the load generator's: no journal, the result at once.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import _disk, _hops
from bench._load import Ordered, join_all
from bench._report import last_line, percentile, scale, table
from bench._series import Plan
from tests.support.stack import wait_for
from windrow.client import Client
from windrow.config import Config
from windrow_proto import enrol
from windrow_proto.data_directory import CliFile

HOSTS, HOSTS_MIN = 200, 20
ONES = 2_000
API_ONES = 100
SUSTAIN_S = 10.0
WORKERS = 256
ROUND_TRIPS = 1_000
SYNCS = 400
STOP_S = 30.0
DETAIL = ("p50_ms", "p99_ms", "commands_per_s")


@dataclass(frozen=True, slots=True)
class Running:
    """A Master that takes orders, and an Access at it."""

    master: Ordered
    api: Client
    https_url: str
    address: str


@contextmanager
def market(folder: Path) -> Iterator[Running]:
    """The Master with one more way in and one shipped Access, both with their defaults."""
    data, access = folder / "master", folder / "access"
    with (folder / "log").open("wb") as log:
        master = Ordered("bench._issuer", ["--data-dir", str(data)], log)
        daemon: subprocess.Popen[bytes] | None = None
        try:
            record = wait_for(lambda: _cli(data))
            with Client(Config(record["url"], record["token"])) as api:
                wait_for(lambda: api.get("/me"))
                token = api.request("POST", "/join-tokens", body={"role": "access"})["join_token"]
                request = enrol.JoinRequest("access", "bench", addresses=("127.0.0.1",))
                enrol.join(enrol.IdentityFolder(access / "identity"), record["https_url"], token, request)
                daemon = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "windrow_access", "run", "--data-dir", str(access)),
                        *("--listen", "127.0.0.1:7443", "--region", "bench"),
                        *("--trunk", f"127.0.0.1:{record['ports']['trunk']}"),
                    ],
                    stderr=log,
                )
                address = wait_for(lambda: api.get("/operators/health")["accesses"][0]["address"])
                yield Running(master, api, record["https_url"], address)
        finally:
            for process in (daemon, master.process):
                if process is not None:
                    process.terminate()
                    try:
                        process.wait(STOP_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
            master.close()


def _cli(data: Path) -> dict[str, Any]:
    record = CliFile(data / "cli.json").read()
    return record if record.get("token") else {}


def api_ms(api: Client, hosts: list[str], count: int) -> list[float]:
    """Milliseconds from POST /hosts/{id}/measure to the event that the command has ended, as a client hears it."""
    ended: dict[str, float] = {}
    heard = threading.Condition()
    ready = threading.Event()

    def listen() -> None:
        with Client(api.config) as listener:
            ready.set()
            for _, _, event in listener.events("/events/stream"):
                now = time.perf_counter()
                if event.get("kind") == "command.done":
                    with heard:
                        ended.update(dict.fromkeys(event["subjects"], now))
                        heard.notify_all()

    threading.Thread(target=listen, daemon=True).start()
    ready.wait(5)
    time.sleep(1)  # the stream is answered with what is there already, and then follows
    times = []
    for number in range(count):
        began = time.perf_counter()
        answer = api.request("POST", f"/hosts/{hosts[number % len(hosts)]}/measure")
        command_id = answer["operation"]["subject"]
        with heard:
            if heard.wait_for(partial(ended.__contains__, command_id), 10):
                times.append((ended[command_id] - began) * 1000)
    return times


@dataclass(frozen=True, slots=True)
class Found:
    """The measured times. call, commit: milliseconds from the call, from the commit of the row, to the result's.

    cpu: of the Master, a command, one at a time; limits: as bench/_disk.py has them.
    """

    hosts: int
    call_ms: list[float]
    commit_ms: list[float]
    cpu_ms: float
    api_ms: list[float]
    limits: dict[str, float]
    sustained: dict[str, Any]


def measure(part: float) -> Found:
    """Run the market and its hosts, and issue."""
    count = max(HOSTS_MIN, round(HOSTS * part))
    plan = Plan(count, 1, seed=2)
    with tempfile.TemporaryDirectory(prefix="windrow-command-") as name, market(Path(name)) as running:
        config = Path(name) / "load.json"
        config.write_text(_config(plan))
        load = Ordered("bench._agents", [str(config)])
        try:
            load.ask(do="encode")
            folders = join_all(running.https_url, running.api, Path(name) / "hosts", count)
            load.ask(do="connect", folders=folders, addresses=[running.address])
            hosts = list(load.ask(do="marks")["acked"])
            running.master.ask(do="one", count=20)
            one = running.master.ask(do="one", count=max(50, round(ONES * part)))
            sustained = running.master.ask(do="sustain", seconds=max(2.0, SUSTAIN_S * part), workers=WORKERS)
            heard = api_ms(running.api, hosts, max(20, round(API_ONES * part)))
        finally:
            load.close()
        limits = _disk.limits(Path(name) / "limits", max(50, round(SYNCS * part)))
    return Found(count, one["call_ms"], one["commit_ms"], one["cpu_ms"], heard, limits, sustained)


def _config(plan: Plan) -> str:
    return json.dumps({"plan": asdict(plan), "start_ms": time.time_ns() // 1_000_000})


def detail_of(found: Found, peer: dict[str, float]) -> dict[str, Any]:
    """The last line's detail."""
    sustained = found.sustained
    p50_ms, two_commits_ms = percentile(found.call_ms, 0.5), 2 * found.limits["sqlite_commit_ms"]
    return {
        "p50_ms": round(p50_ms, 3),
        "p99_ms": round(percentile(found.call_ms, 0.99), 3),
        "commands_per_s": round(sustained["done"] / sustained["seconds"], 1),
        "from_commit_p50_ms": round(percentile(found.commit_ms, 0.5), 3),
        "from_commit_p99_ms": round(percentile(found.commit_ms, 0.99), 3),
        "sustained_p50_ms": round(percentile(sustained["call_ms"] or [0.0], 0.5), 3),
        "sustained_p99_ms": round(percentile(sustained["call_ms"] or [0.0], 0.99), 3),
        "api_p50_ms": round(percentile(found.api_ms, 0.5), 3) if found.api_ms else None,
        "api_p99_ms": round(percentile(found.api_ms, 0.99), 3) if found.api_ms else None,
        "hosts": found.hosts,
        "bare_p50_ms": round(peer["p50_ms"], 3),
        "bare_p99_ms": round(peer["p99_ms"], 3),
        "master_cpu_ms": round(found.cpu_ms, 3),
        "sustained_master_cpu_ms": round(1000 * sustained["cpu_seconds"] / max(1, sustained["done"]), 3),
        "fsync_p50_ms": round(found.limits["fsync_ms"], 3),
        "sqlite_commit_p50_ms": round(found.limits["sqlite_commit_ms"], 3),
        "durable_limit_ms": round(peer["p50_ms"] + two_commits_ms, 3),
        "durable_ratio": round(p50_ms / (peer["p50_ms"] + two_commits_ms), 2),
    }


def main() -> None:
    """Measure, print, end."""
    part = scale()
    peer = asyncio.run(_hops.round_trips(max(100, round(ROUND_TRIPS * part))))
    found = measure(part)
    detail = detail_of(found, peer)
    rows: list[tuple[str, Any]] = [
        ("started as", "windrow-master and windrow-access with their defaults (SQLite synchronous=FULL, mTLS, proofs)"),
        ("timed from, to", "the call that issues; the commit of the host's final status"),
        ("limit: two commits", "durable_limit_ms is the bare round trip and two commits of SQLite, one of them before"),
        ("", "the command leaves and one for its result; durable_ratio is p50_ms over it"),
        *detail.items(),
    ]
    if not found.api_ms:
        rows.append(("missing", "no event of a command was heard over the API"))
    table(rows)
    name = "bare gRPC round trip over the same two hops, mTLS"
    last_line("command", detail["p50_ms"], "ms", name, detail["p50_ms"] / peer["p50_ms"], detail)


if __name__ == "__main__":
    main()
