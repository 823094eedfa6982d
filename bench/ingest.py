"""`ingest`: samples of many hosts through the shipped Access and Master into the log and into history.

Samples per CPU-second of Access and Master together, until every acknowledged sample can be asked for. Goal: 3 times
VictoriaMetrics, which gets the same samples by remote write, over plain HTTP and without proofs. In turn with us: after
each part of the flood it gets the same part, and the median of the ratios counts, since machines change their speed.
"""

import json
import signal
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from bench._load import Ordered, join_all
from bench._report import cpu_seconds, last_line, median, percentile, scale, table
from bench._series import METRICS, Plan, host_series, uuid
from bench._victoria import Victoria, label_bytes, series_bytes, victoria, write_request
from tests.support.stack import Stack, stack, wait_for
from windrow.client import Client
from windrow_proto.metrics import BY_NUMBER
from windrow_proto.units import MIB

HOSTS, HOSTS_MIN = 1_000, 50
WARM_BATCHES = 1
FLOOD_BATCHES = 10
PARTS = 5
"""How often so many are flooded, in turn with the peer."""
ALONE_BATCHES = 4
"""After the flood, in which an agent's batches go together as after an outage: as fast, but each in its own message."""
PACE_BATCHES = 2
PERIOD_S = 5.0
AHEAD_BATCHES = 2
"""Of those sent alone, all of which go in a few seconds, this many are of before the flood goes out."""
LEAD_PER_HOST_S = 0.045
"""To make the batches and to connect, once all have joined."""
CAUGHT_UP_S = 90.0
POLL_S = 0.2
PEER_SHAPES = {"vmagent": (90, 1), "batched": (18, 5)}
"""Hosts per request and samples per series in it. vmagent gathers up to 10,000 samples, one per series as scraped
(Prometheus 2,000 likewise, which is slower): this is the peer. `batched` puts our five seconds of a series together,
as neither does; it is told beside."""
DETAIL = (
    "wire_bytes_per_sample",
    "disk_bytes_per_sample",
    "log_bytes_per_sample",
    "victoriametrics_samples_per_cpu_s",
)


def plan_for(part: float) -> tuple[Plan, int, int]:
    """The plan at a scale, and how many of its batches are flooded at once (after the warm one), and paced."""
    flood = max(3, round(FLOOD_BATCHES * min(1.0, max(part, 0.6))))
    pace = max(1, round(PACE_BATCHES * min(1.0, part)))
    return Plan(max(HOSTS_MIN, round(HOSTS * part)), WARM_BATCHES + PARTS * flood + ALONE_BATCHES + pace), flood, pace


def rows_seen(api: Client) -> tuple[int, bool]:
    """Rows that the view of history took in since the Master's start, and whether it has taken in all there is."""
    health = api.get("/operators/health")["master"]
    return health["duckdb"]["rows"], health["duckdb_lag_s"] == 0


@dataclass(frozen=True, slots=True)
class Phase:
    """One measured stretch, from the first frame until history holds what was acknowledged."""

    answer: dict[str, Any]
    values: int
    seconds: float
    cpu: dict[str, float]
    log_bytes: int
    is_caught_up: bool

    @property
    def per_cpu_s(self) -> float:
        """Samples per CPU-second of Access and Master."""
        return self.values / max(1e-9, sum(self.cpu.values()))

    @property
    def wire(self) -> float:
        """Bytes on the agents' sockets per sample, TLS included."""
        return float(self.answer["socket_bytes_up"]) / max(1, self.values)


