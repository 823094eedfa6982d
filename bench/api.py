"""`api`: a page of 1,000 hosts, and one event to 100 live streams, while those hosts send. Goal: p99 at most 50 ms.

Limit in the same run: the same bytes, and the same message to as many streams, from a bare Starlette on uvicorn, asked
in turn with the Master so that both meet the same load.
"""

import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench._load import Ordered, join_all
from bench._report import last_line, percentile, scale, table
from bench._series import Plan
from bench.ingest import nearest_access
from tests.support.stack import Stack, stack, wait_for
from windrow.client import Client
from windrow_proto.units import MILLISECOND

HOSTS, HOSTS_MIN = 1_000, 50
STREAMS = 100
PAGES, PAGES_MIN = 400, 60
EVENTS, EVENTS_MIN = 100, 20
WARM = 5
PERIOD_S = 5.0
PAUSE_S = 0.05
"""Between two askings: a console that looks 20 times a second."""
EVENT_S = 30.0
GOAL_MS = 50.0


@dataclass(slots=True)
class Times:
    """Milliseconds, ours and the bare application's."""

    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def ratio(self, part: float) -> float:
        """Ours over the limit's at a percentile."""
        return percentile(self.ours, part) / max(1e-6, percentile(self.bare, part))


class Getter:
    """One connection that stays open, as a browser's."""

    def __init__(self, url: str, token: str = "") -> None:
        found = urlsplit(url)
        self._connection = http.client.HTTPConnection(found.hostname or "", found.port, timeout=60)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def timed(
        self, path: str, method: str = "GET", body: bytes | None = None, *, also: int = 200
    ) -> tuple[float, bytes]:
        """Milliseconds to the last byte, and the body; raises RuntimeError for anything but success or this status."""
        began = time.perf_counter()
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        found = answer.read()
        took_ms = (time.perf_counter() - began) * 1_000
        if answer.status >= 300 and answer.status != also:
            raise RuntimeError(f"{method} {path}: {answer.status} {found[:200]!r}")
        return took_ms, found


@contextmanager
def bare(page: bytes) -> Iterator[str]:
    """The bare application, with this page; its URL."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(page)
        file.flush()
        process = subprocess.Popen([sys.executable, "-m", "bench._bare", file.name], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def pages(ours: Getter, path: str, url: str, count: int) -> Times:
    """Ask both in turn."""
    times, limit = Times(), Getter(url)
    for number in range(WARM + count):
        for into, (took_ms, _) in ((times.ours, ours.timed(path)), (times.bare, limit.timed("/page"))):
            if number >= WARM:
                into.append(took_ms)
        time.sleep(PAUSE_S)
    return times


class Streams:
    """Many open event streams of one server; knows when each got a message that contains a word."""

    def __init__(self, url: str, path: str, token: str = "") -> None:
        self._url, self._path, self._token = urlsplit(url), path, token
        self._word = b""
        self._got: list[float] = []
        self._all = asyncio.Event()
        self._open = 0

    async def read(self) -> None:
        """One stream, until cancelled."""
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port)
        try:
            bearer = f"Authorization: Bearer {self._token}\r\n" if self._token else ""
            writer.write(f"GET {self._path} HTTP/1.1\r\nHost: {self._url.netloc}\r\n{bearer}\r\n".encode())
            while b": open" not in (line := await reader.readline()):
                if not line:
                    raise ConnectionError("A stream was refused.")
            self._open += 1
            while line := await reader.readline():
                if self._word and self._word in line and line.startswith(b"data:"):
                    self._got.append(time.perf_counter())
                    if len(self._got) == STREAMS:
                        self._all.set()
        finally:
            writer.close()

    async def ready(self) -> None:
        """Wait until every stream is open."""
        while self._open < STREAMS:
            await asyncio.sleep(0.02)

    async def told(self, word: str, tell: Callable[[], Any]) -> float:
        """Milliseconds from telling until the last stream has the message."""
        self._word, self._got = word.encode(), []
        self._all.clear()
        began = time.perf_counter()
        await asyncio.to_thread(tell)
        async with asyncio.timeout(EVENT_S):
            await self._all.wait()
        return (self._got[-1] - began) * 1_000


async def events(cli: dict[str, Any], host_id: str, url: str, count: int) -> Times:
    """Change a host's state and wait for all streams; then the same message through the bare application."""
    times = Times()
    ours = Streams(cli["url"], f"/api/v1/events/stream?subject={host_id}", cli["token"])
    limit, asks, bare_asks = Streams(url, "/stream"), Getter(cli["url"], cli["token"]), Getter(url)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(streams.read()) for streams in (ours, limit) for _ in range(STREAMS)]
        async with asyncio.timeout(60):
            await ours.ready()
            await limit.ready()
        for number in range(count):
            word, action = f"bench-{number:06d}", "drain" if number % 2 == 0 else "activate"
            body = json.dumps({"reason": word}).encode()
            path = f"/api/v1/hosts/{host_id}/{action}"
            times.ours.append(await ours.told(word, partial(asks.timed, path, "POST", body)))
            message = b"id: 1\nevent: event\ndata: " + json.dumps({"text": word, "pad": "x" * 300}).encode() + b"\n\n"
            times.bare.append(await limit.told(word, partial(bare_asks.timed, "/tell", "POST", message)))
            await asyncio.sleep(PAUSE_S)
        for task in tasks:
            task.cancel()
    return times


