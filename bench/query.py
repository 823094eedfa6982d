"""`query`: charts from the view of history: one hour of one host, and 24 hours of many GPUs by tier.

Ours is the shipped view (DuckDB) on its own file, asked as the API asks it, once rolled up as a running Master does it.
Peer: VictoriaMetrics with the same samples, asked by PromQL through the shipped remote view; for the host only, since
the tiers it is told are those of now. Samples are a minute apart (what roll-ups leave of a second's), the fleet is
BENCH_SCALE of 10,000 GPUs, each question is asked five times, and no ingest runs meanwhile.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench._report import last_line, median, scale, table
from bench._victoria import Victoria, victoria
from windrow_master.store.executors import ThreadExecutor
from windrow_master.telemetry.model import GroupQuery, Place, SeriesKey, SeriesQuery
from windrow_master.telemetry.remote.service import RemoteView
from windrow_master.telemetry.remote.store import MetricsStore, parse_url
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.disk import OsDisk
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Record
from windrow_proto.model import FrameClass, Kind
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.units import MILLISECOND, MINUTE

GPUS_PER_HOST = 8
GPUS = 10_000
HOURS = 24
RUNS = 5
ROLLS = 8
POWER, USE = 6, 1
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
BATCH_MINUTES = 60


async def fill(service: TelemetryService, hosts: int, start_ms: int) -> None:
    """Append 24 hours of every host, an hour a batch."""
    for hour in range(HOURS):
        for number in range(hosts):
            samples = [
                Sample(
                    (start_ms + (hour * BATCH_MINUTES + minute) * MINUTE_MS) * MILLISECOND,
                    {
                        (f"GPU-{number}-{gpu}", metric): (number * 7 + gpu * 13 + minute * 3) % 1000
                        for gpu in range(GPUS_PER_HOST)
                        for metric in (POWER, USE)
                    },
                )
                for minute in range(BATCH_MINUTES)
            ]
            record = Record(BootId(b"b" * 16), hour + 1, Kind.TELEMETRY, encode_batch(samples))
            await service.append(HostId(f"host_{number}"), [(record, FrameClass.BACKLOG)])


async def timed_ms(ask: Callable[[], Awaitable[object]]) -> float:
    """The median of some runs in milliseconds."""
    took = []
    for _ in range(RUNS):
        began = time.perf_counter()
        await ask()
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


async def measure(folder: Path, peer: Victoria | None) -> dict[str, float]:
    """Both questions to both views."""
    clock, disk = SystemClock(), OsDisk()
    hosts = max(1, round(GPUS * scale() / GPUS_PER_HOST))
    places: dict[Place, str] = {
        (HostId(f"host_{n}"), f"GPU-{n}-{gpu}"): f"h100/{'ABC'[n % 3]}"
        for n in range(hosts)
        for gpu in range(GPUS_PER_HOST)
    }
    remote = None
    if peer is not None:
        store = MetricsStore(parse_url(f"{peer.url}/api/v1/write"), parse_url(peer.url))
        log = f"{folder}/log"
        executor = ThreadExecutor()
        remote = RemoteView(
            disk, log, 1, f"{folder}/history", clock, SystemRng(), executor, store, tiers=lambda: places
        )
    service = TelemetryService(
        disk,
        folder,
        1,
        clock,
        log_executor=ThreadExecutor(),
        view_executor=ThreadExecutor(),
        remote=remote,
        tiers=lambda: places,
    )
    try:
        now_ms = clock.wall_ns() // MILLISECOND // MINUTE_MS * MINUTE_MS
        start_ms = now_ms - HOURS * HOUR_MS
        await fill(service, hosts, start_ms)
        await service.view.catch_up()
        for _ in range(ROLLS):
            service.view._due.clear()  # as a minute later
            await service.view.catch_up_once()
        keys = tuple(
            SeriesKey(HostId("host_0"), f"GPU-0-{gpu}", m) for gpu in range(GPUS_PER_HOST) for m in (POWER, USE)
        )
        host = SeriesQuery(keys, now_ms - HOUR_MS, now_ms, MINUTE_MS)
        fleet = GroupQuery(POWER, start_ms, now_ms, 5 * MINUTE // MILLISECOND)
        found = {
            "host_1h_ms": await timed_ms(lambda: service.view.series(host)),
            "fleet_24h_ms": await timed_ms(lambda: service.view.grouped(fleet)),
            "gpus": float(len(places)),
        }
        if remote is not None and peer is not None:
            await remote.catch_up()
            peer.flush()
            found["victoriametrics_host_1h_ms"] = await timed_ms(lambda: remote.series(host))
        return found
    finally:
        service.close()


def main() -> None:
    """Measure, print, end."""
    with tempfile.TemporaryDirectory(prefix="windrow-query-") as folder, victoria() as peer:
        found = asyncio.run(measure(Path(folder), peer))
    if peer is None:
        sys.stdout.write("  VictoriaMetrics is missing: no peer\n")
    table(sorted(found.items()))
    theirs = found.get("victoriametrics_host_1h_ms")
    value = found["host_1h_ms"]
    detail = {name: round(figure, 3) for name, figure in found.items()} | {"goal_host_ms": 30, "goal_fleet_ms": 300}
    last_line("query", value, "ms", "VictoriaMetrics" if theirs else None, value / theirs if theirs else None, detail)


if __name__ == "__main__":
    main()