def phase(running: Stack, api: Client, load: Ordered, plan: Plan, **order: Any) -> Phase:
    """Have the load generator send, wait until the view has caught up, and read what it cost."""
    pids = {name: found for name, found in running.daemons().items() if name in ("access", "master")}
    rows, _ = rows_seen(api)
    log_bytes, began = folder_bytes(running.data_dir / "log"), time.perf_counter()
    before = {name: cpu_seconds(found) for name, found in pids.items()}
    answer = load.ask(**order)
    values = answer["acked_batches"] * plan.values_per_batch

    def caught_up() -> bool:
        seen, is_all = rows_seen(api)
        return is_all and seen >= rows + values

    try:
        wait_for(caught_up, CAUGHT_UP_S, POLL_S)
        is_caught_up = True
    except TimeoutError:
        is_caught_up = False
    cpu = {name: cpu_seconds(found) - before[name] for name, found in pids.items()}
    grown = folder_bytes(running.data_dir / "log") - log_bytes
    return Phase(answer, values, time.perf_counter() - began, cpu, grown, is_caught_up)


def summed(phases: list[Phase]) -> Phase:
    """Several stretches as if they were one; of the answer only what can be added up."""
    counted = [key for key, value in phases[0].answer.items() if isinstance(value, int | float)]
    return Phase(
        answer={key: sum(one.answer[key] for one in phases) for key in counted},
        values=sum(one.values for one in phases),
        seconds=sum(one.seconds for one in phases),
        cpu={name: sum(one.cpu[name] for one in phases) for name in phases[0].cpu},
        log_bytes=sum(one.log_bytes for one in phases),
        is_caught_up=all(one.is_caught_up for one in phases),
    )


def folder_bytes(folder: Path) -> int:
    """The size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True, slots=True)
class Kept:
    """The contents of history at the end. free_bytes: of the file's, which the next samples fill."""

    rows: dict[str, int]
    file_bytes: int
    free_bytes: int
    raw_bytes: int
    all_rows: int


def read_history(data_dir: Path) -> Kept:
    """Open the file of a Master that has stopped and count; the checkpoint is its own."""
    rows: dict[str, int] = {}
    file_bytes = free_bytes = raw_bytes = 0
    for path in sorted((data_dir / "history").glob("history-*.duckdb")):
        file_bytes += path.stat().st_size
        with duckdb.connect(str(path), read_only=True) as history:
            counted = history.execute(
                "SELECT host, count(*) FROM raw JOIN device ON raw.device = device.number GROUP BY 1"
            ).fetchall()
            for host, count in counted:
                rows[host] = rows.get(host, 0) + count
            size = history.execute("SELECT block_size, free_blocks FROM pragma_database_size()").fetchone() or (0, 0)
            free_bytes += size[0] * size[1]
            for name in ("gpu_samples", "host_samples", "other_samples"):
                blocks = history.execute(
                    f"SELECT count(DISTINCT block_id) FROM pragma_storage_info('{name}') WHERE persistent"
                ).fetchone() or (0,)
                raw_bytes += blocks[0] * size[0]
    return Kept(rows, file_bytes, free_bytes, raw_bytes, sum(rows.values()))


@dataclass(frozen=True, slots=True)
class Ours:
    """The results of our side of the benchmark. parts: of the flood."""

    cold: Phase
    parts: list[Phase]
    alone: Phase
    pace: Phase
    kept: Kept
    acked: dict[str, int]
    joined_s: float
    connected: dict[str, Any]

    @property
    def flood(self) -> Phase:
        """All of it."""
        return summed(self.parts)

    @property
    def per_cpu_s(self) -> float:
        """Samples per CPU-second in the flood: the median of its parts."""
        return median([one.per_cpu_s for one in self.parts])


