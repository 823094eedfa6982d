"""`query`: charts while samples come in: one hour of one host, and 24 hours of all GPUs by tier.

BENCH_SCALE of 10,000 GPUs join the shipped market (`windrow up`, its defaults) and send 24 hours of all their metrics,
a sample a minute (what roll-ups leave of a second's), as after an outage; then each goes on at its pace, a sample a
second in batches of five. A minute later, when roll-ups run as they do all day, both charts are asked over HTTP, one
after the other, while the samples come. Peer: VictoriaMetrics with the same samples of the two metrics that are asked
for and no others, fed at the same pace meanwhile, asked over HTTP with the PromQL of the shipped remote view.
"""

import http.client
import json
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench._load import Ordered, join_all
from bench._report import cpu_seconds, last_line, median, percentile, scale, table
from bench._series import METRICS, Plan, host_series, uuid
from bench._victoria import Victoria, label_bytes, series_bytes, victoria, write_request
from bench.ingest import nearest_access, rows_seen
from tests.support.stack import Stack, stack, wait_for
from windrow.client import Client
from windrow_master.telemetry.model import GroupQuery, SeriesKey, SeriesQuery
from windrow_master.telemetry.remote import promql
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NUMBER

GPUS, GPUS_PER_HOST = 10_000, 8
HOURS, HOUR_MS, MINUTE_MS, FIVE_MS = 24, 3_600_000, 60_000, 300_000
ASKED = (6, 1)
"""Power and utilisation."""
FLEET = ASKED[0]
RUNS = 15
WARM_S = 75.0
"""Roll-ups run each minute; what came at once before is done by then."""
ASKING_S = 90.0
PERIOD_S = 5.0
CAUGHT_UP_S = 900.0
LEAD_PER_HOST_S = 0.08
"""To connect again, before the first live sample is due."""
HOSTS_PER_REQUEST = 90
GOALS = {"goal_host_ms": 30, "goal_fleet_ms": 300}


@dataclass(frozen=True, slots=True)
class Asked:
    """How long answers took, in milliseconds, and what they held."""

    ms: list[float]
    points: int


def asked(ask: Callable[[], int]) -> Asked:
    """Ask some times, half a second apart, so that what comes in meanwhile is in it."""
    took, points = [], 0
    for _ in range(RUNS):
        began = time.perf_counter()
        points = ask()
        took.append((time.perf_counter() - began) * 1000)
        time.sleep(0.5)
    return Asked(took, points)


# --- ours ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ours:
    """The results of our side. live_per_s: values a second that the view took in while it was asked."""

    host: Asked
    fleet: Asked
    tiers: list[str]
    live_per_s: float
    master_cpu_share: float
    lag_s: float