def measure(running: Stack, load: Ordered, plan: Plan, folder: Path, part: float) -> tuple[Times, Times, int]:
    """Join and connect the hosts, have them send, and ask meanwhile; also the size of a page."""
    address = wait_for(lambda: nearest_access(running))
    with running.client() as api:
        folders = join_all(running.cli["https_url"], api, folder, plan.hosts)
        load.answer()
        load.ask(do="connect", folders=folders, addresses=[address])
        load.ask(do="flood", first=0, last=1)
        wait_for(lambda: _all_live(api, plan.hosts))
    cli = running.cli
    ours, path = Getter(cli["url"], cli["token"]), f"/api/v1/hosts?simulated=true&limit={HOSTS}"
    _, page = ours.timed(path)
    host_id = json.loads(page)["items"][0]["id"]
    load.tell(do="pace", first=1, last=plan.batches, period_s=PERIOD_S)
    with bare(page) as url:
        asked = pages(ours, path, url, max(PAGES_MIN, round(PAGES * part)))
        told = asyncio.run(events(cli, host_id, url, max(EVENTS_MIN, round(EVENTS * part))))
    return asked, told, len(page)


def _all_live(api: Client, hosts: int) -> bool:
    found = api.get("/hosts", simulated="true", limit=HOSTS)["items"]
    return len(found) == hosts and all(host["gpus"] for host in found)


def main() -> None:
    """Measure, print, end."""
    part = scale()
    hosts = max(HOSTS_MIN, round(HOSTS * min(1.0, part)))
    # Enough batches to send until the last answer; what is left when all is measured is not sent.
    plan = Plan(hosts, 2 + round(60 * max(0.3, part)))
    with tempfile.TemporaryDirectory(prefix="windrow-api-") as name, stack() as running:
        config = Path(name) / "load.json"
        start_ms = time.time_ns() // MILLISECOND - plan.span_ms
        config.write_text(json.dumps({"plan": asdict(plan), "start_ms": start_ms}))
        load = Ordered("bench._agents", [str(config)])
        try:
            load.tell(do="encode")
            asked, told, size = measure(running, load, plan, Path(name) / "hosts", part)
        finally:
            load.close()
    detail = {
        "page_p50_ms": round(percentile(asked.ours, 0.5), 2),
        "page_p99_ms": round(percentile(asked.ours, 0.99), 2),
        "bare_page_p50_ms": round(percentile(asked.bare, 0.5), 2),
        "bare_page_p99_ms": round(percentile(asked.bare, 0.99), 2),
        "event_p50_ms": round(percentile(told.ours, 0.5), 2),
        "event_p99_ms": round(percentile(told.ours, 0.99), 2),
        "bare_event_p50_ms": round(percentile(told.bare, 0.5), 2),
        "bare_event_p99_ms": round(percentile(told.bare, 0.99), 2),
        "hosts": hosts,
        "streams": STREAMS,
        "page_bytes": size,
        "pages": len(asked.ours),
        "events": len(told.ours),
        "goal_ms": GOAL_MS,
    }
    started = "windrow up (its defaults: mTLS, proofs, fsync of the log, SQLite synchronous=FULL, rate limits on)"
    table([("started as", started), *detail.items()])
    limit = "the same bytes from a bare Starlette on uvicorn"
    last_line("api", percentile(asked.ours, 0.99), "ms", limit, asked.ratio(0.99), detail)


if __name__ == "__main__":
    main()