def measure_ours(plan: Plan, flood: int, peer: "InTurn") -> Ours:
    """Start the shipped market, join and connect the hosts, send, in turn with the peer, stop it, and read what it
    kept."""
    with tempfile.TemporaryDirectory(prefix="windrow-ingest-") as name, stack() as running:
        folder, address = Path(name), wait_for(lambda: nearest_access(running))
        with running.client() as api:
            began = time.monotonic()
            folders = join_all(running.cli["https_url"], api, folder / "hosts", plan.hosts)
            joined_s = time.monotonic() - began
            # The flood is the backlog of the minutes before it, however long the joining took.
            due_s = time.time() + plan.hosts * LEAD_PER_HOST_S
            start_ms = round((due_s - (WARM_BATCHES + PARTS * flood + AHEAD_BATCHES) * PERIOD_S) * 1000)
            config = folder / "load.json"
            config.write_text(json.dumps({"plan": asdict(plan), "start_ms": start_ms}))
            load = Ordered("bench._agents", [str(config)])
            try:
                load.ask(do="encode")
                connected = load.ask(do="connect", folders=folders, addresses=[address])
                time.sleep(max(0.0, due_s - time.time()))
                cold = phase(running, api, load, plan, do="flood", first=0, last=WARM_BATCHES)
                peer.warm()
                parts: list[Phase] = []
                for number in range(PARTS):
                    first = WARM_BATCHES + number * flood
                    parts.append(phase(running, api, load, plan, do="flood", first=first, last=first + flood))
                    peer.part()
                ends = WARM_BATCHES + PARTS * flood
                alone_ends = ends + ALONE_BATCHES
                alone = phase(running, api, load, plan, do="flood", first=ends, last=alone_ends, together=1)
                paced = phase(
                    running, api, load, plan, do="pace", first=alone_ends, last=plan.batches, period_s=PERIOD_S
                )
                marks = load.ask(do="marks")["acked"]
            finally:
                load.close()
        running.process.send_signal(signal.SIGINT)
        running.process.wait(90)
        acked = {host: len(batches) * plan.values_per_batch for host, batches in marks.items()}
        kept = read_history(running.data_dir)
        return Ours(cold, parts, alone, paced, kept, acked, joined_s, connected)


def nearest_access(running: Stack) -> str:
    """Returns the address of the Access of the first region, once both are attached."""
    with running.client() as api:
        found = {one["region"]: one["address"] for one in api.get("/operators/health")["accesses"]}
    return str(found["local-a"]) if len(found) == 2 else ""