def moment(at_ms: int) -> str:
    """A time as the API reads it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def points_of(answer: dict[str, Any]) -> int:
    """How many points of a chart have a value."""
    return sum(value is not None for series in answer["series"] for _, value in series["points"])


def loaded(running: Stack, api: Client, plan: Plan, start_ms: int, folder: Path, folders: list[str]) -> Ordered:
    """A process whose agents are connected, with all batches of the plan."""
    config = folder / f"load-{plan.step_ms}.json"
    config.write_text(json.dumps({"plan": asdict(plan), "start_ms": start_ms}))
    load = Ordered("bench._agents", [str(config)])
    load.ask(do="encode")
    load.ask(do="connect", folders=folders, addresses=[wait_for(lambda: nearest_access(running))])
    return load


def measure_ours(past: Plan, live: Plan, start_ms: int) -> Ours:
    """Fill a shipped market with a day, keep it busy, and ask."""
    with tempfile.TemporaryDirectory(prefix="windrow-query-") as name, stack() as running:
        wait_for(lambda: nearest_access(running))
        return _fill_and_ask(running, Path(name), past, live, start_ms)


def _fill_and_ask(running: Stack, folder: Path, past: Plan, live: Plan, start_ms: int) -> Ours:
    with running.client() as api:
        folders = join_all(running.cli["https_url"], api, folder / "hosts", past.hosts)
        load = loaded(running, api, past, start_ms, folder, folders)
        try:
            load.ask(do="flood", first=0, last=past.batches)
            wait_for(lambda: rows_seen(api)[1], CAUGHT_UP_S, 1.0)
        finally:
            load.close()
        live_ms = round(time.time() * 1000 + past.hosts * LEAD_PER_HOST_S * 1000) + 5000
        load = loaded(running, api, live, live_ms, folder, folders)
        try:
            time.sleep(max(0.0, live_ms / 1000 + PERIOD_S - time.time()))
            load.tell(do="pace", first=0, last=live.batches, period_s=PERIOD_S)
            time.sleep(WARM_S)
            return _ask_ours(running, api)
        finally:
            load.close()


def _ask_ours(running: Stack, api: Client) -> Ours:
    host_id = next(h["id"] for h in api.items("/hosts") if h["name"] == "bench-0000")
    tiers: list[str] = []

    def host() -> int:
        names = [BY_NUMBER[metric].name for metric in ASKED]
        return points_of(api.get(f"/hosts/{host_id}/history", metric=names, step_s=MINUTE_MS // 1000))

    def fleet() -> int:
        answer = api.get("/metrics/history", metric=BY_NUMBER[FLEET].name)
        tiers[:] = [series["tier"] or "" for series in answer["series"]]
        return points_of(answer)

    pids = running.daemons()["master"]
    rows, cpu_s, began = rows_seen(api)[0], cpu_seconds(pids), time.monotonic()
    found = asked(host), asked(fleet)
    seconds = time.monotonic() - began
    lag_s = api.get("/operators/health")["master"]["duckdb_lag_s"]
    taken = rows_seen(api)[0] - rows
    return Ours(*found, tiers, taken / seconds, (cpu_seconds(pids) - cpu_s) / seconds, lag_s)


# --- the peer --------------------------------------------------------------------------------------------------------


def requests_of(plan: Plan, start_ms: int, tiers: Sequence[str], per_request: int) -> Iterator[list[bytes]]:
    """For each `per_request` instants of a plan, in order of time: the writes that hold the asked metrics of all hosts,
    and, at their first instant, the tiers of the GPUs."""
    groups = [
        range(first, min(plan.hosts, first + HOSTS_PER_REQUEST)) for first in range(0, plan.hosts, HOSTS_PER_REQUEST)
    ]
    names = {metric: f"windrow_{BY_NUMBER[metric].name}" for metric in ASKED}
    series = [host_series(plan, host, start_ms) for host in range(plan.hosts)]
    columns = [METRICS.index(metric) for metric in ASKED]

    def of_host(host: int, at: slice) -> bytes:
        where = [(("gpu", uuid(plan.seed, host, gpu)), ("host", f"bench-{host:04d}")) for gpu in range(plan.gpus)]
        labels = [label_bytes((("__name__", names[m]), *gpu)) for gpu in where for m in ASKED]
        at_ms: list[int] = series[host].at_ms[at].tolist()
        values = series[host].values[:, columns, at].reshape(len(labels), -1).astype(np.float64)
        told = [(("__name__", promql.INFO_NAME), *gpu, ("tier", tiers[host % len(tiers)])) for gpu in where]
        info = series_bytes([label_bytes(one) for one in told], at_ms[::5], np.ones((plan.gpus, len(at_ms[::5]))))
        return series_bytes(labels, at_ms, values) + info

    for first in range(0, plan.batches * plan.instants, per_request):
        at = slice(first, first + per_request)
        yield [write_request([of_host(host, at) for host in group]) for group in groups]


@contextmanager
def kept_busy(peer: Victoria, plan: Plan, tiers: Sequence[str]) -> Iterator[None]:
    """Feed the peer what its GPUs read now, at their pace, while this is open."""
    made = list(requests_of(plan, round(time.time() * 1000), tiers, plan.instants))
    ended = threading.Event()

    def feed() -> None:
        for place, requests in enumerate(made):
            for request in requests:
                peer.write(request)
            if ended.wait(max(0.0, began + (place + 1) * PERIOD_S - time.monotonic())):
                return

    began = time.monotonic()
    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measure_peer(peer: Victoria, past: Plan, live: Plan, start_ms: int, tiers: list[str]) -> tuple[Asked, Asked]:
    """The same charts from VictoriaMetrics."""
    for requests in requests_of(past, start_ms, tiers, past.instants):
        for request in requests:
            peer.write(request)
    peer.flush()

    def ask(question: promql.Question) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", urllib.parse.urlsplit(peer.url).port or 0, timeout=60)
        body = urllib.parse.urlencode(question.form)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", f"/api/v1/{question.path}", body=body, headers=kind)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return sum(len(one["values"]) for one in answer["data"]["result"])

    def host() -> int:
        to_ms = -(-round(time.time() * 1000) // MINUTE_MS) * MINUTE_MS
        keys = [SeriesKey(HostId("bench-0000"), uuid(past.seed, 0, n), m) for n in range(past.gpus) for m in ASKED]
        return sum(map(ask, promql.questions(SeriesQuery(tuple(keys), to_ms - HOUR_MS, to_ms, MINUTE_MS))))

    def fleet() -> int:
        to_ms = -(-round(time.time() * 1000) // FIVE_MS) * FIVE_MS
        return ask(promql.grouped_question(GroupQuery(FLEET, to_ms - HOURS * HOUR_MS, to_ms, FIVE_MS)))

    with kept_busy(peer, live, tiers):
        return asked(host), asked(fleet)


def main() -> None:
    """Measure, print, end."""
    hosts = max(1, round(GPUS * scale() / GPUS_PER_HOST))
    past = Plan(hosts, HOURS, GPUS_PER_HOST, HOUR_MS // MINUTE_MS, step_ms=MINUTE_MS)
    live = Plan(hosts, round((WARM_S + ASKING_S) / PERIOD_S), GPUS_PER_HOST)
    start_ms = round(time.time() * 1000) - past.span_ms
    ours = measure_ours(past, live, start_ms)
    with victoria() as peer:
        theirs = measure_peer(peer, past, live, start_ms, ours.tiers or [""]) if peer is not None else None
    found: dict[str, Any] = {
        "host_1h_ms": round(median(ours.host.ms), 2),
        "fleet_24h_ms": round(median(ours.fleet.ms), 2),
        "host_1h_max_ms": round(max(ours.host.ms), 2),
        "fleet_24h_p90_ms": round(percentile(ours.fleet.ms, 0.9), 2),
        "gpus": hosts * GPUS_PER_HOST,
        "points": [ours.host.points, ours.fleet.points],
        "ingest_values_per_s": round(ours.live_per_s),
        "master_cpu_share": round(ours.master_cpu_share, 3),
        "history_lag_s": round(ours.lag_s, 1),
    }
    if theirs is not None:
        found |= {
            "victoriametrics_host_1h_ms": round(median(theirs[0].ms), 2),
            "victoriametrics_fleet_24h_ms": round(median(theirs[1].ms), 2),
            "victoriametrics_points": [theirs[0].points, theirs[1].points],
            "host_ratio": round(median(ours.host.ms) / median(theirs[0].ms), 3),
        }
    started = ("started as", "windrow up (its defaults: mTLS, proofs, fsync of the log, SQLite synchronous=FULL)")
    table([started, *found.items(), *([("missing", "VictoriaMetrics: no peer")] if theirs is None else [])])
    value = median(ours.fleet.ms)
    ratio = value / median(theirs[1].ms) if theirs is not None else None
    last_line("query", value, "ms", "VictoriaMetrics, by tier" if theirs else None, ratio, found | GOALS)


if __name__ == "__main__":
    main()