# --- the peer ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer's needs for the same samples. part_samples: in each part of the flood; cold_per_cpu_s: in the first
    batch, in which it meets every series."""

    shape: str
    part_samples: int
    parts_cpu_s: list[float]
    cold_per_cpu_s: float
    disk_bytes: int
    wire_bytes: int
    held: int
    wanted: int

    @property
    def per_cpu_s(self) -> float:
        """Samples per CPU-second, of series it knows: the median of the parts."""
        return self.part_samples / max(1e-9, median(self.parts_cpu_s))


def peer_requests(plan: Plan, batches: int, start_ms: int, per_series: int, hosts: range) -> list[bytes]:
    """Remote-write requests for a group of hosts, in order of time: the same instants and values, as the wire's
    integers (which spares the peer the fractions), `per_series` samples of each series in a request."""
    names = {number: f"windrow_{BY_NUMBER[number].name}" for number in METRICS}
    parts: list[list[bytes]] = [[] for _ in range(batches * plan.instants // per_series)]
    for host in hosts:
        series = host_series(plan, host, start_ms)
        labels = [
            label_bytes((("__name__", names[m]), ("gpu", uuid(plan.seed, host, gpu)), ("host", f"bench-{host:04d}")))
            for gpu in range(plan.gpus)
            for m in METRICS
        ]
        columns = series.values.reshape(len(labels), -1).astype(np.float64)
        for place, part in enumerate(parts):
            at = slice(place * per_series, (place + 1) * per_series)
            part.append(series_bytes(labels, series.at_ms[at].tolist(), columns[:, at]))
    return [write_request(part) for part in parts]


class InTurn:
    """VictoriaMetrics, fed part by part. Nothing happens where it is not installed."""

    def __init__(self, peer: Victoria | None, plan: Plan, flood: int, shape: str, parts: int) -> None:
        self._peer, self._plan, self._flood, self._shape, self._parts = peer, plan, flood, shape, parts
        self._cold_s = 0.0
        self._took_s: list[float] = []
        per_request, self._per_series = PEER_SHAPES[shape]
        if peer is None:
            return
        batches = WARM_BATCHES + parts * flood
        # Its instants end about when ours do: the joining is between.
        start_ms = round((time.time() - batches * PERIOD_S) * 1000)
        groups = [range(first, min(plan.hosts, first + per_request)) for first in range(0, plan.hosts, per_request)]
        with ProcessPoolExecutor(2) as pool:
            make = partial(peer_requests, plan, batches, start_ms, self._per_series)
            self._requests = list(pool.map(make, groups, chunksize=8))

    def warm(self) -> None:
        """The first batch: it meets every series."""
        self._cold_s = self._feed(0, WARM_BATCHES)

    def part(self) -> None:
        """The next part of the flood."""
        first = WARM_BATCHES + len(self._took_s) * self._flood
        self._took_s.append(self._feed(first, first + self._flood))

    def found(self) -> Peer | None:
        """Returns the peer's needs and contents."""
        if self._peer is None:
            return None
        values = self._plan.hosts * self._plan.values_per_batch
        return Peer(
            shape=self._shape,
            part_samples=values * self._flood,
            parts_cpu_s=self._took_s,
            cold_per_cpu_s=values * WARM_BATCHES / max(1e-9, self._cold_s),
            disk_bytes=self._peer.disk_bytes(),
            wire_bytes=sum(len(request) for made in self._requests for request in made),
            held=self._peer.count("windrow_"),
            wanted=values * (WARM_BATCHES + self._parts * self._flood),
        )

    def _feed(self, first: int, last: int) -> float:
        if self._peer is None:
            return 0.0
        at = slice(*(batch * self._plan.instants // self._per_series for batch in (first, last)))
        return _feed(self._peer, [made[at] for made in self._requests])


def measure_beside(plan: Plan, flood: int, shape: str) -> Peer | None:
    """One part of the flood for a peer of its own; None where it is not installed."""
    with victoria() as peer:
        fed = InTurn(peer, plan, flood, shape, 1)
        fed.warm()
        fed.part()
        return fed.found()


def _feed(peer: Victoria, requests: list[list[bytes]]) -> float:
    """CPU-seconds for these requests, batch by batch, until they can be searched."""
    began = cpu_seconds([peer.pid])
    for batch in zip(*requests, strict=True):
        for request in batch:
            peer.write(request)
    peer.flush()
    return cpu_seconds([peer.pid]) - began


# --- what is said ------------------------------------------------------------------------------------------------


def best_of(peers: list[Peer]) -> Peer | None:
    """The peer at its best, fed as its own senders feed it."""
    return max((one for one in peers if one.shape != "batched"), key=lambda one: one.per_cpu_s, default=None)


def ratios_of(ours: Ours, peer: Peer) -> list[float]:
    """Ours to the peer's, part by part."""
    pairs = zip(ours.parts, peer.parts_cpu_s, strict=True)
    return [one.per_cpu_s * cpu_s / peer.part_samples for one, cpu_s in pairs]


def detail_of(ours: Ours, peers: list[Peer], plan: Plan) -> dict[str, Any]:
    """The last line's detail."""
    peer = best_of(peers)
    batched = next((one for one in peers if one.shape == "batched"), None)
    kept, flood, pace = ours.kept, ours.flood, ours.pace
    held = {host: kept.rows.get(host, 0) for host in ours.acked}
    values = max(1, flood.values)
    return {
        "wire_bytes_per_sample": round(flood.wire, 3),
        "disk_bytes_per_sample": round((kept.file_bytes - kept.free_bytes) / max(1, kept.all_rows), 3),
        "log_bytes_per_sample": round(flood.log_bytes / values, 3),
        "ratios": peer and [round(one, 2) for one in ratios_of(ours, peer)],
        "parts_cpu_s": [[round(one.cpu["access"], 2), round(one.cpu["master"], 2)] for one in ours.parts],
        "victoriametrics_parts_cpu_s": peer and [round(one, 2) for one in peer.parts_cpu_s],
        "victoriametrics_samples_per_cpu_s": peer and round(peer.per_cpu_s),
        "victoriametrics_batched_samples_per_cpu_s": batched and round(batched.per_cpu_s),
        "victoriametrics_cold_samples_per_cpu_s": peer and round(peer.cold_per_cpu_s),
        "victoriametrics_sent_as": peer and peer.shape,
        "hosts": plan.hosts,
        "flood_samples_per_s": round(flood.values / flood.seconds),
        "cold_samples_per_cpu_s": round(ours.cold.per_cpu_s),
        "alone_samples_per_cpu_s": round(ours.alone.per_cpu_s),
        "alone_ratio": peer and round(ours.alone.per_cpu_s / peer.per_cpu_s, 2),
        "pace_samples_per_cpu_s": round(pace.per_cpu_s),
        "pace_ack_p50_ms": round(percentile(pace.answer["ack_ms"] or [0.0], 0.5), 1),
        "pace_ack_p99_ms": round(percentile(pace.answer["ack_ms"] or [0.0], 0.99), 1),
        "access_cpu_s": round(flood.cpu["access"], 2),
        "master_cpu_s": round(flood.cpu["master"], 2),
        "pace_wire_bytes_per_sample": round(pace.wire, 3),
        "frame_bytes_per_sample": round(flood.answer["frame_bytes"] / values, 3),
        "disk_free_mib": round(kept.free_bytes / MIB, 1),
        "disk_raw_bytes_per_sample": round(kept.raw_bytes / max(1, kept.all_rows), 3),
        "acked_values": sum(ours.acked.values()),
        "history_values": sum(held.values()),
        "match": held == ours.acked,
    }


def missing(ours: Ours, peer: Peer | None) -> list[str]:
    """Returns the goals and checks that failed, in words."""
    said = [] if peer is not None else ["VictoriaMetrics is not installed: no ratio"]
    for name, one in (("cold", ours.cold), ("flood", ours.flood), ("alone", ours.alone), ("pace", ours.pace)):
        if one.answer["acked_batches"] < one.answer["wanted_batches"]:
            said.append(f"{name}: {one.answer['acked_batches']} of {one.answer['wanted_batches']} batches acknowledged")
        if not one.is_caught_up:
            said.append(f"{name}: history had not caught up within {CAUGHT_UP_S:.0f} s")
    if ours.flood.answer["lost_links"]:
        said.append(f"{ours.flood.answer['lost_links']} streams ended on the way")
    return said


def main() -> None:
    """Measure, print, end."""
    plan, flood, _ = plan_for(scale())
    shape, *beside = PEER_SHAPES
    with victoria() as peer:
        in_turn = InTurn(peer, plan, flood, shape, PARTS)
        ours = measure_ours(plan, flood, in_turn)
        measured = [in_turn.found()]
    measured += [measure_beside(plan, flood, other) for other in beside]
    peers = [one for one in measured if one is not None]
    best = best_of(peers)
    detail = detail_of(ours, peers, plan)
    rows: list[tuple[str, Any]] = [
        ("started as", "windrow up (its defaults: mTLS, proofs, fsync of the log, SQLite synchronous=FULL)"),
        ("hosts joined, s", ours.joined_s),
        ("streams connected and greeted, s", ours.connected["seconds"]),
        ("GPUs, values per batch", f"{plan.hosts * plan.gpus:,}, {plan.values_per_batch}"),
        ("samples flooded", ours.flood.values),
        ("seconds until all could be asked for", ours.flood.seconds),
        ("samples per CPU-second, Access and Master", ours.per_cpu_s),
        *((f"VictoriaMetrics, fed as {p.shape}", p.per_cpu_s) for p in peers),
        *(
            (f"  held of {p.wanted:,}; disk, B/sample", f"{p.held:,}; {p.disk_bytes / max(1, p.held):.2f}")
            for p in peers
        ),
        *detail.items(),
        *(("missing", what) for what in missing(ours, best)),
    ]
    table(rows)
    ratio = median(ratios_of(ours, best)) if best is not None else None
    name = f"VictoriaMetrics remote write, fed as by {best.shape}" if best is not None else None
    last_line("ingest", ours.per_cpu_s, "samples/CPU-s", name, ratio, detail)


if __name__ == "__main__":
    main()
